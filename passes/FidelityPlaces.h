// Where a fidelity check can be fused (spec 6). In: clean ops. Out: the sum that it is a term of and the FFN-up matmul beside it, or why it stays dense. Two passes ask:
// the one that measures leaves out what will be dense, the one that fuses acts. Holds: nothing is changed.
#pragma once
#include "compiler/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace tare {

/// `own`: the sum with the check's result as a term; `matmul`: the product of the check's h among the other terms.
struct CheckPlace {
  graph::BinaryOp own;
  graph::MatmulOp matmul;
};
std::optional<CheckPlace> placeOf(graph::FidelityCheckOp check);

/// What all fused checks of main share: batch and tokens of the first check that has three dimensions.
struct CheckTokens {
  Dim batch, tokens;
  std::string blocked; ///< why no check of this model can be sparse; empty
};
CheckTokens checkTokens(mlir::func::FuncOp main);

/// Empty when it can be fused.
std::string whyNotFusable(graph::FidelityCheckOp check, const CheckTokens &tokens);

} // namespace tare
