// The part of a compile that is for real GPUs. In: a planned module, architectures. Out: kernel texts and their images
// for the engine, what ptxas says about them for the report. Holds: nothing happens without --target cuda:...; a
// compile that fails leaves no engine.
#pragma once
#include "tools/tare/Compile.h"
#include "tools/tare/Console.h"

namespace tare::cli {

/// The GPUs of `options.levels`: "sm_90", ...
std::vector<std::string> cudaArchitectures(const CompileOptions &options);
/// Fills `compiled.cuda` and `compiled.report.cuda`; warnings go to the report and to `console`. `cacheFolder`: of
/// --cache-dir, may be empty. Exit 5: no compiler, one that is too old, or one that refuses our text.
llvm::Error compileCuda(ImportedModel &model, const CompileOptions &options, const std::string &cacheFolder,
                        Compiled &compiled, Console &console, Progress *progress);
/// Exact name and version of the compiler that such a compile uses: part of the cache key, for engines depend on it.
/// Exit 5 when there is none.
llvm::Expected<std::string> cudaCompiler();

} // namespace tare::cli
