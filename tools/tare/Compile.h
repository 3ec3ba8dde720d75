// The middle of a compile, without the files of the command line: passes, kernels, machine code, engine. In: an imported model. Out: a report, an engine file.
// `tare compile`, `compile --verify` and the search for a diverging layer share it. Holds: the stages of `progress` are those of Driver.cpp.
#pragma once
#include "compiler/codegen/cuda/Images.h"
#include "compiler/engine/SectionWriter.h"
#include "compiler/graph/Options.h"
#include "compiler/import/EmitOnnx.h"
#include "compiler/import/Import.h"
#include "compiler/report/Report.h"
#include "llvm/Support/Error.h"

namespace tare::cli {
class DiagnosticCollector;
class Progress;

/// What the checks left behind.
struct Compiled {
  report::Report report;
  std::string certificate;
  std::vector<LayerRemoval> removals; ///< for --emit-onnx
  Signer signer;                      ///< empty: the engine is not signed
  std::optional<cuda::Program> cuda;  ///< with --target cuda:... (CompileCuda.h)
};
/// All phases up to `options.stopAfter`; `model.module` is rewritten in place.
llvm::Expected<Compiled> runPasses(ImportedModel &model, const CompileOptions &options, DiagnosticCollector &diagnostics, Progress *progress);
/// From a planned module to an engine file, written at once or not at all.
llvm::Error makeEngine(ImportedModel &model, const CompileOptions &options, const Compiled &compiled, const std::string &path, DiagnosticCollector &diagnostics, Progress *progress);
/// Both.
llvm::Error compileModule(ImportedModel &model, const CompileOptions &options, const std::string &path, DiagnosticCollector &diagnostics);

} // namespace tare::cli
