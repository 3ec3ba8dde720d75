// The options of `tare compile` and `tare check` (cli.md). In: flags as text. Out: a checked CompileRequest or exit 2. Holds: nothing is read or written
// here but the existence of folders; contradictions are found before any work.
#pragma once
#include "compiler/graph/Options.h"
#include "tools/tare/Commands.h"
#include <string>
#include <vector>

namespace tare::cli {

/// What a compile is asked for beside CompileOptions.
struct CompileRequest {
  CompileOptions options;
  bool checkOnly = false;      ///< `tare check`
  std::string output;          ///< engine, or MLIR text with --stop-after; empty: none (check) or stdout (--stop-after)
  std::vector<std::string> reports;
  std::string emitConfig, emitOnnx, depfile, cacheDir, sign;
  std::vector<std::string> failOn; ///< rejected, frozen, kept-dense
  bool stopAfter = false, dryRun = false, printCacheKey = false, verify = false, supported = false;
};

/// Flags as they were written.
struct RawOptions {
  std::string model, output, rules, policy, calibration, seed, loss, emitConfig, emitOnnx, weightThreshold, forwardThreshold, threads, cacheDir, foldLimit,
      depfile, stopAfter, precision, sign, checkPrecision, checkFidelity, checkWindow;
  std::vector<std::string> targets, reports, keep, only, disabled, failOn;
  bool strictNans = false, tf32 = false, verify = false, largeRemoval = false, printCacheKey = false, dryRun = false, supported = false;
};

void addCompileOptions(CLI::App *command, RawOptions &raw, bool checkOnly);
/// After the import: none of the outputs is a file that was read (external data, files of a folder); exit 2.
llvm::Error keepsInputs(const CompileRequest &request, const std::vector<std::string> &filesRead);
llvm::Expected<CompileRequest> checkOptions(const RawOptions &raw, bool checkOnly, bool json);

} // namespace tare::cli
