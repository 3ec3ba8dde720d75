// Reductions as pulled elements: one accumulator loop nest per requested element, the last reduced dim innermost. Sums of floats may be reassociated, so that
// they vectorise; everything else about floats stays exact. Formulas: ONNX ReduceX, ArgMax, ArgMin, CumSum.
#include "compiler/codegen/IndexWalk.h"
#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;

namespace tare::codegen {

static Type elementType(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

/// Least or greatest value of a type: where a maximum or minimum starts.
static Value extreme(Emitter &e, Type element, bool least) {
  Type type = Emitter::scalarType(element);
  if (isa<FloatType>(type)) return e.number(type, least ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  unsigned width = type.getIntOrFloatBitWidth();
  bool isSigned = !element.isUnsignedInteger() && !element.isInteger(1);
  APInt value = isSigned ? (least ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width)) : (least ? APInt::getMinValue(width) : APInt::getMaxValue(width));
  return e.b.create<arith::ConstantOp>(e.loc, IntegerAttr::get(type, value));
}

/// Loops over the tuples of `dims`, carrying values through.
static SmallVector<Value> nest(Emitter &e, ArrayRef<Dim> dims, SmallVector<Value> &at, ValueRange init,
                               llvm::function_ref<SmallVector<Value>(Indices, ValueRange)> body) {
  if (at.size() == dims.size()) return body(at, init);
  return e.loop(e.integer(0), e.dim(dims[at.size()]), init, [&](Value iv, ValueRange carried) {
    at.push_back(iv);
    SmallVector<Value> next = nest(e, dims, at, carried, body);
    at.pop_back();
    return next;
  });
}

Value Emitter::accumulate(Value sum, Value x) {
  if (isa<FloatType>(x.getType())) return b.create<arith::AddFOp>(loc, sum, x, arith::FastMathFlags::contract | arith::FastMathFlags::reassoc);
  return b.create<arith::AddIOp>(loc, sum, x);
}

Value Emitter::pullReduce(graph::ReduceOp op, Indices indices) {
  using K = graph::ReduceKind;
  using B = graph::BinaryKind;
  Value x = op.getX();
  Type element = elementType(x), type = scalarType(element);
  Dims dims = graph::dimsOf(x), reduced;
  for (int64_t axis : op.getAxes()) reduced.push_back(dims[axis]);
  auto inputIndices = [&](Indices at) { return reductionIndices<Value>(op, indices, at); };
  auto fold = [&](Value init, llvm::function_ref<Value(Value, Value)> step) {
    SmallVector<Value> at;
    return nest(*this, reduced, at, init, [&](Indices i, ValueRange carried) -> SmallVector<Value> { return {step(carried[0], this->element(x, inputIndices(i)))}; })[0];
  };
  auto sumOf = [&](llvm::function_ref<Value(Value)> term) { return fold(number(type, 0), [&](Value sum, Value v) { return accumulate(sum, term(v)); }); };
  auto same = [](Value v) { return v; };
  auto square = [&](Value v) { return binary(B::Mul, v, v, element); };
  switch (op.getKind()) {
  case K::Sum: return sumOf(same);
  case K::Mean: return binary(B::Div, sumOf(same), cast(dim(elementCount(reduced)), i64(), isa<FloatType>(element) ? type : element), element);
  case K::L1: return sumOf([&](Value v) { return unary(graph::UnaryKind::Abs, v, element); });
  case K::L2: return unary(graph::UnaryKind::Sqrt, sumOf(square), element);
  case K::SumSquare: return sumOf(square);
  case K::LogSum: return unary(graph::UnaryKind::Log, sumOf(same), element);
  case K::LogSumExp: {
    Value most = fold(extreme(*this, element, true), [&](Value m, Value v) { return binary(B::Max, m, v, element); });
    Value infinite = unary(graph::UnaryKind::IsInf, most, element); // inf - inf would be NaN where the true result is inf
    Value shift = select(infinite, number(type, 0), most);
    Value sum = sumOf([&](Value v) { return unary(graph::UnaryKind::Exp, binary(B::Sub, v, shift, element), element); });
    return binary(B::Add, unary(graph::UnaryKind::Log, sum, element), shift, element);
  }
  case K::Max: return fold(extreme(*this, element, true), [&](Value m, Value v) { return binary(B::Max, m, v, element); });
  case K::Min: return fold(extreme(*this, element, false), [&](Value m, Value v) { return binary(B::Min, m, v, element); });
  case K::Prod: return fold(number(type, 1), [&](Value p, Value v) { return binary(B::Mul, p, v, element); });
  case K::ArgMax:
  case K::ArgMin: {
    bool most = op.getKind() == K::ArgMax;
    Value init[] = {extreme(*this, element, most), integer(0)};
    SmallVector<Value> at;
    return nest(*this, reduced, at, init, [&](Indices i, ValueRange carried) -> SmallVector<Value> {
      Value v = this->element(x, inputIndices(i));
      B better = op.getLastIndex() ? (most ? B::Ge : B::Le) : (most ? B::Gt : B::Lt);
      Value wins = binary(better, v, carried[0], element);
      if (isa<FloatType>(type)) { // NaN wins over numbers, the first one unless the last is asked for
        Value nan = unary(graph::UnaryKind::IsNaN, v, element);
        if (!op.getLastIndex()) nan = b.create<arith::AndIOp>(loc, nan, b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::ORD, carried[0], carried[0]));
        wins = b.create<arith::OrIOp>(loc, wins, nan);
      }
      return {select(wins, v, carried[0]), select(wins, i[0], carried[1])};
    })[1];
  }
  }
  return {};
}

/// The running sum up to (or, with reverse, from) the index: quadratic, for the few places where a cumsum is not the root of its own loop.
Value Emitter::pullCumSum(graph::CumSumOp op, Indices indices) {
  size_t axis = op.getAxis();
  Type type = scalarType(elementType(op.getX()));
  Value here = indices[axis], next = add(here, integer(1));
  Value lo = op.getReverse() ? (op.getExclusive() ? next : here) : integer(0);
  Value hi = op.getReverse() ? dim(graph::dimsOf(op.getX())[axis]) : (op.getExclusive() ? here : next);
  return loop(lo, hi, number(type, 0), [&](Value iv, ValueRange sum) -> SmallVector<Value> {
    SmallVector<Value> at(indices);
    at[axis] = iv;
    return {accumulate(sum[0], element(op.getX(), at))};
  })[0];
}

/// A product element as a dot product: for types and forms that no microkernel takes.
Value Emitter::pullMatmul(graph::MatmulOp op, Indices indices) {
  Dims l = graph::dimsOf(op.getLhs()), r = graph::dimsOf(op.getRhs()), dims = graph::dimsOf(op.getResult());
  Type element = elementType(op.getResult()), type = scalarType(element);
  bool hasRow = l.size() > 1, hasColumn = r.size() > 1;
  size_t batch = indices.size() - hasRow - hasColumn;
  auto side = [&](ArrayRef<Dim> own, Value first, Value second) {
    SmallVector<Value> at;
    size_t lead = own.size() > 2 ? own.size() - 2 : 0;
    for (size_t i = 0; i < lead; ++i) {
      Value index = indices[batch - lead + i];
      if (own[i].isConstant(1))
        index = integer(0);
      else if (!(own[i] == dims[batch - lead + i]))
        index = mul(index, b.create<arith::ExtUIOp>(loc, i64(), b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, dim(own[i]), integer(1))));
      at.push_back(index);
    }
    if (first) at.push_back(first);
    if (second) at.push_back(second);
    return at;
  };
  Value row = hasRow ? indices[batch] : Value(), column = hasColumn ? indices.back() : Value();
  return loop(integer(0), dim(l.back()), number(type, 0), [&](Value k, ValueRange sum) -> SmallVector<Value> {
    Value x = this->element(op.getLhs(), side(l, row, k)), y = this->element(op.getRhs(), side(r, k, column));
    return {accumulate(sum[0], binary(graph::BinaryKind::Mul, x, y, element))};
  })[0];
}

} // namespace tare::codegen
