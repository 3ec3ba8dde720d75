// Small helpers that the rewriting passes share: scalars, constants, dead ops, matching of written-out forms.
// Nothing here decides whether a rewrite is allowed; that is each pass's own business.
#pragma once
#include "compiler/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>

namespace tare {

/// The body of `main`; null when the module has none.
mlir::Block *mainBody(mlir::ModuleOp module);
/// Erases ops of the block (not of nested regions) whose results have no use, from the end to the start: linear.
void eraseDeadOps(mlir::Block &block);
/// Replaces all uses and leaves `op` dead in its place (eraseDeadOps takes it).
void replaceBy(mlir::Operation *op, mlir::Value value);

/// A constant of `type` with row-major `bytes`; large ones (over 64 elements) as dense_resource<> under a name of their own.
mlir::Value makeConstant(mlir::OpBuilder &builder, mlir::Location location, llvm::StringRef name, mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);
/// A constant of one repeated float value and `type`.
mlir::Value makeSplat(mlir::OpBuilder &builder, mlir::Location location, mlir::RankedTensorType type, double value);
/// Bytes of one element as stored; nothing for packed types (i4).
std::optional<unsigned> elementBytes(mlir::Type element);

/// The value of a one-element constant, through views and lossless casts.
std::optional<double> oneElement(mlir::Value value);
/// True when `value` is `expected` up to the rounding of `type` (the type in which the source stored the constant).
bool isAbout(double value, double expected, mlir::Type type);

/// Both operands when `value` is made by that binary op.
std::optional<std::pair<mlir::Value, mlir::Value>> binaryOf(mlir::Value value, graph::BinaryKind kind);
/// The operand when `value` is made by that unary op; null otherwise.
mlir::Value unaryOf(mlir::Value value, graph::UnaryKind kind);

/// value = factor * product of `terms`, walking mul, div by scalars and neg as long as the inner value has no other use and the same dims as `value`.
struct Product {
  double factor = 1;
  llvm::SmallVector<mlir::Value, 4> terms;
};
Product productOf(mlir::Value value);

/// The dims that NumPy broadcasting of `a` and `b` gives; a dim that is not 1 wins over a 1; nothing when two other dims differ.
std::optional<Dims> broadcast(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b);

} // namespace tare
