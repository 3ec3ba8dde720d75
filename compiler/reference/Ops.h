// Inside of the reference: what one op's forward and VJP function get, and the table that names them (OpTable.cpp). Every op has one
// result; region ops (layer, group) are walked by Evaluator.cpp and have no row. Shapes are concrete here: symbols are already bound.
#pragma once
#include "compiler/reference/Evaluator.h"

namespace tare::reference {

using Shape = std::vector<int64_t>;

struct Call {
  mlir::Operation *op;
  llvm::ArrayRef<const Tensor *> operands;
  Shape shape; ///< of the result
  const Symbols &symbols;
  const Tensor &operand(unsigned i) const { return *operands[i]; }
  /// Zeros of the result's element type and shape.
  Tensor result() const;
};

/// What a VJP gets: the forward call, its result and the result's cotangent. `wanted[i]`: whether operand i's cotangent is asked for.
struct VjpCall : Call {
  const Tensor &value, &cotangent;
  llvm::ArrayRef<bool> wanted;
};
/// One per operand; an entry without element type means zero (integers, steps, not wanted).
using Cotangents = llvm::SmallVector<Tensor>;

using Forward = llvm::Expected<Tensor> (*)(const Call &);
using Vjp = Cotangents (*)(const VjpCall &);
struct Row {
  llvm::StringLiteral name;
  Forward forward;
  Vjp vjp;
};
/// Nothing for ops without a reference.
const Row *findRow(llvm::StringRef opName);

// One forward and one VJP per op, in the files named after the groups of GraphOps.td.
#define TARE_REFERENCE_OP(name) llvm::Expected<Tensor> name(const Call &); Cotangents name##Vjp(const VjpCall &);
TARE_REFERENCE_OP(constant) TARE_REFERENCE_OP(dimsConstant) TARE_REFERENCE_OP(range) TARE_REFERENCE_OP(fill)
TARE_REFERENCE_OP(unary) TARE_REFERENCE_OP(binary) TARE_REFERENCE_OP(select) TARE_REFERENCE_OP(cast) TARE_REFERENCE_OP(dequantize)
TARE_REFERENCE_OP(reshape) TARE_REFERENCE_OP(transpose) TARE_REFERENCE_OP(expand) TARE_REFERENCE_OP(slice) TARE_REFERENCE_OP(concat)
TARE_REFERENCE_OP(pad) TARE_REFERENCE_OP(tile) TARE_REFERENCE_OP(gather) TARE_REFERENCE_OP(gatherElements) TARE_REFERENCE_OP(gatherND)
TARE_REFERENCE_OP(trilu) TARE_REFERENCE_OP(matmul) TARE_REFERENCE_OP(reduce) TARE_REFERENCE_OP(cumsum) TARE_REFERENCE_OP(softmax)
TARE_REFERENCE_OP(layerNorm) TARE_REFERENCE_OP(rmsNorm) TARE_REFERENCE_OP(attention) TARE_REFERENCE_OP(fidelityCheck)
#undef TARE_REFERENCE_OP

/// Values of #graph.dims under the bound symbols.
llvm::Expected<Shape> evaluateDims(llvm::ArrayRef<Dim> dims, const Symbols &symbols);

} // namespace tare::reference
