// Unary, binary and variadic pointwise ops, Where and the casts; integer contents are computed along.
#include "compiler/import/SymbolicContent.h"
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {
using K = graph::BinaryKind;

void unary(NodeImport &n, graph::UnaryKind kind) {
  using U = graph::UnaryKind;
  bool takesIntegers = kind == U::Neg || kind == U::Abs || kind == U::Sign || kind == U::Not || kind == U::Relu;
  Type element = n.element(0);
  if (kind == U::Not ? !element.isInteger(1) : !isa<FloatType>(element) && !takesIntegers)
    return n.fail("element type " + typeName(element) + " is not allowed here");
  if (auto *x = n.content(0); x && isa<IntegerType>(element)) {
    Dims y;
    for (auto &d : *x) {
      if (kind == U::Neg) y.push_back(Dim(0) - d);
      else if (kind == U::Not) y.push_back(Dim(1) - d);
      else if (kind == U::Abs && d.provablyNonNegative()) y.push_back(d);
      else if (kind == U::Abs && (Dim(0) - d).provablyNonNegative()) y.push_back(Dim(0) - d);
      else if (kind == U::Relu) y.push_back(Dim::max(d, 0));
    }
    if (y.size() == x->size() && n.outContent(0, element, n.dims(0), y)) return;
  }
  n.out(0, n.unary(kind, n.in(0)));
}

/// Contents of a broadcast binary op; false when they are not known.
static bool binaryContent(NodeImport &n, K kind, Type element, ArrayRef<Dim> dims) {
  auto *a = n.content(0), *b = n.content(1);
  if (!a || !b || !isa<IntegerType>(n.element(0))) return false;
  auto target = smallShape(dims), sa = smallShape(n.dims(0)), sb = smallShape(n.dims(1));
  if (!target || !sa || !sb) return false;
  int64_t count = 1;
  for (int64_t s : *target) count *= s;
  Dims result;
  for (int64_t i = 0; i < count; ++i) {
    auto value = evaluateBinary(kind, (*a)[broadcastIndex(i, *target, *sa)], (*b)[broadcastIndex(i, *target, *sb)]);
    if (!value) return false;
    result.push_back(*value);
  }
  return n.outContent(0, element, dims, std::move(result));
}

void binary(NodeImport &n, K kind) {
  Type a = n.element(0), b = n.element(1);
  if (a != b && kind != K::Pow) return n.fail("operands have different element types: " + typeName(a) + " and " + typeName(b));
  bool logical = kind == K::And || kind == K::Or || kind == K::Xor;
  if (logical != a.isInteger(1) && kind != K::Eq) return n.fail("element type " + typeName(a) + " is not allowed here");
  bool compares = kind == K::Eq || kind == K::Lt || kind == K::Le || kind == K::Gt || kind == K::Ge;
  Dims dims = n.broadcast(n.dims(0), n.dims(1));
  if (n.failed()) return;
  Type element = compares ? n.g.builder.getI1Type() : a;
  if (binaryContent(n, kind, element, dims)) return;
  Value rhs = n.in(1);
  if (a != b) rhs = n.cast(rhs, isa<FloatType>(a) ? a : b), element = a;
  Value lhs = kind == K::Pow && !isa<FloatType>(a) && isa<FloatType>(b) ? n.cast(n.in(0), b) : n.in(0);
  Value result = n.binary(kind, lhs, rhs);
  n.out(0, kind == K::Pow ? n.cast(result, a) : result); // Pow's result has the base's type
}

void mod(NodeImport &n) { binary(n, n.integer("fmod", 0) ? K::Fmod : K::Mod); }

template <K kind> void chain(NodeImport &n) {
  if (n.operandCount() == 2) return binary(n, kind);
  Value acc = n.in(0);
  for (unsigned i = 1; i < n.operandCount() && !n.failed(); ++i) {
    if (n.element(i) != n.element(0)) return n.fail("operands have different element types");
    acc = n.binary(kind, acc, n.in(i));
  }
  n.out(0, acc);
  if (n.operandCount() == 1) n.out(0, acc);
}
template void chain<K::Add>(NodeImport &);
template void chain<K::Min>(NodeImport &);
template void chain<K::Max>(NodeImport &);

void mean(NodeImport &n) {
  chain<K::Add>(n);
  if (n.failed()) return;
  n.out(0, n.binary(K::Div, n.results[0], n.scalar(n.element(0), n.operandCount())));
}

void where(NodeImport &n) {
  if (!n.element(0).isInteger(1)) return n.fail("the condition must be bool, got " + typeName(n.element(0)));
  if (n.element(1) != n.element(2)) return n.fail("branches have different element types: " + typeName(n.element(1)) + " and " + typeName(n.element(2)));
  Dims dims = n.broadcast(n.dims(0), n.broadcast(n.dims(1), n.dims(2)));
  if (n.failed()) return;
  auto *c = n.content(0), *a = n.content(1), *b = n.content(2);
  auto target = smallShape(dims), sc = smallShape(n.dims(0)), sa = smallShape(n.dims(1)), sb = smallShape(n.dims(2));
  if (a && b && target && sc && sa && sb && isa<IntegerType>(n.element(1))) {
    Dims result;
    int64_t count = 1;
    for (int64_t s : *target) count *= s;
    for (int64_t i = 0; i < count; ++i) {
      const Dim &x = (*a)[broadcastIndex(i, *target, *sa)], &y = (*b)[broadcastIndex(i, *target, *sb)];
      auto cond = c ? (*c)[broadcastIndex(i, *target, *sc)].constant() : std::nullopt;
      if (!cond && !(x == y)) break;
      result.push_back(!cond || *cond ? x : y);
    }
    if (static_cast<int64_t>(result.size()) == count && n.outContent(0, n.element(1), dims, std::move(result))) return;
  }
  n.out(0, n.emit<graph::SelectOp>(n.type(n.element(1), dims), n.in(0), n.in(1), n.in(2)));
}

static void castTo(NodeImport &n, Type to) {
  n.ignoreAttribute("saturate"); // matters for float8 only, which is not supported
  n.ignoreAttribute("round_mode");
  if (auto *x = n.content(0); x && isa<IntegerType>(to)) {
    Dims y;
    for (auto &d : *x) {
      if (!to.isInteger(1)) { y.push_back(d); continue; }
      auto zero = evaluateBinary(K::Eq, d, 0);
      if (!zero) break;
      y.push_back(Dim(1) - *zero);
    }
    // Only widths that keep every size: a narrowing cast of a known number wraps and is left to the constant folder.
    bool wide = to.isInteger(64) || to.isInteger(32) || to.isInteger(1);
    if (wide && y.size() == x->size() && n.outContent(0, to, n.dims(0), y)) return;
  }
  Value result = n.cast(n.in(0), to);
  if (auto *x = n.content(0); x && isa<FloatType>(to)) n.g.setContent(result, *x); // whole numbers, for Range over a cast size
  n.out(0, result);
}

void castOp(NodeImport &n) {
  auto to = n.integer("to");
  if (n.failed()) return;
  if (!to) return n.fail("attribute 'to' is missing");
  Type element = elementType(n.g.context, static_cast<int32_t>(*to));
  if (!element) return n.fail("element type " + typeName(static_cast<int32_t>(*to)) + " is not supported");
  castTo(n, element);
}

void castLike(NodeImport &n) { castTo(n, n.element(1)); }

void isInf(NodeImport &n) {
  bool negative = n.integer("detect_negative", 1) != 0, positive = n.integer("detect_positive", 1) != 0;
  if (n.failed()) return;
  Value infinite = n.unary(graph::UnaryKind::IsInf, n.in(0)), zero = n.scalar(n.element(0), 0);
  if (!negative && !positive) return n.out(0, n.emit<graph::FillOp>(n.type(n.g.builder.getI1Type(), n.dims(0)), n.g.builder.getBoolAttr(false)));
  if (negative && positive) return n.out(0, infinite);
  n.out(0, n.binary(K::And, infinite, n.binary(positive ? K::Gt : K::Lt, n.in(0), zero)));
}

} // namespace tare::ops
