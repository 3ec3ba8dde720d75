// Moves stored bytes instead of evaluating. In: transpose or reshape of a constant. Out: the constant, in the same storage type. Must hold: the
// byte count of the constant fits its type (checked before anything is read).
#include "passes/FoldBytes.h"
#include "compiler/graph/Checked.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "passes/Rewrite.h"
#include <cstring>

using namespace mlir;
using namespace tare::graph;

namespace tare {

static void transposeInto(char *out, const char *in, ArrayRef<int64_t> shape, ArrayRef<int64_t> perm, size_t width) {
  size_t rank = shape.size();
  SmallVector<int64_t> strides(rank, 1), walk(rank), sizes(rank), index(rank, 0);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  int64_t total = 1;
  for (size_t i = 0; i < rank; ++i) {
    sizes[i] = shape[perm[i]];
    walk[i] = strides[perm[i]];
    total *= sizes[i];
  }
  int64_t from = 0;
  for (int64_t n = 0; n < total; ++n, out += width) {
    std::memcpy(out, in + from * static_cast<int64_t>(width), width);
    for (size_t d = rank; d-- > 0;) {
      from += walk[d];
      if (++index[d] < sizes[d]) break;
      from -= walk[d] * sizes[d];
      index[d] = 0;
    }
  }
}

static Value foldReshape(ReshapeOp op, ConstantOp constant, OpBuilder &builder) {
  auto type = cast<RankedTensorType>(op.getType());
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  ElementsAttr value;
  if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue())) value = dense.reshape(plain);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue())) value = DenseResourceElementsAttr::get(plain, resource.getRawHandle());
  return value ? Value(builder.create<ConstantOp>(op.getLoc(), type, constant.getNameAttr(), value, UnitAttr())) : Value();
}

Value foldBytes(Operation *op, OpBuilder &builder) {
  auto constant = isa<TransposeOp, ReshapeOp>(op) ? constantOf(op->getOperand(0)) : ConstantOp();
  if (!constant) return {};
  auto from = cast<RankedTensorType>(constant.getType()), type = cast<RankedTensorType>(op->getResult(0).getType());
  if (from.getNumElements() != type.getNumElements() || from.getElementType() != type.getElementType()) return {};
  if (auto reshape = dyn_cast<ReshapeOp>(op)) return foldReshape(reshape, constant, builder);
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  if (dense && dense.isSplat()) return builder.create<ConstantOp>(op->getLoc(), type, constant.getNameAttr(), dense.resizeSplat(plain), UnitAttr());
  auto width = elementBytes(type.getElementType());
  if (!width || type.getElementType().isInteger(1)) return {}; // packed: the evaluator unpacks
  ArrayRef<char> bytes = rawBytes(constant.getValue());
  auto need = checkedMul(static_cast<uint64_t>(from.getNumElements()), *width);
  if (!need || bytes.size() != *need) return {};
  std::vector<char> moved(bytes.size());
  transposeInto(moved.data(), bytes.data(), from.getShape(), cast<TransposeOp>(op).getPerm(), *width);
  return makeConstant(builder, op->getLoc(), constant.getName(), type, moved);
}

} // namespace tare
