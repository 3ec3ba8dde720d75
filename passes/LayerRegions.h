// From a marked group of ops to a graph.layer region, or to the reason why there is none (spec 2, "Region"). In: the block, one group. Out: the op, or
// a rejection with its code. What cannot be a layer is rejected, never guessed; nothing is changed in that case.
#pragma once
#include "passes/LayerMarks.h"
#include <variant>

namespace tare {

struct LayerRejection {
  llvm::StringRef code; ///< NOT_ONE_OUTPUT, NO_ACTIVATION_INPUT, SHAPE_OR_DTYPE_CHANGES
  std::string why, hint;
};

/// `erased` collects the ops that went (dead members, activation-free ones that only the layer used); the pointers are dangling.
std::variant<graph::LayerOp, LayerRejection> formLayer(const LayerGroup &group, const BlockFacts &facts, llvm::SmallVectorImpl<mlir::Operation *> &erased);

/// Ops that lie between members but have neither path nor mark of their own (casts of a converter, activations of an exporter without names), and
/// for groups marked by initializers only the residual Add after them.
void addUnmarkedBetween(LayerGroup &group, const BlockFacts &facts, const llvm::DenseSet<mlir::Operation *> &marked);

} // namespace tare
