// Runs an engine through the C API for tests. In: an engine file and arrays by name (compiler/import/Npz.h). Out: arrays by name, or a gtest failure
// with the runtime's own message. Linked states, threads and the ISA level are options; nothing of the compiler is used.
#pragma once
#include "compiler/import/Npz.h"
#include "runtime/tare.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tare::test {

inline Array int64s(std::vector<int64_t> shape, const std::vector<int64_t> &values) {
  return {7, std::move(shape), std::string(reinterpret_cast<const char *>(values.data()), values.size() * 8)};
}
inline Array int32s(std::vector<int64_t> shape, const std::vector<int32_t> &values) {
  return {6, std::move(shape), std::string(reinterpret_cast<const char *>(values.data()), values.size() * 4)};
}
inline std::vector<int64_t> int64sOf(const Array &a) {
  std::vector<int64_t> out(a.bytes.size() / 8);
  std::memcpy(out.data(), a.bytes.data(), a.bytes.size());
  return out;
}
/// f32 and f16 arrays as floats (f16 exactly).
inline std::vector<float> floatsOf(const Array &a) {
  std::vector<float> out;
  if (a.dtype == 1) {
    out.resize(a.bytes.size() / 4);
    std::memcpy(out.data(), a.bytes.data(), a.bytes.size());
  } else if (a.dtype == 10) {
    out.resize(a.bytes.size() / 2);
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t h;
      std::memcpy(&h, a.bytes.data() + 2 * i, 2);
      int exponent = (h >> 10) & 31, mantissa = h & 1023;
      float v = exponent == 31 ? (mantissa ? NAN : INFINITY) : exponent ? std::ldexp(1024.0f + mantissa, exponent - 25) : std::ldexp(float(mantissa), -24);
      out[i] = h & 0x8000 ? -v : v;
    }
  } else {
    ADD_FAILURE() << "floatsOf: dtype " << int(a.dtype);
  }
  return out;
}

class EngineRunner {
public:
  explicit EngineRunner(const std::string &path, int threads = 1, const char *level = nullptr, bool profile = false) {
    tare_options options{};
    options.struct_bytes = sizeof options;
    options.max_level = level;
    engine = tare_engine_open(path.c_str(), &options, &error);
    EXPECT_NE(engine, nullptr) << path << ": " << error.message;
    tare_context_options contextOptions{};
    contextOptions.struct_bytes = sizeof contextOptions;
    contextOptions.threads = threads, contextOptions.profile = profile;
    if (engine) context = tare_context_create(engine, &contextOptions, &error);
    if (engine) EXPECT_NE(context, nullptr) << error.message;
  }
  ~EngineRunner() {
    if (context) tare_context_destroy(context);
    if (engine) tare_engine_close(engine);
  }
  EngineRunner(const EngineRunner &) = delete;
  EngineRunner &operator=(const EngineRunner &) = delete;

  bool good() const { return context != nullptr; }
  std::string level() const { return tare_engine_level(engine); }
  void link(const std::string &input, const std::string &output, int64_t capacity) {
    EXPECT_EQ(tare_context_link_state(context, input.c_str(), output.c_str(), capacity, &error), TARE_OK) << error.message;
  }
  void reset() { EXPECT_EQ(tare_context_reset(context), TARE_OK); }

  /// Steps that the last run executed; the runner must have been made with `profile`.
  size_t executedSteps() {
    size_t count = 0;
    for (size_t i = 0; i < tare_context_step_count(context); ++i) {
      tare_step_info info;
      EXPECT_EQ(tare_context_step_info(context, i, &info, &error), TARE_OK) << error.message;
      count += info.nanoseconds >= 0;
    }
    return count;
  }
  size_t plannedSteps() const { return tare_context_step_count(context); }

  tare_check_stats stats() {
    tare_check_stats out{};
    EXPECT_EQ(tare_context_check_stats(context, &out, &error), TARE_OK) << error.message;
    return out;
  }
  /// Bits that a fidelity check carries on from the last token of a batch element.
  uint32_t bits(size_t check, size_t element = 0) {
    uint32_t out = ~0u;
    EXPECT_EQ(tare_context_check_bits(context, check, element, &out, &error), TARE_OK) << error.message;
    return out;
  }
  void unset(const char *name) { EXPECT_EQ(tare_context_set_input(context, name, nullptr, &error), TARE_OK) << error.message; }

  /// One run; `wanted` empty means every output, else only these are asked for. A failed run returns an empty map and leaves `error`.
  ArrayMap run(const ArrayMap &inputs, const std::set<std::string> &wanted = {}) {
    for (const auto &[name, array] : inputs) {
      tare_tensor tensor{tare_dtype(array.dtype), int32_t(array.shape.size()), array.shape.data(), const_cast<char *>(array.bytes.data()), array.bytes.size()};
      if (tare_context_set_input(context, name.c_str(), &tensor, &error) != TARE_OK) return {};
    }
    std::vector<const char *> names;
    for (auto &name : wanted) names.push_back(name.c_str());
    EXPECT_EQ(tare_context_request_outputs(context, names.data(), names.size(), &error), TARE_OK) << error.message;
    if (tare_context_run(context, &error) != TARE_OK) return {};
    ArrayMap out;
    for (size_t i = 0; i < tare_engine_output_count(engine); ++i) {
      tare_tensor_info info;
      EXPECT_EQ(tare_engine_output_info(engine, i, &info, &error), TARE_OK) << error.message;
      if (!wanted.empty() && !wanted.count(info.name)) continue;
      tare_tensor tensor;
      if (tare_context_get_output(context, info.name, &tensor, &error) != TARE_OK) {
        ADD_FAILURE() << info.name << ": " << error.message;
        return {};
      }
      Array array{uint8_t(tensor.dtype), {tensor.shape, tensor.shape + tensor.rank}, ""};
      size_t bytes = dtypeSize(array.dtype);
      for (int64_t d : array.shape) bytes *= size_t(d);
      array.bytes.assign(static_cast<const char *>(tensor.data), bytes);
      out.emplace(info.name, std::move(array));
    }
    return out;
  }

  tare_error error{};

private:
  tare_engine_t *engine = nullptr;
  tare_context_t *context = nullptr;
};

/// Largest |a - b| over the elements that `keep` allows; a NaN or a size mismatch is infinity.
inline double worstDifference(const std::vector<float> &a, const std::vector<float> &b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double d = std::fabs(double(a[i]) - double(b[i]));
    if (!(d <= worst)) worst = std::isnan(d) ? INFINITY : d;
  }
  return worst;
}

} // namespace tare::test
