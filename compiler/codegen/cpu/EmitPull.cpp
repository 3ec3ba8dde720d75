// Pulling: the scalar at given indices of any value in a kernel body. Pointwise ops and memory here; moving ops are in EmitMoving.cpp, reductions in EmitReduce.cpp.
#include "compiler/codegen/cpu/Emitter.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tare::codegen {

static const void *const *keysOf(Indices indices, SmallVectorImpl<const void *> &keys) {
  for (Value v : indices) keys.push_back(v.getAsOpaquePointer());
  return keys.data();
}

/// A dim of size 1 has one index: broadcasting says 0 where a loop over that dim has its counter, and both must find what was bound.
static SmallVector<Value> canonical(Emitter &e, Value tensor, Indices indices) {
  SmallVector<Value> result(indices);
  if (e.flat) return result;
  for (auto [index, d] : llvm::zip(result, graph::dimsOf(tensor)))
    if (d.isConstant(1)) index = e.integer(0);
  return result;
}

Value Emitter::element(Value tensor, Indices indices) {
  SmallVector<Value> at = canonical(*this, tensor, indices);
  Key key{tensor.getAsOpaquePointer(), {}};
  keysOf(at, key.second);
  for (auto &scope : llvm::reverse(memos))
    if (auto it = scope.find(key); it != scope.end()) return it->second;
  Value scalar;
  if (roots.contains(tensor)) { // packed weights and rows cannot be pulled again: a wrong number must not come out
    entry->getParentOp()->getParentOp()->setAttr(kMissedRoot, b.getUnitAttr());
    scalar = number(scalarType(cast<RankedTensorType>(tensor.getType()).getElementType()), 0);
  } else {
    scalar = pull(tensor, at);
  }
  return memos.back()[key] = scalar;
}

void Emitter::bind(Value tensor, Indices indices, Value scalar) {
  SmallVector<Value> at = canonical(*this, tensor, indices);
  Key key{tensor.getAsOpaquePointer(), {}};
  keysOf(at, key.second);
  memos.back()[key] = scalar;
}

void Emitter::bindRoot(Value tensor, Indices indices, Value scalar) {
  bind(tensor, indices, scalar);
  roots.insert(tensor);
}

SmallVector<Value> Emitter::broadcast(Value operand, Indices indices, ArrayRef<Dim> dims) {
  Dims own = graph::dimsOf(operand);
  if (flat) return {elementCount(own).isConstant(1) ? integer(0) : indices[0]};
  SmallVector<Value> result;
  size_t shift = dims.size() - own.size();
  for (auto [i, d] : llvm::enumerate(own)) {
    Value index = indices[i + shift];
    if (d.isConstant(1))
      index = integer(0);
    else if (!(d == dims[i + shift])) { // only a run can tell whether this dim is repeated: a stride of 0 or 1
      Value repeats = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, dim(d), integer(1));
      index = mul(index, b.create<arith::ExtUIOp>(loc, i64(), repeats));
    }
    result.push_back(index);
  }
  return result;
}

static Type elementType(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

/// A scalar constant of the IR, exact for every type.
static Value constantScalar(Emitter &e, Attribute value, Type element) {
  Type type = Emitter::scalarType(element);
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (isa<FloatType>(element))
      value = FloatAttr::get(element, *dense.value_begin<APFloat>());
    else
      value = IntegerAttr::get(type, *dense.value_begin<APInt>());
  }
  if (auto number = dyn_cast<FloatAttr>(value)) {
    if (isa<FloatType>(type)) {
      APFloat wide = number.getValue();
      bool lost;
      wide.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      return e.b.create<arith::ConstantOp>(e.loc, FloatAttr::get(type, wide));
    }
    return e.number(type, number.getValueAsDouble());
  }
  if (auto number = dyn_cast<IntegerAttr>(value)) {
    if (isa<FloatType>(type)) return e.number(type, static_cast<double>(number.getInt()));
    return e.b.create<arith::ConstantOp>(e.loc, IntegerAttr::get(type, number.getValue().sextOrTrunc(type.getIntOrFloatBitWidth())));
  }
  return e.number(type, 0);
}

