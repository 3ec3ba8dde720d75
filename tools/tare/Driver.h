// One compile from checkpoint to engine, and one check. In: a CompileRequest. Out: files that were asked for, and the exit code. The reading order of
// Driver.cpp is the product's: import -> passes -> kernels -> machine code -> certificate -> engine.
#pragma once
#include "compiler/report/Report.h"
#include "tools/tare/Options.h"
#include <nlohmann/json_fwd.hpp>

namespace tare::cli {

/// `tare compile` and `tare check`. Reports are written before the engine; with a failed gate (--fail-on, --verify) the engine is not written.
llvm::Expected<ExitCode> runCompile(const CompileRequest &request, Console &console);
/// `--dry-run`: the coverage table on stdout; exit 3 when an op is missing.
llvm::Expected<ExitCode> runDryRun(const CompileRequest &request, Console &console);

/// Outputs.cpp: reports, configuration and depfile as asked for; nothing else.
llvm::Error writeOutputs(const CompileRequest &request, const report::Report &report, const std::vector<std::string> &filesRead);
/// The lines that a person sees after a compile.
void printSummary(Console &console, const CompileRequest &request, const report::Report &report);
/// The failure of --fail-on, or success.
llvm::Error checkFailOn(const CompileRequest &request, const report::Report &report);

/// CacheKey.cpp: SHA-256 (hex) over tool version, flags, target and the bytes of every file in `filesRead` (names without directories), rules and calibration,
/// and what compiles CUDA kernels (CompileCuda.h), empty when nothing does.
llvm::Expected<std::string> cacheKey(const CompileRequest &request, const std::vector<std::string> &filesRead, const std::string &cudaCompilers);
/// The flags that decide an engine's bytes: part of the key and of the provenance.
nlohmann::ordered_json engineFlags(const CompileOptions &options);

} // namespace tare::cli
