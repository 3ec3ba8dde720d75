// The rules of graph-simplify: each is exact in IEEE arithmetic, or says which licence it needs.
#pragma once
#include "compiler/graph/Graph.h"

namespace tare {

struct SimplifyRule {
  llvm::StringLiteral name;
  /// The value that replaces the only result of `op`; null when the rule does not apply. New ops go where the builder stands, the outermost last.
  mlir::Value (*apply)(mlir::Operation *op, mlir::OpBuilder &builder);
};

/// Rules on pointwise ops (SimplifyPointwise.cpp) and on moving ops (SimplifyMoves.cpp).
llvm::ArrayRef<SimplifyRule> pointwiseRules();
llvm::ArrayRef<SimplifyRule> movingRules();

} // namespace tare
