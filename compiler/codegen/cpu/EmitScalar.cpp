// Scalar functions: casts, unary and binary ops on one element. NaN and infinity keep their meaning; integer division by zero is 0 and INT_MIN / -1 wraps, so
// nothing traps; floats may contract to FMA and nothing else. Transcendental functions are the inline ones of kernels/cpu/kernels.h.
#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;

namespace tare::codegen {
namespace {
constexpr auto kContract = arith::FastMathFlags::contract;
bool isSigned(Type element) { return !element.isUnsignedInteger() && !element.isInteger(1); }
template <typename Op> Value intrinsic(Emitter &e, ValueRange operands) {
  return e.b.create<Op>(e.loc, operands.front().getType(), operands).getResult();
}
template <typename Op> Value floatOp(Emitter &e, Value x, Value y) { return e.b.create<Op>(e.loc, x, y, kContract); }
} // namespace

LLVM::LLVMFuncOp declare(ModuleOp module, StringRef name, Type result, ArrayRef<Type> arguments) {
  if (auto existing = module.lookupSymbol<LLVM::LLVMFuncOp>(name)) return existing;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  return b.create<LLVM::LLVMFuncOp>(module.getLoc(), name, LLVM::LLVMFunctionType::get(result, arguments));
}

Value Emitter::callMath(StringRef name, ValueRange arguments) {
  Type type = arguments.front().getType();
  std::string symbol = ("tare_" + name + (type.isF32() ? "f" : "")).str();
  auto module = entry->getParentOp()->getParentOfType<ModuleOp>();
  SmallVector<Type> types(arguments.getTypes());
  auto function = declare(module, symbol, type, types);
  return b.create<LLVM::CallOp>(loc, function, arguments).getResult();
}

Value Emitter::floatToInteger(Value x, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  auto saturating = [&](StringRef name, unsigned bits) -> Value {
    auto type = IntegerType::get(b.getContext(), bits);
    std::string intrinsicName = ("llvm." + name + ".sat.i" + Twine(bits) + (x.getType().isF64() ? ".f64" : ".f32")).str();
    return b.create<LLVM::CallIntrinsicOp>(loc, type, b.getStringAttr(intrinsicName), ValueRange{x}, LLVM::FastmathFlagsAttr()).getResult(0);
  };
  if (width == 64 && isUnsigned) return saturating("fptoui", 64);
  unsigned via = width < 32 || (width == 32 && !isUnsigned) ? 32 : 64; // saturating: an unrepresentable value must not become poison
  Value wide = saturating("fptosi", via);
  return via == width ? wide : b.create<arith::TruncIOp>(loc, scalarType(to), wide).getResult();
}

Value Emitter::cast(Value x, Type from, Type to) {
  if (from == to) return x;
  Type target = scalarType(to);
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  if (to.isInteger(1)) {
    if (fromFloat) return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNE, x, number(x.getType(), 0));
    return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, x, number(x.getType(), 0));
  }
  if (fromFloat && toFloat) {
    if (x.getType().isF64() && !to.isF64()) x = b.create<arith::TruncFOp>(loc, b.getF32Type(), x);
    if (to.isF64() && !x.getType().isF64()) return b.create<arith::ExtFOp>(loc, b.getF64Type(), x);
    return roundToStorage(x, to);
  }
  if (fromFloat) return floatToInteger(x, to);
  if (toFloat) {
    Value v = isSigned(from) ? b.create<arith::SIToFPOp>(loc, target, x).getResult() : b.create<arith::UIToFPOp>(loc, target, x).getResult();
    return roundToStorage(v, to);
  }
  unsigned have = from.getIntOrFloatBitWidth(), want = to.getIntOrFloatBitWidth();
  if (have > want) return b.create<arith::TruncIOp>(loc, target, x);
  if (have == want) return x;
  return isSigned(from) ? b.create<arith::ExtSIOp>(loc, target, x).getResult() : b.create<arith::ExtUIOp>(loc, target, x).getResult();
}

