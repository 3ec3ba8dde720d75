// Estimates of spec 9: floating-point operations and memory traffic of graph ops as symbolic formulas. A multiply-add is 2 FLOPs. An op with regions
// (graph.layer, graph.group) counts what is inside; a group reads its operands and writes its results once, whatever happens inside.
#pragma once
#include "compiler/graph/Dim.h"

namespace mlir { class Operation; class Block; class Type; }

namespace tare {

/// FLOPs of one run of the op. Per element of the result: 1 for arithmetic and comparisons, 0 for casts and moves, and for named functions what
/// a careful scalar version needs: gelu_erf 5, gelu_tanh 8, silu 4, softmax 5, layer_norm 8, rms_norm 5. matmul: 2*M*N*K. attention: 2*S*T*(D + Dv)
/// per head and 5 per score. fidelity_check: two products and 3 per distance component.
Dim flopsOf(mlir::Operation *op);
/// Bytes read and written: operands and results once. Views are free; gather and slice count what they touch, not the whole table.
Dim bytesOf(mlir::Operation *op);
/// Sums over all ops of a block.
Dim flopsOf(mlir::Block &block);
Dim bytesOf(mlir::Block &block);
/// Bytes of a tensor type as stored (i1 is a byte, i4 half a byte, rounded up).
Dim bytesOf(mlir::Type tensor);

} // namespace tare
