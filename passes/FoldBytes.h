// Folding of transposes and reshapes by moving stored bytes: any size, any element type, no decoding.
#pragma once
#include "compiler/graph/Graph.h"

namespace tare {
/// The constant that a transpose or reshape of a constant gives, under the constant's own name; null when `op` is neither, or when the element type
/// is packed. A reshape shares the bytes of its operand.
mlir::Value foldBytes(mlir::Operation *op, mlir::OpBuilder &builder);
} // namespace tare
