// The cache key of a compile (spec 12, bugs B51). In: a request and the files its import read. Out: a hex digest that changes exactly when the engine's bytes
// may: tool and LLVM version, flags, targets, and the bytes of model, external data, rules, calibration. Directories, time and threads are not in it.
#include "passes/Pipeline.h"
#include "tools/tare/Driver.h"
#include "tools/tare/OutputFile.h"
#include "tools/tare/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace tare::cli {

using Json = nlohmann::ordered_json;

Json engineFlags(const CompileOptions &o) {
  std::set<std::string> disabled(o.disabledPasses.begin(), o.disabledPasses.end());
  return {{"policy", o.policy == Policy::Strict ? "strict" : o.policy == Policy::Inference ? "inference" : "proved"},
          {"weight_threshold", o.weightThreshold},
          {"forward_threshold", o.forwardThreshold},
          {"strict_nans", o.strictNans},
          {"seed", o.seed},
          {"loss", o.loss},
          {"samples", {{"count", o.samples}, {"cotangents", o.cotangents}, {"sequence", o.sequence}, {"past", o.past}}},
          {"checks", {{"precision", o.checkPrecision}, {"fidelity", o.checkFidelity}, {"window", o.checkWindow}}},
          {"keep", o.keep},
          {"only", o.only},
          {"disabled_passes", disabled},
          {"allow_large_removal", o.allowLargeRemoval},
          {"fold_limit", o.foldLimit},
          {"levels", o.levels},
          {"precision", o.precision},
          {"rules", !o.rulesFile.empty()}, // that there was one: its bytes are in the cache key, its name is nobody's business
          {"measure_all", o.measureAll}};
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

llvm::Expected<std::string> cacheKey(const CompileRequest &request, const std::vector<std::string> &filesRead, const std::string &cudaCompilers) {
  llvm::SHA256 hash;
  // Every part with its length, so that two lists of parts never read as one another.
  auto add = [&](llvm::StringRef part) {
    hash.update(fmt::format("{}:", part.size()));
    hash.update(part);
  };
  add("tare " + toolVersion() + " llvm " + llvmVersion());
  add(engineFlags(request.options).dump(-1, ' ', false, Json::error_handler_t::replace));
  for (auto *texts : {&request.options.keep, &request.options.only}) // once more as bytes: what is no UTF-8 looks alike in JSON
    for (auto &text : *texts) add(text);
  add(request.options.loss);
  if (!cudaCompilers.empty()) add(cudaCompilers);
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
