// The other pointwise ops: select, cast, dequantize. A cast to a narrower float rounds to it, to an integer truncates (out of range: wraps, NaN: 0),
// to bool is != 0; its cotangent passes unrounded. Select passes a cotangent to the chosen side only, so 0 * NaN of the other side never appears.
#include "compiler/reference/Math.h"
#include "compiler/reference/Walk.h"

namespace tare::reference {

llvm::Expected<Tensor> select(const Call &call) {
  const Tensor &c = call.operand(0), &a = call.operand(1), &b = call.operand(2);
  Tensor y = call.result();
  int64_t i = 0;
  walk<3>(y.shape, {broadcastStrides(c.shape, y.shape), broadcastStrides(a.shape, y.shape), broadcastStrides(b.shape, y.shape)}, [&](auto &at) {
    bool first = c.ints[at[0]];
    if (y.isFloat())
      y.floats[i++] = first ? a.floats[at[1]] : b.floats[at[2]];
    else
      y.ints[i++] = first ? a.ints[at[1]] : b.ints[at[2]];
  });
  return y;
}

Cotangents selectVjp(const VjpCall &call) {
  Cotangents result(3);
  const Tensor &c = call.operand(0), &g = call.cotangent;
  for (int side = 1; side <= 2; ++side) {
    const Tensor &operand = call.operand(side);
    if (!call.wanted[side] || !operand.isFloat()) continue;
    result[side] = Tensor::zeros(operand.element, operand.shape);
    int64_t i = 0;
    walk<2>(g.shape, {broadcastStrides(c.shape, g.shape), broadcastStrides(operand.shape, g.shape)}, [&](auto &at) {
      if ((c.ints[at[0]] != 0) == (side == 1)) result[side].floats[at[1]] += g.floats[i];
      ++i;
    });
  }
  return result;
}

static int64_t truncate(double v) {
  if (!(std::fabs(v) < 0x1p63)) return v != v ? 0 : v > 0 ? INT64_MAX : INT64_MIN;
  return static_cast<int64_t>(v);
}

llvm::Expected<Tensor> cast(const Call &call) {
  const Tensor &x = call.operand(0);
  Tensor y = call.result();
  int64_t n = y.elementCount();
  if (auto to = llvm::dyn_cast<mlir::FloatType>(y.element)) {
    bool narrower = !x.isFloat() || llvm::cast<mlir::FloatType>(x.element).getFPMantissaWidth() > to.getFPMantissaWidth() ||
                    llvm::cast<mlir::FloatType>(x.element).getWidth() > to.getWidth();
    bool isUnsigned = x.element.isUnsignedInteger();
    for (int64_t i = 0; i < n; ++i) {
      double v = x.isFloat() ? x.floats[i] : isUnsigned ? static_cast<double>(static_cast<uint64_t>(x.ints[i])) : static_cast<double>(x.ints[i]);
      y.floats[i] = narrower ? roundTo(to, v) : v;
    }
    return y;
  }
  auto to = llvm::cast<mlir::IntegerType>(y.element);
  for (int64_t i = 0; i < n; ++i) {
    if (to.getWidth() == 1)
      y.ints[i] = x.isFloat() ? x.floats[i] != 0 : x.ints[i] != 0;
    else
      y.ints[i] = wrapTo(to, x.isFloat() ? truncate(x.floats[i]) : x.ints[i]);
  }
  return y;
}

Cotangents castVjp(const VjpCall &call) {
  Cotangents result(1);
  const Tensor &x = call.operand(0);
  if (!x.isFloat() || !llvm::isa<mlir::FloatType>(call.value.element)) return result;
  result[0] = call.cotangent;
  result[0].element = x.element;
  return result;
}

/// For every element of x the offsets into scale and zero point, which have x's shape with the axis divided by the block, one axis, or one element.
template <typename Fn> static void walkQuantized(const Call &call, Fn fn) {
  auto op = llvm::cast<graph::DequantizeOp>(call.op);
  const Tensor &x = call.operand(0), &scale = call.operand(1);
  int64_t axis = op.getAxis(), block = op.getBlockSize(), rank = x.shape.size();
  Shape index(rank, 0), scaleStrides = rowMajorStrides(scale.shape);
  for (int64_t i = 0, n = x.elementCount(); i < n; ++i) {
    int64_t at = 0;
    if (block > 0 && scale.shape.size() == x.shape.size())
      for (int64_t d = 0; d < rank; ++d) at += (d == axis ? index[d] / block : index[d]) * scaleStrides[d];
    else if (scale.elementCount() > 1)
      at = index[axis];
    fn(i, at);
    for (int64_t d = rank - 1; d >= 0 && ++index[d] == x.shape[d]; --d) index[d] = 0;
  }
}

llvm::Expected<Tensor> dequantize(const Call &call) {
  const Tensor &x = call.operand(0), &scale = call.operand(1);
  const Tensor *zero = call.operands.size() > 2 ? call.operands[2] : nullptr;
  Tensor y = call.result();
  walkQuantized(call, [&](int64_t i, int64_t at) {
    double code = x.isFloat() ? x.floats[i] : static_cast<double>(x.ints[i]);
    double shift = !zero ? 0 : zero->isFloat() ? zero->floats[at] : static_cast<double>(zero->ints[at]);
    y.floats[i] = (code - shift) * scale.floats[at];
  });
  return y;
}

Cotangents dequantizeVjp(const VjpCall &call) {
  Cotangents result(call.operands.size());
  const Tensor &x = call.operand(0), &scale = call.operand(1);
  const Tensor *zero = call.operands.size() > 2 ? call.operands[2] : nullptr;
  if (!call.wanted[1]) return result;
  result[1] = Tensor::zeros(scale.element, scale.shape);
  walkQuantized(call, [&](int64_t i, int64_t at) {
    double code = x.isFloat() ? x.floats[i] : static_cast<double>(x.ints[i]);
    double shift = !zero ? 0 : zero->isFloat() ? zero->floats[at] : static_cast<double>(zero->ints[at]);
    result[1].floats[at] += call.cotangent.floats[i] * (code - shift);
  });
  return result;
}

} // namespace tare::reference
