// The order of a compile. In: an imported module. Out: the same module after the phase that the options stop at. What must hold after each phase
// is in docs/architecture.md and checked by Contracts.cpp; passes/Pipeline.cpp is the reading order of the whole compiler.
#pragma once
#include "compiler/graph/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <memory>

namespace tare {
namespace plan {
class ProgramOp;
}

/// One row of the pipeline: which pass runs in which phase. A required pass cannot be disabled.
struct PassRow {
  Phase phase;
  llvm::StringLiteral name; ///< the pass argument, as `--disable-pass` takes it
  bool required;
  std::unique_ptr<mlir::Pass> (*create)(const CompileOptions &);
};
/// All rows in execution order.
llvm::ArrayRef<PassRow> pipelineTable();

/// Appends the passes of one phase, leaving out `options.disabledPasses`.
void addPhase(mlir::OpPassManager &manager, Phase phase, const CompileOptions &options);

/// Checks what holds after `phase` (Contracts.h).
mlir::LogicalResult checkPhase(Phase phase, mlir::ModuleOp module);

/// "imported" ... "engine", as `--stop-after` spells them.
llvm::StringRef phaseName(Phase phase);
std::optional<Phase> phaseOf(llvm::StringRef name);

/// Runs all phases up to `options.stopAfter` (Planned at most: the engine is made by the driver), checks the contract of each and calls
/// `onPhase` after it. Diagnostics go to the context's handlers. Fails on the first failing pass or broken contract, and on a disabled
/// pass that does not exist or is required. `working` is told which layer a long phase is at, from any thread.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, const CompileOptions &options, llvm::function_ref<void(Phase, mlir::ModuleOp)> onPhase = {},
                                std::function<void(const std::string &)> working = {});

/// A module after `marked` or `checked` becomes what graph-measure-fidelity-checks sees: layers inlined, clean ops, checks recognised. For whoever derives its decisions again.
mlir::LogicalResult bringToChecks(mlir::ModuleOp module, const CompileOptions &options);

/// Plans a copy of a module that stands after `checked` or `pruned`, with every layer that is still there kept, and shows it to `use`: for estimates. What the
/// passes have to say about the copy is not repeated; errors go to the context's handlers. `from`: the first phase that the module has not seen.
mlir::LogicalResult withPlan(mlir::ModuleOp module, const CompileOptions &options, llvm::function_ref<void(plan::ProgramOp)> use, Phase from = Phase::Clean);

} // namespace tare
