// An engine file opened through the C API, for the commands that run or inspect one. In: a path. Out: RAII handles; the runtime's errors as Failures with
// the same exit codes. Holds: this is the API that every user has; no private way into the runtime.
#pragma once
#include "compiler/graph/Failure.h"
#include "compiler/import/Npz.h"
#include "compiler/report/Report.h"
#include "runtime/tare.h"
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tare::cli {

/// The runtime's error as a Failure; `file` is the engine.
Failure runtimeFailure(const tare_error &error, const std::string &file);

struct EngineHandle {
  std::string path;
  std::shared_ptr<tare_engine_t> engine;
  int cudaDevice = 0; ///< that it was opened for

  /// `level`: which code to use (tare.h max_level), empty for the runtime's choice. `publicKey`: a key file; the engine must be signed with it (exit 4). An ONNX model given by mistake gets its own message.
  static llvm::Expected<EngineHandle> open(const std::string &path, const std::string &level = "", bool paranoid = false, const std::string &publicKey = "", int cudaDevice = 0);
  /// Bytes of a section ("report", "configuration", "certificate", "provenance", "plan"); exit 3 when there is none.
  llvm::Expected<std::string> section(const char *name) const;
  llvm::Expected<report::Report> report() const;
  /// What the compile was asked for, as the provenance has it (CacheKey.cpp engineFlags); an empty object when it does not say.
  llvm::Expected<nlohmann::json> flags() const;
  /// At shapes by input name; what is not given is 1.
  llvm::Expected<tare_check_memory> checkMemory(const std::vector<std::pair<std::string, std::vector<int64_t>>> &shapes) const;
  std::vector<tare_tensor_info> inputs() const, outputs() const;
};

/// One request: inputs are set, the engine runs, outputs are read.
class Request {
public:
  static llvm::Expected<Request> create(const EngineHandle &engine, int threads, bool profile);
  /// Shape, dtype and data are checked by the runtime; `array` must live until the last run.
  llvm::Error set(const std::string &name, const Array &array);
  /// Only these are computed; empty: all.
  llvm::Error request(const std::vector<std::string> &outputs);
  llvm::Error run();
  llvm::Expected<Array> output(const std::string &name);
  llvm::Expected<tare_estimate> estimate();
  llvm::Expected<tare_check_stats> checkStats();
  llvm::Expected<tare_check_memory> checkMemory();
  /// The next runs keep the bits of every token, for checkTrace(); exit 5 for code that cannot.
  llvm::Error traceChecks();
  llvm::Expected<tare_check_trace> checkTrace(size_t check);
  std::string profile() const, metrics() const;
  tare_context_t *get() const { return context.get(); }

private:
  EngineHandle engine;
  std::shared_ptr<tare_context_t> context;
};

/// An engine's report, or a report file: what `tare report` and `tare diff` take.
llvm::Expected<report::Report> loadReport(const std::string &path);
/// {"flops", "memory_bytes"} of the full plan and of this one.
std::string describe(const tare_estimate &estimate);

} // namespace tare::cli
