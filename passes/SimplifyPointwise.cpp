// Exact rules on pointwise ops. In: one op. Out: an equal value, or none. What is not here on purpose: x - x, x + 0.0 (-0.0 + 0.0 is +0.0), x * 0,
// regrouping of sums and products, x / c as x * (1/c): each changes some value (B09, B11, B12).
#include "passes/Rewrite.h"
#include "passes/SimplifyRules.h"
#include <cmath>

using namespace mlir;
using namespace tare::graph;

namespace tare {

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

/// The same value when dims and type agree; the caller has shown that the elements do.
static Value same(Operation *op, Value value) { return value.getType() == op->getResult(0).getType() ? value : Value(); }

static Value dropIdentity(Operation *op, OpBuilder &) {
  auto unary = dyn_cast<UnaryOp>(op);
  return unary && unary.getKind() == UnaryKind::Identity ? same(op, unary.getX()) : Value();
}

static bool isLossless(Type from, Type to) {
  auto a = dyn_cast<FloatType>(from), b = dyn_cast<FloatType>(to);
  if (a && b) return a == b || b.isF64() || (b.isF32() && a.getWidth() < 32);
  auto i = dyn_cast<IntegerType>(from), j = dyn_cast<IntegerType>(to);
  if (i && j) return i == j || (i.getWidth() < j.getWidth() && (i.getSignedness() == j.getSignedness() || i.getWidth() == 1));
  return false;
}

/// cast to the same type; cast of a lossless cast.
static Value dropCast(Operation *op, OpBuilder &builder) {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast) return {};
  if (Value x = same(op, cast.getX())) return x;
  auto inner = cast.getX().getDefiningOp<CastOp>();
  if (!inner || !isLossless(getElementTypeOrSelf(inner.getX()), getElementTypeOrSelf(inner))) return {};
  if (inner.getX().getType() == cast.getType()) return inner.getX();
  return builder.create<CastOp>(op->getLoc(), cast.getType(), inner.getX());
}

/// Adding or multiplying by a one-element constant that changes no value: x + -0.0, x - 0.0, x * 1, x / 1; for integers also x + 0. Result dims as x.
static Value dropUnit(Operation *op, OpBuilder &) {
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary) return {};
  auto right = oneElement(binary.getRhs()), left = oneElement(binary.getLhs());
  bool isInteger = !isFloat(binary.getResult());
  auto isZero = [&](double v, bool negative) { return v == 0 && (isInteger || std::signbit(v) == negative); };
  switch (binary.getKind()) {
  case BinaryKind::Add:
    if (right && isZero(*right, true)) return same(op, binary.getLhs());
    return left && isZero(*left, true) ? same(op, binary.getRhs()) : Value();
  case BinaryKind::Sub: return right && isZero(*right, false) ? same(op, binary.getLhs()) : Value();
  case BinaryKind::Mul:
    if (right == 1.0) return same(op, binary.getLhs());
    return left == 1.0 ? same(op, binary.getRhs()) : Value();
  case BinaryKind::Div: return right == 1.0 ? same(op, binary.getLhs()) : Value();
  default: return {};
  }
}

/// pow(x, 2) = x * x: both are the correctly rounded square. pow(x, 1) = x.
static Value powByMul(Operation *op, OpBuilder &builder) {
  auto pow = dyn_cast<BinaryOp>(op);
  if (!pow || pow.getKind() != BinaryKind::Pow || !isFloat(pow.getLhs()) || pow.getLhs().getType() != pow.getType()) return {};
  auto exponent = oneElement(pow.getRhs());
  if (exponent == 1.0) return pow.getLhs();
  return exponent == 2.0 ? Value(builder.create<BinaryOp>(op->getLoc(), pow.getType(), BinaryKind::Mul, pow.getLhs(), pow.getLhs())) : Value();
}

/// The bool that every element of `value` is, when that is known.
static std::optional<bool> allOf(Value value) {
  if (!getElementTypeOrSelf(value).isInteger(1)) return std::nullopt;
  if (auto fill = value.getDefiningOp<FillOp>()) {
    if (auto boolean = dyn_cast<BoolAttr>(fill.getValue())) return boolean.getValue();
    if (auto integer = dyn_cast<IntegerAttr>(fill.getValue())) return !integer.getValue().isZero();
  }
  if (auto expand = value.getDefiningOp<ExpandOp>()) return allOf(expand.getX());
  if (auto reshape = value.getDefiningOp<ReshapeOp>()) return allOf(reshape.getX());
  auto scalar = scalarValue(value);
  return scalar ? std::optional(*scalar != 0) : std::nullopt;
}

