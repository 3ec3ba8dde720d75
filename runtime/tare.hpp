// C++ wrapper of the C API (tare.h), header only. In: the same. Out: objects that close themselves and exceptions of type tare::api::Failure, thrown in the
// caller's own code (none crosses the library's border). Shapes, dtypes, ownership and thread rules are those of tare.h.
#pragma once
#include "tare.h"
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tare::api {

/// What a call reported: what() is the one-line message.
struct Failure : std::runtime_error {
  explicit Failure(const tare_error &e) : std::runtime_error(e.message), code(e.code), step(e.step), tensor(e.tensor), offset(e.offset) {}
  tare_status code;
  std::string step, tensor; ///< source node and tensor, when they are to blame
  int64_t offset;           ///< byte of the engine file, or -1
};
inline void check(tare_status status, const tare_error &error) {
  if (status != TARE_OK) throw Failure(error);
}

/// The dtype of a C++ element type.
template <typename T> constexpr tare_dtype dtypeOf();
template <> constexpr tare_dtype dtypeOf<float>() { return TARE_F32; }
template <> constexpr tare_dtype dtypeOf<double>() { return TARE_F64; }
template <> constexpr tare_dtype dtypeOf<int8_t>() { return TARE_I8; }
template <> constexpr tare_dtype dtypeOf<uint8_t>() { return TARE_U8; }
template <> constexpr tare_dtype dtypeOf<int16_t>() { return TARE_I16; }
template <> constexpr tare_dtype dtypeOf<uint16_t>() { return TARE_U16; }
template <> constexpr tare_dtype dtypeOf<int32_t>() { return TARE_I32; }
template <> constexpr tare_dtype dtypeOf<uint32_t>() { return TARE_U32; }
template <> constexpr tare_dtype dtypeOf<int64_t>() { return TARE_I64; }
template <> constexpr tare_dtype dtypeOf<uint64_t>() { return TARE_U64; }

/// An engine file, shared by any number of contexts and threads. Copies refer to the same engine.
class Engine {
public:
  explicit Engine(const std::string &path, tare_options options = {}) {
    tare_error error;
    options.struct_bytes = sizeof options;
    handle.reset(tare_engine_open(path.c_str(), &options, &error), tare_engine_close);
    if (!handle) throw Failure(error);
  }
  /// Bytes that stay alive and unchanged as long as the engine.
  Engine(const void *data, size_t bytes, tare_options options = {}) {
    tare_error error;
    options.struct_bytes = sizeof options;
    handle.reset(tare_engine_open_memory(data, bytes, &options, &error), tare_engine_close);
    if (!handle) throw Failure(error);
  }
  tare_engine_t *get() const { return handle.get(); }
  std::string level() const { return tare_engine_level(get()); }
  std::vector<tare_tensor_info> inputs() const { return all(tare_engine_input_count(get()), tare_engine_input_info); }
  std::vector<tare_tensor_info> outputs() const { return all(tare_engine_output_count(get()), tare_engine_output_info); }
  /// "configuration", "report", "certificate", "provenance"; empty when the engine has none.
  std::string section(const char *name) const {
    const void *data;
    size_t bytes;
    return tare_engine_section(get(), name, &data, &bytes) ? std::string(static_cast<const char *>(data), bytes) : std::string();
  }
  /// SHA-256 of the weights.
  void verify() const {
    tare_error error;
    check(tare_engine_verify(get(), &error), error);
  }

private:
  template <typename Info> std::vector<tare_tensor_info> all(size_t count, Info info) const {
    std::vector<tare_tensor_info> list(count);
    tare_error error;
    for (size_t i = 0; i < count; ++i) check(info(get(), i, &list[i], &error), error);
    return list;
  }
  std::shared_ptr<tare_engine_t> handle;
};

/// One request's state; one thread at a time, except for cancel().
class Context {
public:
  explicit Context(const Engine &engine, tare_context_options options = {}) {
    tare_error error;
    options.struct_bytes = sizeof options;
    handle.reset(tare_context_create(engine.get(), &options, &error));
    if (!handle) throw Failure(error);
  }
  tare_context_t *get() const { return handle.get(); }

  void setInput(const std::string &name, const tare_tensor &tensor) { call(tare_context_set_input, name.c_str(), &tensor); }
  /// `data` is read by the next runs: keep it alive.
  template <typename T> void setInput(const std::string &name, const std::vector<T> &data, const std::vector<int64_t> &shape) {
    setInput(name, {dtypeOf<T>(), static_cast<int32_t>(shape.size()), shape.data(), const_cast<T *>(data.data()), data.size() * sizeof(T)});
  }
  void clearInput(const std::string &name) { call(tare_context_set_input, name.c_str(), static_cast<const tare_tensor *>(nullptr)); }
  void setOutput(const std::string &name, const tare_tensor &tensor) { call(tare_context_set_output, name.c_str(), &tensor); }
  /// Only these are computed by the next runs; none: all.
  void requestOutputs(const std::vector<std::string> &names) {
    std::vector<const char *> list;
    for (auto &name : names) list.push_back(name.c_str());
    call(tare_context_request_outputs, list.data(), list.size());
  }
  void run() { call(tare_context_run); }
  tare_tensor output(const std::string &name) {
    tare_tensor tensor;
    call(tare_context_get_output, name.c_str(), &tensor);
    return tensor;
  }
  void linkState(const std::string &input, const std::string &output, int64_t capacity) { call(tare_context_link_state, input.c_str(), output.c_str(), capacity); }
  void reset() { tare_context_reset(get()); }
  void cancel() { tare_context_cancel(get()); }
  tare_estimate estimate() {
    tare_estimate estimate;
    call(tare_context_estimate, &estimate);
    return estimate;
  }
  tare_check_stats checkStats() {
    tare_check_stats stats;
    call(tare_context_check_stats, &stats);
    return stats;
  }
  tare_check_memory checkMemory() {
    tare_check_memory memory;
    call(tare_context_check_memory, &memory);
    return memory;
  }
  /// Bit k of the word is head k.
  uint32_t checkBits(size_t check, size_t element = 0) {
    uint32_t bits;
    call(tare_context_check_bits, check, element, &bits);
    return bits;
  }
  /// The next runs keep the bits of every token.
  void traceChecks(bool on = true) { call(tare_context_trace_checks, static_cast<int>(on)); }
  /// Its pointers are valid until the next run.
  tare_check_trace checkTrace(size_t check) {
    tare_check_trace trace;
    call(tare_context_check_trace, check, &trace);
    return trace;
  }
  std::string profile() { return text(tare_context_profile); }
  std::string metrics() { return text(tare_context_metrics); }

private:
  template <typename F, typename... Args> void call(F function, Args... args) {
    tare_error error;
    check(function(get(), args..., &error), error);
  }
  template <typename F> std::string text(F function) {
    std::string out(function(get(), nullptr, 0) + 1, '\0');
    out.resize(function(get(), out.data(), out.size()));
    return out;
  }
  struct Destroy { void operator()(tare_context_t *c) const { tare_context_destroy(c); } };
  std::unique_ptr<tare_context_t, Destroy> handle;
};

} // namespace tare::api
