// Recognises activations that exporters write out. In: products of a value with erf, tanh or sigmoid of it. Out: unary gelu_erf, gelu_tanh, silu.
// Must hold: constants agree with the exact ones up to the rounding of the type they are stored in (so it runs before widening), and every
// inner value has no other use than inside the form.
#include "passes/Passes.h"
#include "passes/Rewrite.h"
#include <cmath>

namespace tare {
#define GEN_PASS_DEF_FUSEACTIVATIONSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;
using tare::Product;

namespace {

/// `value` = 1 + f: returns f.
Value onePlus(Value value) {
  auto sum = tare::binaryOf(value, BinaryKind::Add);
  if (!sum) return {};
  if (tare::oneElement(sum->first) == 1.0) return sum->second;
  return tare::oneElement(sum->second) == 1.0 ? sum->first : Value();
}

/// True when the product's terms are `x` repeated `power` times, counting pow(x, n) as n of them.
bool isPowerOf(const Product &product, Value x, int power) {
  double have = 0;
  for (Value term : product.terms) {
    auto pow = tare::binaryOf(term, BinaryKind::Pow);
    auto exponent = pow ? tare::oneElement(pow->second) : std::nullopt;
    if (term != x && !(pow && pow->first == x && exponent)) return false;
    have += term == x ? 1 : *exponent;
  }
  return have == power;
}

/// y = sqrt(2/pi) * (x + 0.044715 x^3), also as sqrt(2/pi) * x * (1 + 0.044715 x^2).
bool isTanhArgument(Value y, Value x) {
  Product product = tare::productOf(y);
  Type type = y.getType();
  if (!tare::isAbout(product.factor, std::sqrt(2 / M_PI), type)) return false;
  auto cubic = [&](Value term, int power) {
    Product p = tare::productOf(term);
    return tare::isAbout(p.factor, 0.044715, type) && isPowerOf(p, x, power);
  };
  if (product.terms.size() == 1) {
    auto sum = tare::binaryOf(product.terms[0], BinaryKind::Add);
    return sum && ((sum->first == x && cubic(sum->second, 3)) || (sum->second == x && cubic(sum->first, 3)));
  }
  if (product.terms.size() != 2) return false;
  Value other = product.terms[0] == x ? product.terms[1] : product.terms[1] == x ? product.terms[0] : Value();
  Value square = other ? onePlus(other) : Value();
  return square && cubic(square, 2);
}

/// Which activation of `x` the product of `x` with `gate` and `factor` is.
std::optional<UnaryKind> activation(double factor, Value x, Value gate, Type type) {
  if (tare::unaryOf(gate, UnaryKind::Sigmoid) == x && factor == 1.0) return UnaryKind::Silu;
  Value inner = onePlus(gate);
  if (!inner || !tare::isAbout(factor, 0.5, type)) return std::nullopt;
  if (Value y = tare::unaryOf(inner, UnaryKind::Erf)) {
    Product argument = tare::productOf(y);
    if (argument.terms.size() == 1 && argument.terms[0] == x && tare::isAbout(argument.factor, M_SQRT1_2, type)) return UnaryKind::GeluErf;
  }
  if (Value y = tare::unaryOf(inner, UnaryKind::Tanh); y && isTanhArgument(y, x)) return UnaryKind::GeluTanh;
  return std::nullopt;
}

struct FuseActivationsPass : tare::impl::FuseActivationsPassBase<FuseActivationsPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    for (Operation &op : *body) {
      auto mul = dyn_cast<BinaryOp>(op);
      if (!mul || mul.getKind() != BinaryKind::Mul || op.use_empty() || !isa<FloatType>(getElementTypeOrSelf(mul.getType()))) continue;
      Product product = tare::productOf(mul.getResult());
      if (product.terms.size() != 2 || product.terms[0].getType() != mul.getType() || product.terms[1].getType() != mul.getType()) continue;
      for (int first : {0, 1}) {
        Value x = product.terms[first], gate = product.terms[1 - first];
        auto kind = activation(product.factor, x, gate, mul.getType());
        if (!kind) continue;
        OpBuilder builder(&op);
        auto fused = builder.create<UnaryOp>(op.getLoc(), mul.getType(), *kind, x);
        fused->setDiscardableAttrs(op.getDiscardableAttrDictionary());
        tare::replaceBy(&op, fused.getResult());
        break;
      }
    }
    tare::eraseDeadOps(*body);
  }
};

} // namespace
