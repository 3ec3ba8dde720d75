// All measurements of all candidates of a function (spec 3). In: main with graph.layer regions, calibration, options. Out: one Evidence per layer, without
// verdict. Weights and proof are exact; forward (b) and gradient (c) run the reference over the samples. Threads share samples only: every norm is
// computed by one thread in a fixed order, and maxima over samples are taken in sample order, so the numbers do not depend on threads.
#pragma once
#include "compiler/checks/Calibration.h"
#include "compiler/checks/Evidence.h"
#include "compiler/graph/Graph.h"
#include <functional>

namespace tare::checks {

/// One sample's run, shared by the forward check, the gradient check and the heatmap.
struct SampleRun {
  const reference::Values &known;
  reference::Symbols symbols;
  reference::Values values;
};

struct ForwardResult {
  double l2 = 0;
  std::string why; ///< for a norm that is not finite: where the state became non-finite
};
/// Check (b) on one sample: L2 of (output - input) over the whole activation, summed in row-major order in float64.
ForwardResult measureForward(graph::LayerOp layer, const SampleRun &run);

struct GradientResult {
  double branch = 0, parameters = 0;
};
/// Check (c) on one sample and one cotangent number: for every layer the VJP of (out - in) to its input and the norm over its parameters.
/// `missing` receives the ops that have no VJP. `loss`: index of the result of main that is the loss, or nothing for random cotangents.
/// `onOp` is called for each op of main that the sweep goes back through.
llvm::Expected<std::vector<GradientResult>> measureGradient(mlir::func::FuncOp main, llvm::ArrayRef<graph::LayerOp> layers, const SampleRun &run,
                                                            uint64_t seed, unsigned sample, unsigned cotangent, std::optional<unsigned> loss,
                                                            llvm::SmallVectorImpl<std::string> &missing, llvm::function_ref<void(mlir::Operation &)> onOp = {});

/// Seeded normal cotangents at the floating-point results of main (all ones at the loss when there is one).
reference::Values randomCotangents(mlir::func::FuncOp main, const SampleRun &run, uint64_t seed, unsigned sample, unsigned cotangent,
                                   std::optional<unsigned> loss);

/// `onRun` sees every sample's run after its checks, in any order and from any of the threads; it may read the values in `needed` beside the layers'
/// inputs and outputs (of a long sample, other large values are not kept: reference/Recall.h). `working` is told which layer is being worked on, from any thread.
llvm::Expected<std::vector<Evidence>> measureLayers(mlir::func::FuncOp main, llvm::ArrayRef<graph::LayerOp> layers, const Calibration &calibration,
                                                    const CompileOptions &options, llvm::function_ref<void(unsigned, const SampleRun &)> onRun = {},
                                                    llvm::ArrayRef<mlir::Value> needed = {},
                                                    const std::function<void(const std::string &)> &working = {});

/// The result of main that --loss names: it must exist and have one floating-point element.
llvm::Expected<std::optional<unsigned>> findLoss(mlir::func::FuncOp main, const CompileOptions &options);

} // namespace tare::checks
