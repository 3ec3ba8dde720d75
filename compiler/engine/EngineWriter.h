// From a planned module and machine code to an engine file. In: EngineContents. Out: the file, atomically, byte-identical for equal contents; weights are
// packed and written one at a time, so that memory stays near one weight. docs/engine-format.md describes the result.
#pragma once
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cuda/Images.h"
#include "compiler/engine/SectionWriter.h"
#include "compiler/graph/Dim.h"
#include "mlir/IR/BuiltinOps.h"

namespace tare {

struct EngineContents {
  mlir::ModuleOp planned;        ///< holds one plan.program, and `main` as a declaration
  std::vector<CodeSection> code; ///< one per ISA level
  const cuda::Program *cuda = nullptr; ///< kernels and images of --target cuda:..., of the same planned module
  std::string certificate, configuration, report, provenance, cudaSource; ///< as they will lie in the file; an empty one is left out
  /// Estimates of the source graph before and after removals, counted alike (compiler/report/Estimates.h); absent: sums over this plan's steps.
  std::optional<Dim> fullFlops, fullBytes, flops, bytes;
  std::vector<std::string> prunedLayers;
  double zeroRate = 0;
  std::optional<double> fidelity; ///< of the sparse checks, percent; nothing when it was not measured
  Signer signer; ///< empty: not signed
};

/// Exit codes of failures: 3 a plan that does not fit a limit of the format, 6 the file cannot be written, 7 too large, 1 a bug.
llvm::Error writeEngine(llvm::StringRef path, const EngineContents &contents);

} // namespace tare