Value Emitter::unary(graph::UnaryKind kind, Value x, Type element) {
  using K = graph::UnaryKind;
  Type type = x.getType();
  if (kind == K::Identity) return x;
  if (auto integerType = dyn_cast<IntegerType>(type)) {
    Value zero = number(type, 0);
    if (kind == K::Neg) return b.create<arith::SubIOp>(loc, zero, x);
    if (kind == K::Not) return b.create<arith::XOrIOp>(loc, x, number(type, -1));
    Value negative = isSigned(element) ? b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, zero).getResult()
                                       : b.create<arith::ConstantOp>(loc, b.getBoolAttr(false)).getResult();
    if (kind == K::Abs) return select(negative, b.create<arith::SubIOp>(loc, zero, x), x);
    if (kind == K::Relu) return select(negative, zero, x);
    if (kind == K::Sign) {
      Value nonzero = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, x, zero);
      if (integerType.getWidth() == 1) return nonzero;
      return select(negative, number(type, -1), b.create<arith::ExtUIOp>(loc, type, nonzero));
    }
    if (kind == K::Floor || kind == K::Ceil || kind == K::Round) return x;
    Type f64 = b.getF64Type(); // a transcendental of an integer: through double
    if (kind == K::IsNaN || kind == K::IsInf) return b.create<arith::ConstantOp>(loc, b.getBoolAttr(false));
    return cast(unary(kind, cast(x, element, f64), f64), f64, element);
  }
  Value one = number(type, 1);
  auto math = [&](StringRef name) { return callMath(name, x); };
  switch (kind) {
  case K::Neg: return b.create<arith::NegFOp>(loc, x);
  case K::Abs: return intrinsic<LLVM::FAbsOp>(*this, x);
  case K::Sqrt: return intrinsic<LLVM::SqrtOp>(*this, x);
  case K::Rsqrt: return floatOp<arith::DivFOp>(*this, one, intrinsic<LLVM::SqrtOp>(*this, x));
  case K::Reciprocal: return floatOp<arith::DivFOp>(*this, one, x);
  case K::Floor: return intrinsic<LLVM::FFloorOp>(*this, x);
  case K::Ceil: return intrinsic<LLVM::FCeilOp>(*this, x);
  case K::Round: return intrinsic<LLVM::RoundEvenOp>(*this, x);
  case K::Relu: return b.create<arith::MaximumFOp>(loc, x, number(type, 0));
  case K::Sign: {
    Value unit = intrinsic<LLVM::CopySignOp>(*this, {one, x});
    Value other = b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::ONE, x, number(type, 0)); // 0 and NaN stay as they are
    return select(other, unit, x);
  }
  case K::Not: return cast(b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, x, number(type, 0)), b.getI1Type(), element);
  case K::IsNaN: return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, x);
  case K::IsInf: {
    Value inf = number(type, std::numeric_limits<double>::infinity());
    return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, intrinsic<LLVM::FAbsOp>(*this, x), inf);
  }
  case K::Exp: return math("exp");
  case K::Log: return math("log");
  case K::Erf: return math("erf");
  case K::Tanh: return math("tanh");
  case K::Sin: return math("sin");
  case K::Cos: return math("cos");
  case K::Tan: return math("tan");
  case K::Asin: return math("asin");
  case K::Acos: return math("acos");
  case K::Atan: return math("atan");
  case K::Sinh: return math("sinh");
  case K::Cosh: return math("cosh");
  case K::Sigmoid: return math("sigmoid");
  case K::Softplus: return math("softplus");
  case K::Silu: return type.isF32() ? math("silu") : floatOp<arith::MulFOp>(*this, x, math("sigmoid"));
  case K::GeluErf: {
    if (type.isF32()) return math("gelu_erf");
    Value erf = callMath("erf", floatOp<arith::MulFOp>(*this, x, number(type, 0.70710678118654752440)));
    return floatOp<arith::MulFOp>(*this, floatOp<arith::MulFOp>(*this, number(type, 0.5), x), floatOp<arith::AddFOp>(*this, one, erf));
  }
  case K::GeluTanh: {
    if (type.isF32()) return math("gelu_tanh");
    Value cube = floatOp<arith::MulFOp>(*this, floatOp<arith::MulFOp>(*this, x, x), x);
    Value inner = floatOp<arith::AddFOp>(*this, x, floatOp<arith::MulFOp>(*this, cube, number(type, 0.044715)));
    Value tanh = callMath("tanh", floatOp<arith::MulFOp>(*this, inner, number(type, 0.79788456080286535588)));
    return floatOp<arith::MulFOp>(*this, floatOp<arith::MulFOp>(*this, number(type, 0.5), x), floatOp<arith::AddFOp>(*this, one, tanh));
  }
  case K::Identity: return x;
  }
  return x;
}

