// Pass driver for tests and for looking at one pass: MLIR text in, MLIR text out. `--graph-...` runs one pass, `--tare-clean` and `--tare-fused` run
// all passes of that phase. Registers only what a compile uses; flags of LLVM's code generators are hidden from --help.
#include "compiler/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "llvm/Support/CommandLine.h"

/// All passes of one phase as one flag.
template <tare::Phase phase> static void build(mlir::OpPassManager &manager) { tare::addPhase(manager, phase, tare::CompileOptions()); }

int main(int argc, char **argv) {
  for (auto &option : llvm::cl::getRegisteredOptions()) option.second->setHiddenFlag(llvm::cl::ReallyHidden);
  mlir::DialectRegistry registry;
  registry.insert<tare::graph::GraphDialect, tare::plan::PlanDialect, mlir::func::FuncDialect>();
  tare::registerTarePasses();
  mlir::PassPipelineRegistration<>("tare-clean", "All passes of the phase `clean`", build<tare::Phase::Clean>);
  mlir::PassPipelineRegistration<>("tare-fused", "All passes of the phase `fused`", build<tare::Phase::Fused>);
  mlir::PassPipelineRegistration<>("tare-planned", "All passes of the phase `planned`", build<tare::Phase::Planned>);
  return mlir::failed(mlir::MlirOptMain(argc, argv, "tare-opt: runs passes of the Tare compiler on MLIR text\n", registry));
}
