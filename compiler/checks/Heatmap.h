// The redundancy heatmap (spec 5): per residual block what it contributes, how much gradient passes through it, and its share of the FLOPs. In: main after
// verdicts, one run per sample. Out: rows in the order of the blocks. A block is the outermost numbered module of the paths (`model.layers.3`); graphs
// without such paths have their candidate layers instead. Layers that will be removed cost nothing.
#pragma once
#include "compiler/checks/Measure.h"

namespace tare::checks {

struct HeatBlock {
  std::string name;
  mlir::Value in, out;                ///< of one type; null when the block has no single stream through it
  std::vector<mlir::Operation *> ops; ///< of main's body
};
std::vector<HeatBlock> findBlocks(mlir::func::FuncOp main);

struct HeatRow {
  std::optional<double> contribution; ///< ||out - in|| / ||out||, largest over samples
  std::optional<double> gradientNorm; ///< of the VJP of (out - in) to in, for one random cotangent per sample, largest over samples
};
/// One sample's row per block.
std::vector<HeatRow> measureBlocks(mlir::func::FuncOp main, llvm::ArrayRef<HeatBlock> blocks, const SampleRun &run, uint64_t seed, unsigned sample);
/// Joins the rows of all samples.
void joinRows(std::vector<HeatRow> &into, const std::vector<HeatRow> &sample);

/// Share of each block in the FLOPs of main at the sizes of a run, without layers whose verdict is `pruned`; in [0, 1].
std::vector<double> flopShares(mlir::func::FuncOp main, llvm::ArrayRef<HeatBlock> blocks, const reference::Symbols &symbols);

} // namespace tare::checks