Value Emitter::pullDequantize(graph::DequantizeOp op, Indices indices) {
  Type target = elementType(op.getResult());
  auto parameter = [&](Value tensor) {
    Dims dims = graph::dimsOf(tensor);
    if (elementCount(dims).isConstant(1)) return element(tensor, SmallVector<Value>(dims.size(), integer(0)));
    size_t axis = op.getAxis();
    if (op.getBlockSize() == 0) return element(tensor, {indices[axis]});
    SmallVector<Value> blocked(indices);
    blocked[axis] = div(indices[axis], integer(op.getBlockSize()));
    return element(tensor, blocked);
  };
  auto widened = [&](Value scalar, Value tensor) { return cast(scalar, elementType(tensor), target); };
  Value x = widened(element(op.getX(), indices), op.getX());
  if (op.getZeroPoint()) x = binary(graph::BinaryKind::Sub, x, widened(parameter(op.getZeroPoint()), op.getZeroPoint()), target);
  return binary(graph::BinaryKind::Mul, x, widened(parameter(op.getScale()), op.getScale()), target);
}

Value Emitter::pull(Value tensor, Indices indices) {
  if (auto it = memory.find(tensor); it != memory.end()) return load(it->second, indices);
  Operation *op = tensor.getDefiningOp();
  Dims dims = graph::dimsOf(tensor);
  Type type = elementType(tensor);
  auto at = [&](Value operand) { return element(operand, broadcast(operand, indices, dims)); };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](graph::ConstantOp c) { return constantScalar(*this, c.getValue(), type); })
      .Case([&](graph::FillOp f) { return constantScalar(*this, f.getValue(), type); })
      .Case([&](graph::UnaryOp u) { return unary(u.getKind(), element(u.getX(), indices), elementType(u.getX())); })
      .Case([&](graph::BinaryOp o) {
        Value x = at(o.getLhs()), y = at(o.getRhs());
        Type xType = elementType(o.getLhs());
        if (o.getKind() == graph::BinaryKind::Pow) { // ONNX lets the exponent's type differ
          if (std::optional<double> power = graph::scalarValue(o.getRhs()); power && isa<FloatType>(xType)) {
            if (*power == 2) return binary(graph::BinaryKind::Mul, x, x, xType);
            if (*power == 3) return binary(graph::BinaryKind::Mul, binary(graph::BinaryKind::Mul, x, x, xType), x, xType);
            if (*power == 1) return x;
          }
          if (isa<IntegerType>(xType) && isa<FloatType>(elementType(o.getRhs()))) {
            Type f64 = b.getF64Type();
            return cast(binary(graph::BinaryKind::Pow, cast(x, xType, f64), cast(y, elementType(o.getRhs()), f64), f64), f64, xType);
          }
          y = cast(y, elementType(o.getRhs()), isa<FloatType>(xType) ? Type(scalarType(xType)) : xType);
        }
        return binary(o.getKind(), x, y, xType);
      })
      .Case([&](graph::SelectOp s) {
        Value cond = at(s.getCond()), x = at(s.getLhs()), y = at(s.getRhs());
        return select(cond, x, y);
      })
      .Case([&](graph::CastOp c) { return cast(element(c.getX(), indices), elementType(c.getX()), type); })
      .Case([&](graph::DequantizeOp d) { return pullDequantize(d, indices); })
      .Case([&](graph::ReduceOp r) { return pullReduce(r, indices); })
      .Case([&](graph::CumSumOp c) { return pullCumSum(c, indices); })
      .Case([&](graph::MatmulOp m) { return pullMatmul(m, indices); })
      .Case([&](graph::FidelityCheckOp c) { // sum_k b_k E_k; the bits were made by the microkernel
        Value sum;
        for (auto [k, bit] : llvm::enumerate(checkBits)) {
          Value term = b.create<arith::MulFOp>(loc, bit, element(c.getE(), {integer(static_cast<int64_t>(k)), indices.back()}));
          sum = sum ? accumulate(sum, term) : term;
        }
        return sum;
      })
      .Default([&](Operation *) { return pullMoving(tensor, indices); });
}

} // namespace tare::codegen
