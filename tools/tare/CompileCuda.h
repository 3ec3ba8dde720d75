// The part of a compile that is for real GPUs. In: a planned module, architectures. Out: kernel texts and their images
// for the engine, what ptxas says about them for the report. Holds: nothing happens without --target cuda:...; a
// compile that fails leaves no engine.
#pragma once
#include "tools/tare/Compile.h"
#include "tools/tare/Console.h"

namespace tare::cli {

/// The GPUs of `options.levels`: "sm_90", ...
std::vector<std::string> cudaArchitectures(const CompileOptions &options);
/// The compiler for them, looked up once; null without --target cuda:... What is there and does not work is said on
/// `console`. Exit 5: none works, or the one that does is too old for an architecture.
llvm::Expected<std::unique_ptr<cuda::Toolkit>> findCudaCompiler(const CompileOptions &options, Console &console);
/// Exact names and versions of the compilers that kernels are compiled with, the emulator's too: part of the cache key,
/// for engines depend on them. Exit 5.
llvm::Expected<std::string> cudaCompilers(const CompileOptions &options, const cuda::Toolkit *toolkit);
/// Fills `compiled.cuda` and `compiled.report.cuda`; warnings go to the report and to `console`. `cacheFolder`: of
/// --cache-dir, may be empty. Exit 5: the compiler refuses our text.
llvm::Error compileCuda(ImportedModel &model, const CompileOptions &options, const cuda::Toolkit &toolkit,
                        const std::string &cacheFolder, Compiled &compiled, Console &console, Progress *progress);

} // namespace tare::cli