namespace {
/// Quotient and remainder that never trap: x / 0 = 0, x mod 0 = 0, and -1 is handled apart because INT_MIN / -1 does not fit.
Value safeDivision(Emitter &e, Value x, Value y, bool isSignedDivision, bool remainder) {
  OpBuilder &b = e.b;
  Value zero = e.number(y.getType(), 0), one = e.number(y.getType(), 1);
  auto is = [&](Value v) { return b.create<arith::CmpIOp>(e.loc, arith::CmpIPredicate::eq, y, v).getResult(); };
  Value isZero = is(zero);
  Value special = isZero, minus;
  if (isSignedDivision) {
    minus = is(e.number(y.getType(), -1));
    special = b.create<arith::OrIOp>(e.loc, isZero, minus);
  }
  Value safe = e.select(special, one, y);
  if (remainder) {
    Value r = isSignedDivision ? b.create<arith::RemSIOp>(e.loc, x, safe).getResult() : b.create<arith::RemUIOp>(e.loc, x, safe).getResult();
    return e.select(special, zero, r);
  }
  Value q = isSignedDivision ? b.create<arith::DivSIOp>(e.loc, x, safe).getResult() : b.create<arith::DivUIOp>(e.loc, x, safe).getResult();
  if (minus) q = e.select(minus, b.create<arith::SubIOp>(e.loc, zero, x), q);
  return e.select(isZero, zero, q);
}

/// x^y for integers by squaring; a negative exponent gives 0 except for bases 1 and -1 (what truncation of the real result gives), 0^-n gives 0.
Value integerPower(Emitter &e, Value x, Value y, bool isSignedBase) {
  OpBuilder &b = e.b;
  Type type = x.getType();
  Value one = e.number(type, 1), zero = e.number(type, 0);
  auto cmp = [&](arith::CmpIPredicate p, Value l, Value r) { return b.create<arith::CmpIOp>(e.loc, p, l, r).getResult(); };
  Value negative = isSignedBase ? cmp(arith::CmpIPredicate::slt, y, zero) : b.create<arith::ConstantOp>(e.loc, b.getBoolAttr(false)).getResult();
  Value unit = cmp(arith::CmpIPredicate::eq, x, one);
  if (isSignedBase) unit = b.create<arith::OrIOp>(e.loc, unit, cmp(arith::CmpIPredicate::eq, x, e.number(type, -1)));
  Value base = e.select(negative, e.select(unit, x, zero), x), exponent = e.select(negative, e.select(unit, b.create<arith::AndIOp>(e.loc, y, one), one), y);
  auto loop = b.create<scf::WhileOp>(
      e.loc, TypeRange{type, type, type}, ValueRange{one, base, exponent},
      [&](OpBuilder &, Location, ValueRange s) { b.create<scf::ConditionOp>(e.loc, cmp(arith::CmpIPredicate::ne, s[2], zero), s); },
      [&](OpBuilder &, Location, ValueRange s) {
        Value odd = cmp(arith::CmpIPredicate::ne, b.create<arith::AndIOp>(e.loc, s[2], one), zero);
        Value product = e.select(odd, b.create<arith::MulIOp>(e.loc, s[0], s[1]), s[0]);
        Value next[] = {product, b.create<arith::MulIOp>(e.loc, s[1], s[1]), b.create<arith::ShRUIOp>(e.loc, s[2], one)};
        b.create<scf::YieldOp>(e.loc, next);
      });
  return loop.getResult(0);
}
} // namespace

