// Cached engines (Cache.h): DIR/KEY.tare. In: requests. Out: copies, atomically.
#include "tools/tare/Cache.h"
#include "compiler/report/Writers.h"
#include "tools/tare/EngineHandle.h"
#include "tools/tare/OutputFile.h"
#include <filesystem>

namespace tare::cli {

static std::string fileOf(const CompileRequest &request, const std::string &key) { return (std::filesystem::path(request.cacheDir) / (key + ".tare")).string(); }
static constexpr uint64_t largest = uint64_t(1) << 40;

std::optional<std::string> cached(const CompileRequest &request, const std::string &key) {
  if (request.cacheDir.empty() || request.checkOnly || request.stopAfter || request.verify || !request.sign.empty() || !request.emitOnnx.empty()) return std::nullopt;
  std::string path = fileOf(request, key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  // Paranoid: weights too, so that a damaged cache means one compile more and never a wrong engine.
  auto engine = EngineHandle::open(path, "", true);
  if (engine) return path;
  llvm::consumeError(engine.takeError());
  return std::nullopt;
}

llvm::Expected<ExitCode> reuse(const CompileRequest &request, const std::string &path, const std::vector<std::string> &filesRead, Console &console) {
  auto engine = EngineHandle::open(path);
  if (!engine) return engine.takeError();
  auto report = engine->report();
  if (!report) return report.takeError();
  if (auto error = writeOutputs(request, *report, filesRead)) return error;
  if (auto error = checkFailOn(request, *report)) return error;
  auto bytes = readFile(path, largest);
  if (!bytes) return bytes.takeError();
  if (auto error = writeFile(request.output, *bytes)) return error;
  printSummary(console, request, *report);
  if (console.json) console.out(report::toJson(*report));
  console.note("engine: " + request.output + " (from the cache)");
  return ExitCode::Ok;
}

void keep(const CompileRequest &request, const std::string &key, Console &console) {
  if (request.cacheDir.empty() || !request.sign.empty()) return; // a signature belongs to who signs, not to the key
  std::error_code error;
  std::filesystem::create_directories(request.cacheDir, error);
  auto bytes = readFile(request.output, largest);
  llvm::Error failed = bytes ? writeFile(fileOf(request, key), *bytes) : bytes.takeError();
  if (failed) console.warn("the engine was not kept in the cache: " + failureOf(std::move(failed)).message);
}

} // namespace tare::cli
