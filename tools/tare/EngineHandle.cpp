// The C API behind RAII (EngineHandle.h). In: paths, arrays. Out: handles, arrays, Failures.
#include "tools/tare/EngineHandle.h"
#include "compiler/engine/Signing.h"
#include "compiler/report/Writers.h"
#include "tools/tare/OutputFile.h"
#include <fmt/format.h>

namespace tare::cli {

Failure runtimeFailure(const tare_error &error, const std::string &file) {
  int code = error.code == TARE_CANCELLED ? static_cast<int>(TARE_INTERNAL) : error.code;
  return Failure(static_cast<ExitCode>(code), error.message).inFile(file).atNode(error.step).ofTensor(error.tensor);
}

static llvm::Error fromRuntime(const tare_error &error, const std::string &file) { return llvm::make_error<Failure>(runtimeFailure(error, file)); }

llvm::Expected<EngineHandle> EngineHandle::open(const std::string &path, const std::string &level, bool paranoid, const std::string &publicKey, int cudaDevice) {
  std::string key;
  if (!publicKey.empty()) {
    auto read = readPublicKey(publicKey);
    if (!read) return read.takeError();
    key = *read;
  }
  tare_options options{};
  options.struct_bytes = sizeof(options);
  options.max_level = level.empty() ? nullptr : level.c_str();
  options.paranoid = paranoid;
  options.cuda_device = cudaDevice;
  if (!key.empty()) options.verify_signature = checkSignature, options.verify_user = &key;
  tare_error error{};
  std::shared_ptr<tare_engine_t> engine(tare_engine_open(path.c_str(), &options, &error), [](tare_engine_t *e) { if (e) tare_engine_close(e); });
  if (!engine) {
    Failure failure = runtimeFailure(error, path);
    if (failure.hint.empty() && llvm::StringRef(path).ends_with(".onnx")) failure.withHint("this is a model: compile it first with `tare compile MODEL -o ENGINE`");
    return llvm::make_error<Failure>(failure);
  }
  return EngineHandle{path, engine, cudaDevice};
}

llvm::Expected<std::string> EngineHandle::section(const char *name) const {
  const void *data = nullptr;
  size_t bytes = 0;
  if (!tare_engine_section(engine.get(), name, &data, &bytes)) return refuse(fmt::format("the engine has no section '{}'", name)).inFile(path).withHint("compile it again");
  return std::string(static_cast<const char *>(data), bytes);
}

llvm::Expected<nlohmann::json> EngineHandle::flags() const {
  using nlohmann::json;
  auto provenance = section("provenance");
  if (!provenance) return provenance.takeError();
  auto origin = json::parse(*provenance, nullptr, /*allow_exceptions=*/false);
  return origin.is_object() && origin.contains("flags") && origin["flags"].is_object() ? origin["flags"] : json::object();
}

llvm::Expected<report::Report> EngineHandle::report() const {
  auto text = section("report");
  if (!text) return text.takeError();
  return report::fromJson(*text, path);
}

llvm::Expected<tare_check_memory> EngineHandle::checkMemory(const std::vector<std::pair<std::string, std::vector<int64_t>>> &shapes) const {
  std::vector<const char *> names;
  std::vector<tare_tensor> tensors;
  for (auto &[name, dims] : shapes) names.push_back(name.c_str()), tensors.push_back({TARE_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, 0});
  tare_check_memory memory{};
  tare_error error{};
  if (tare_engine_check_memory(engine.get(), names.data(), tensors.data(), names.size(), &memory, &error) != TARE_OK) return fromRuntime(error, path);
  return memory;
}

std::vector<tare_tensor_info> EngineHandle::inputs() const {
  std::vector<tare_tensor_info> list(tare_engine_input_count(engine.get()));
  for (size_t i = 0; i < list.size(); i++) tare_engine_input_info(engine.get(), i, &list[i], nullptr);
  return list;
}
std::vector<tare_tensor_info> EngineHandle::outputs() const {
  std::vector<tare_tensor_info> list(tare_engine_output_count(engine.get()));
  for (size_t i = 0; i < list.size(); i++) tare_engine_output_info(engine.get(), i, &list[i], nullptr);
  return list;
}

llvm::Expected<Request> Request::create(const EngineHandle &engine, int threads, bool profile) {
  tare_context_options options{};
  options.struct_bytes = sizeof(options);
  options.threads = threads;
  options.profile = profile;
  tare_error error{};
  Request request;
  request.engine = engine;
  request.context.reset(tare_context_create(engine.engine.get(), &options, &error), [](tare_context_t *c) { if (c) tare_context_destroy(c); });
  if (!request.context) return fromRuntime(error, engine.path);
  return request;
}

llvm::Error Request::set(const std::string &name, const Array &array) {
  tare_tensor tensor{static_cast<tare_dtype>(array.dtype), static_cast<int32_t>(array.shape.size()), array.shape.data(), const_cast<char *>(array.bytes.data()), array.bytes.size()};
  tare_error error{};
  if (tare_context_set_input(context.get(), name.c_str(), &tensor, &error) == TARE_OK) return llvm::Error::success();
  return fromRuntime(error, engine.path);
}

llvm::Error Request::request(const std::vector<std::string> &outputs) {
  std::vector<const char *> names;
  for (auto &name : outputs) names.push_back(name.c_str());
  tare_error error{};
  return tare_context_request_outputs(context.get(), names.data(), names.size(), &error) == TARE_OK ? llvm::Error::success() : fromRuntime(error, engine.path);
}

llvm::Error Request::run() {
  tare_error error{};
  return tare_context_run(context.get(), &error) == TARE_OK ? llvm::Error::success() : fromRuntime(error, engine.path);
}

llvm::Expected<Array> Request::output(const std::string &name) {
  tare_tensor tensor{};
  tare_error error{};
  if (tare_context_get_output(context.get(), name.c_str(), &tensor, &error) != TARE_OK) return fromRuntime(error, engine.path);
  Array array;
  array.dtype = static_cast<uint8_t>(tensor.dtype);
  array.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  uint64_t bytes = dtypeSize(array.dtype);
  for (int64_t size : array.shape) bytes *= static_cast<uint64_t>(size);
  array.bytes.assign(static_cast<const char *>(tensor.data), bytes);
  return array;
}

llvm::Expected<tare_estimate> Request::estimate() {
  tare_estimate estimate{};
  tare_error error{};
  if (tare_context_estimate(context.get(), &estimate, &error) != TARE_OK) return fromRuntime(error, engine.path);
  return estimate;
}

llvm::Expected<tare_check_stats> Request::checkStats() {
  tare_check_stats stats{};
  tare_error error{};
  if (tare_context_check_stats(context.get(), &stats, &error) != TARE_OK) return fromRuntime(error, engine.path);
  return stats;
}

llvm::Expected<tare_check_memory> Request::checkMemory() {
  tare_check_memory memory{};
  tare_error error{};
  if (tare_context_check_memory(context.get(), &memory, &error) != TARE_OK) return fromRuntime(error, engine.path);
  return memory;
}

llvm::Error Request::traceChecks() {
  tare_error error{};
  return tare_context_trace_checks(context.get(), 1, &error) == TARE_OK ? llvm::Error::success() : fromRuntime(error, engine.path);
}

llvm::Expected<tare_check_trace> Request::checkTrace(size_t check) {
  tare_check_trace trace{};
  tare_error error{};
  if (tare_context_check_trace(context.get(), check, &trace, &error) != TARE_OK) return fromRuntime(error, engine.path);
  return trace;
}

static std::string textOf(size_t (*read)(tare_context_t *, char *, size_t), tare_context_t *context) {
  std::string text(read(context, nullptr, 0) + 1, '\0');
  text.resize(read(context, text.data(), text.size()));
  return text;
}
std::string Request::profile() const { return textOf(tare_context_profile, context.get()); }
std::string Request::metrics() const { return textOf(tare_context_metrics, context.get()); }

llvm::Expected<report::Report> loadReport(const std::string &path) {
  if (llvm::StringRef(path).ends_with(".json")) {
    auto text = readFile(path);
    if (!text) return text.takeError();
    return report::fromJson(*text, path);
  }
  auto engine = EngineHandle::open(path);
  if (!engine) return engine.takeError();
  return engine->report();
}

std::string describe(const tare_estimate &e) {
  return fmt::format("FLOPs {} (full plan {}), memory {} (full plan {}), zero rate {:.3f}", report::readableCount(e.flops), report::readableCount(e.full_flops),
                     report::readableBytes(e.memory_bytes), report::readableBytes(e.full_memory_bytes), e.zero_rate);
}

} // namespace tare::cli