Value Emitter::binary(graph::BinaryKind kind, Value x, Value y, Type element) {
  using K = graph::BinaryKind;
  using P = arith::CmpIPredicate;
  using F = arith::CmpFPredicate;
  if (isa<FloatType>(x.getType())) {
    auto cmp = [&](F p) { return b.create<arith::CmpFOp>(loc, p, x, y).getResult(); };
    switch (kind) {
    case K::Add: return floatOp<arith::AddFOp>(*this, x, y);
    case K::Sub: return floatOp<arith::SubFOp>(*this, x, y);
    case K::Mul: return floatOp<arith::MulFOp>(*this, x, y);
    case K::Div: return floatOp<arith::DivFOp>(*this, x, y);
    case K::Pow: return callMath("pow", {x, y});
    case K::Fmod: return callMath("fmod", {x, y});
    case K::Mod: { // the divisor's sign
      Value r = callMath("fmod", {x, y}), zero = number(x.getType(), 0);
      Value opposite = b.create<arith::CmpFOp>(loc, F::OLT, floatOp<arith::MulFOp>(*this, intrinsic<LLVM::CopySignOp>(*this, {number(x.getType(), 1), r}), y), zero);
      Value off = b.create<arith::AndIOp>(loc, opposite, b.create<arith::CmpFOp>(loc, F::ONE, r, zero));
      return select(off, floatOp<arith::AddFOp>(*this, r, y), r);
    }
    case K::Min: return b.create<arith::MinimumFOp>(loc, x, y);
    case K::Max: return b.create<arith::MaximumFOp>(loc, x, y);
    case K::Eq: return cmp(F::OEQ);
    case K::Lt: return cmp(F::OLT);
    case K::Le: return cmp(F::OLE);
    case K::Gt: return cmp(F::OGT);
    case K::Ge: return cmp(F::OGE);
    case K::And:
    case K::Or:
    case K::Xor: return {}; // refused by the importers: logic is on i1 and integers
    }
  }
  bool s = isSigned(element);
  auto cmp = [&](P signedP, P unsignedP) { return b.create<arith::CmpIOp>(loc, s ? signedP : unsignedP, x, y).getResult(); };
  switch (kind) {
  case K::Add: return b.create<arith::AddIOp>(loc, x, y);
  case K::Sub: return b.create<arith::SubIOp>(loc, x, y);
  case K::Mul: return b.create<arith::MulIOp>(loc, x, y);
  case K::Div: return safeDivision(*this, x, y, s, false);
  case K::Fmod: return safeDivision(*this, x, y, s, true);
  case K::Mod: {
    Value r = safeDivision(*this, x, y, s, true);
    if (!s) return r;
    Value zero = number(x.getType(), 0);
    Value opposite = b.create<arith::CmpIOp>(loc, P::slt, b.create<arith::XOrIOp>(loc, r, y), zero);
    Value off = b.create<arith::AndIOp>(loc, opposite, b.create<arith::CmpIOp>(loc, P::ne, r, zero));
    return select(off, b.create<arith::AddIOp>(loc, r, y), r);
  }
  case K::Pow: return integerPower(*this, x, y, s);
  case K::Min: return s ? b.create<arith::MinSIOp>(loc, x, y).getResult() : b.create<arith::MinUIOp>(loc, x, y).getResult();
  case K::Max: return s ? b.create<arith::MaxSIOp>(loc, x, y).getResult() : b.create<arith::MaxUIOp>(loc, x, y).getResult();
  case K::And: return b.create<arith::AndIOp>(loc, x, y);
  case K::Or: return b.create<arith::OrIOp>(loc, x, y);
  case K::Xor: return b.create<arith::XOrIOp>(loc, x, y);
  case K::Eq: return b.create<arith::CmpIOp>(loc, P::eq, x, y);
  case K::Lt: return cmp(P::slt, P::ult);
  case K::Le: return cmp(P::sle, P::ule);
  case K::Gt: return cmp(P::sgt, P::ugt);
  case K::Ge: return cmp(P::sge, P::uge);
  }
  return {};
}

} // namespace tare::codegen
