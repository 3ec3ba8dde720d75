// Fusion groups as the passes see them: which kind an op roots, what a group may hold, and how ops become a group (docs/architecture.md, "Fusion groups").
#pragma once
#include "compiler/graph/Graph.h"

namespace tare {

/// unary, binary, select, cast, dequantize: one scalar of each operand gives one scalar.
bool isPointwise(mlir::Operation *op);
/// Every element of the result is one element of an operand, a symbolic integer or a fixed value.
bool movesElements(mlir::Operation *op);
/// A constant of one element that a group may hold in its body (overridable ones stay outside).
bool isScalarConstant(mlir::Value value);
/// The function argument or group result or constant behind views, i.e. what a block argument of a group may be bound to.
mlir::Value behindViews(mlir::Value value);

/// The sparse check that is added to this matmul and reads the same rows; null for everything else.
graph::FidelityCheckOp fusedCheckOf(mlir::Operation *op);

/// The kind of group that `op` is the root of; nothing for constants, views and structure.
std::optional<graph::GroupKind> groupKindOf(mlir::Operation *op);

/// Builds a group at the builder's place from `ops` (in order; all without regions). `results` are values of `ops`; their uses outside are replaced.
/// Constants of one element move in; all other operands become block arguments, those of `root` first, then in order of first use. Inside, source names and
/// other discardable attributes are dropped, so that equal bodies are equal. The ops are left for the caller to erase.
graph::GroupOp buildGroup(mlir::OpBuilder &builder, mlir::Operation *root, graph::GroupKind kind, llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> results);

/// Checks the rules of the group's kind; an error at the group's location otherwise.
mlir::LogicalResult checkGroup(graph::GroupOp group);

} // namespace tare
