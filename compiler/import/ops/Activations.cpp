// Activations that are composed of pointwise ops; formulas are those of the ONNX operator specification.
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {
using K = graph::BinaryKind;
using U = graph::UnaryKind;

static bool needsFloat(NodeImport &n) {
  if (!isa<FloatType>(n.element(0))) n.fail("element type " + typeName(n.element(0)) + " is not allowed here");
  return !n.failed();
}

static Value select(NodeImport &n, Value cond, Value a, Value b) {
  Dims dims = n.broadcast(graph::dimsOf(cond), n.broadcast(graph::dimsOf(a), graph::dimsOf(b)));
  return n.emit<graph::SelectOp>(n.type(cast<RankedTensorType>(a.getType()).getElementType(), dims), cond, a, b);
}

void clip(NodeImport &n) {
  Value result = n.in(0);
  auto low = n.version < 11 ? n.real("min") : std::nullopt, high = n.version < 11 ? n.real("max") : std::nullopt;
  if (n.failed()) return;
  struct Bound { Value value; K kind; };
  Bound bounds[] = {{low ? n.scalar(n.element(0), *low) : n.in(1), K::Max}, {high ? n.scalar(n.element(0), *high) : n.in(2), K::Min}};
  for (auto [bound, kind] : bounds) {
    if (!bound) continue;
    auto type = cast<RankedTensorType>(bound.getType());
    if (type.getElementType() != n.element(0)) return n.fail("bounds must have the input's element type");
    if (type.getRank() > 1 || (type.getRank() == 1 && type.getDimSize(0) != 1)) return n.fail("bounds must be scalars");
    result = n.binary(kind, result, n.reshape(bound, {}));
  }
  n.out(0, result);
}

void gelu(NodeImport &n) {
  if (!needsFloat(n)) return;
  std::string kind = n.text("approximate", "none");
  if (kind != "none" && kind != "tanh") return n.fail("attribute 'approximate' must be none or tanh, got '" + kind + "'");
  n.out(0, n.unary(kind == "tanh" ? U::GeluTanh : U::GeluErf, n.in(0)));
}

/// x below zero ? negative : x
static void splitAtZero(NodeImport &n, Value negative) {
  Value below = n.binary(K::Lt, n.in(0), n.scalar(n.element(0), 0));
  if (!n.failed()) n.out(0, select(n, below, negative, n.in(0)));
}

void leakyRelu(NodeImport &n) {
  if (!needsFloat(n)) return;
  splitAtZero(n, n.binary(K::Mul, n.in(0), n.scalar(n.element(0), n.real("alpha", 0.01f))));
}

void pRelu(NodeImport &n) {
  if (n.element(0) != n.element(1)) return n.fail("slope must have the input's element type");
  Value scaled = n.binary(K::Mul, n.in(0), n.in(1));
  if (!n.failed()) splitAtZero(n, scaled);
}

/// alpha * (exp(x / divisor) - 1)
static Value expMinusOne(NodeImport &n, double alpha, double divisor) {
  Type t = n.element(0);
  Value x = divisor == 1 ? n.in(0) : n.binary(K::Div, n.in(0), n.scalar(t, divisor));
  return n.binary(K::Mul, n.binary(K::Sub, n.unary(U::Exp, x), n.scalar(t, 1)), n.scalar(t, alpha));
}

void elu(NodeImport &n) {
  if (!needsFloat(n)) return;
  splitAtZero(n, expMinusOne(n, n.real("alpha", 1), 1));
}

void celu(NodeImport &n) {
  if (!needsFloat(n)) return;
  double alpha = n.real("alpha", 1);
  if (alpha == 0) return n.fail("attribute 'alpha' must not be 0");
  splitAtZero(n, expMinusOne(n, alpha, alpha));
}

void selu(NodeImport &n) {
  if (!needsFloat(n)) return;
  double alpha = n.real("alpha", 1.67326319217681884765625), gamma = n.real("gamma", 1.05070102214813232421875);
  splitAtZero(n, expMinusOne(n, alpha, 1));
  if (!n.failed()) n.out(0, n.binary(K::Mul, n.results[0], n.scalar(n.element(0), gamma)));
}

static Value clampedLine(NodeImport &n, double alpha, double beta) { // max(0, min(1, alpha * x + beta))
  Type t = n.element(0);
  Value line = n.binary(K::Add, n.binary(K::Mul, n.in(0), n.scalar(t, alpha)), n.scalar(t, beta));
  return n.binary(K::Max, n.binary(K::Min, line, n.scalar(t, 1)), n.scalar(t, 0));
}

void hardSigmoid(NodeImport &n) {
  if (needsFloat(n)) n.out(0, clampedLine(n, n.real("alpha", 0.2f), n.real("beta", 0.5f)));
}

void hardSwish(NodeImport &n) {
  if (needsFloat(n)) n.out(0, n.binary(K::Mul, n.in(0), clampedLine(n, 1.0 / 6, 0.5)));
}

void softsign(NodeImport &n) {
  if (!needsFloat(n)) return;
  n.out(0, n.binary(K::Div, n.in(0), n.binary(K::Add, n.unary(U::Abs, n.in(0)), n.scalar(n.element(0), 1))));
}

void swish(NodeImport &n) {
  if (!needsFloat(n)) return;
  double alpha = n.real("alpha", 1);
  if (alpha == 1) return n.out(0, n.unary(U::Silu, n.in(0)));
  n.out(0, n.binary(K::Mul, n.in(0), n.unary(U::Sigmoid, n.binary(K::Mul, n.in(0), n.scalar(n.element(0), alpha)))));
}

void mish(NodeImport &n) {
  if (needsFloat(n)) n.out(0, n.binary(K::Mul, n.in(0), n.unary(U::Tanh, n.unary(U::Softplus, n.in(0)))));
}

void thresholdedRelu(NodeImport &n) {
  if (!needsFloat(n)) return;
  Value above = n.binary(K::Gt, n.in(0), n.scalar(n.element(0), n.real("alpha", 1)));
  n.out(0, select(n, above, n.in(0), n.scalar(n.element(0), 0)));
}

} // namespace tare::ops