/// `value` broadcast to the type of the op's result.
static Value broadcastTo(Operation *op, Value value, OpBuilder &builder) {
  if (Value plain = same(op, value)) return plain;
  if (getElementTypeOrSelf(value) != getElementTypeOrSelf(op->getResult(0))) return {};
  return builder.create<ExpandOp>(op->getLoc(), op->getResult(0).getType(), value);
}

/// true and x, false or x; select with a known condition.
static Value knownBool(Operation *op, OpBuilder &builder) {
  if (auto select = dyn_cast<SelectOp>(op)) {
    auto cond = allOf(select.getCond());
    return cond ? broadcastTo(op, *cond ? select.getLhs() : select.getRhs(), builder) : Value();
  }
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary || (binary.getKind() != BinaryKind::And && binary.getKind() != BinaryKind::Or)) return {};
  bool neutral = binary.getKind() == BinaryKind::And;
  if (allOf(binary.getLhs()) == neutral) return broadcastTo(op, binary.getRhs(), builder);
  return allOf(binary.getRhs()) == neutral ? broadcastTo(op, binary.getLhs(), builder) : Value();
}

/// range >= c where the range starts at or above c and does not fall: true everywhere (a mask that newer exporters write).
static Value rangeAtLeast(Operation *op, OpBuilder &builder) {
  auto compare = dyn_cast<BinaryOp>(op);
  if (!compare || compare.getKind() != BinaryKind::Ge) return {};
  Value from = compare.getLhs();
  while (auto view = from.getDefiningOp<ReshapeOp>()) from = view.getX();
  auto range = from.getDefiningOp<RangeOp>();
  auto bound = oneElement(compare.getRhs());
  if (!range || !bound || !getElementTypeOrSelf(range).isSignlessInteger(64) || *bound != std::floor(*bound) || std::abs(*bound) > 1e15) return {};
  Dims startDelta = range.getStartDelta().dims();
  if (!(startDelta[0] - Dim(static_cast<int64_t>(*bound))).provablyNonNegative() || !startDelta[1].provablyNonNegative()) return {};
  return builder.create<FillOp>(op->getLoc(), compare.getType(), builder.getBoolAttr(true));
}

/// An operand that is only expanded in front of an op that broadcasts anyway.
static Value broadcastImplicitly(Operation *op, OpBuilder &builder) {
  if (!isa<BinaryOp, SelectOp>(op)) return {};
  for (OpOperand &operand : op->getOpOperands()) {
    auto expand = operand.get().getDefiningOp<ExpandOp>();
    if (!expand) continue;
    std::optional<Dims> dims = dimsOf(expand.getX());
    for (OpOperand &other : op->getOpOperands())
      if (dims && &other != &operand) dims = broadcast(*dims, dimsOf(other.get()));
    if (!dims || *dims != dimsOf(op->getResult(0))) continue;
    Operation *made = builder.clone(*op);
    made->setOperand(operand.getOperandNumber(), expand.getX());
    return made->getResult(0);
  }
  return {};
}

/// f(expand(x), scalars...) = expand(f(x, scalars...)): fewer elements go through f.
static Value expandLater(Operation *op, OpBuilder &builder) {
  if (!isa<UnaryOp, CastOp, BinaryOp, SelectOp>(op)) return {};
  ExpandOp expand;
  for (Value operand : op->getOperands()) {
    if (oneElement(operand) && cast<RankedTensorType>(operand.getType()).getRank() <= 1) continue;
    if (expand || !operand.getDefiningOp<ExpandOp>()) return {};
    expand = operand.getDefiningOp<ExpandOp>();
  }
  if (!expand || dimsOf(expand.getX()).empty() || dimsOf(expand.getResult()) != dimsOf(op->getResult(0))) return {};
  Operation *inner = builder.clone(*op);
  for (OpOperand &operand : inner->getOpOperands())
    if (operand.get() == expand.getResult()) operand.set(expand.getX());
  inner->getResult(0).setType(tensorType(getElementTypeOrSelf(op->getResult(0)), dimsOf(expand.getX())));
  return builder.create<ExpandOp>(op->getLoc(), op->getResult(0).getType(), inner->getResult(0));
}

ArrayRef<SimplifyRule> pointwiseRules() {
  static constexpr SimplifyRule rules[] = {
      {"identity", dropIdentity}, {"cast", dropCast},           {"unit", dropUnit},          {"pow", powByMul},
      {"known-bool", knownBool},  {"range-bound", rangeAtLeast}, {"broadcast", broadcastImplicitly}, {"expand-later", expandLater},
  };
  return rules;
}

} // namespace tare
