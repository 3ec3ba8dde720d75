// The cache key of a compile (spec 12, bugs B51). In: a request and the files its import read. Out: a hex digest that changes exactly when the engine's bytes
// may: tool and LLVM version, flags, targets, and the bytes of model, external data, rules, calibration. Directories, time and threads are not in it.
#include "compiler/report/Report.h"
#include "passes/Pipeline.h"
#include "tools/tare/CompileCuda.h"
#include "tools/tare/Driver.h"
#include "tools/tare/OutputFile.h"
#include "tools/tare/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include <filesystem>
#include <fmt/format.h>
#include <set>

namespace tare::cli {

std::string engineFlags(const CompileOptions &o) {
  std::string text;
  auto add = [&](const char *name, const std::string &value) { text += std::string(name) + "=" + value + "\n"; };
  add("policy", o.policy == Policy::Strict ? "strict" : o.policy == Policy::Inference ? "inference" : "proved");
  add("weight-threshold", report::shortest(o.weightThreshold));
  add("forward-threshold", report::shortest(o.forwardThreshold));
  add("strict-nans", o.strictNans ? "1" : "0");
  add("seed", std::to_string(o.seed));
  add("loss", o.loss);
  add("samples", fmt::format("{} cotangents {} sequence {} past {}", o.samples, o.cotangents, o.sequence, o.past));
  add("checks", fmt::format("{} window {}", o.checkPrecision, o.checkWindow));
  for (auto &glob : o.keep) add("keep", glob);
  for (auto &glob : o.only) add("only", glob);
  for (auto &pass : std::set<std::string>(o.disabledPasses.begin(), o.disabledPasses.end())) add("disable-pass", pass);
  add("allow-large-removal", o.allowLargeRemoval ? "1" : "0");
  add("fold-limit", std::to_string(o.foldLimit));
  add("target", "cpu:" + llvm::join(o.levels, ","));
  if (o.precision != "f32") add("precision", o.precision);
  if (!o.rulesFile.empty()) add("rules", "1"); // that there was one: its bytes are in the cache key, its name is nobody's business
  add("measure-all", o.measureAll ? "1" : "0");
  return text;
}

/// All files below a folder, sorted; a file is itself.
static std::vector<std::string> filesOf(const std::string &path) {
  std::error_code error;
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(path, error)) return {path};
  for (auto &entry : std::filesystem::recursive_directory_iterator(path, error))
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

llvm::Expected<std::string> cacheKey(const CompileRequest &request, const std::vector<std::string> &filesRead) {
  llvm::SHA256 hash;
  // Every part with its length, so that two lists of parts never read as one another.
  auto add = [&](llvm::StringRef part) {
    hash.update(fmt::format("{}:", part.size()));
    hash.update(part);
  };
  add("tare " + toolVersion() + " llvm " + llvmVersion());
  add(engineFlags(request.options));
  if (!cudaArchitectures(request.options).empty()) {
    auto compiler = cudaCompiler();
    if (!compiler) return compiler.takeError();
    add(*compiler);
  }
  std::set<std::string> files(filesRead.begin(), filesRead.end());
  for (auto &path : {request.options.rulesFile, request.options.calibration})
    if (!path.empty())
      for (auto &file : filesOf(path)) files.insert(file);
  // Ordered by name without directory, then by content: the same model in another folder has the same key.
  std::vector<std::pair<std::string, std::string>> parts;
  for (auto &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file, false, false);
    if (!buffer) return fail(ExitCode::Io, "cannot read for the cache key: " + buffer.getError().message()).inFile(file);
    llvm::SHA256 one;
    one.update((*buffer)->getBuffer());
    parts.push_back({std::filesystem::path(file).filename().string(), llvm::toHex(one.final(), true)});
  }
  std::sort(parts.begin(), parts.end());
  for (auto &[name, digest] : parts) add(name), add(digest);
  return llvm::toHex(hash.final(), true);
}

} // namespace tare::cli
