// Broadcasting and the few ops that many importers emit. A dim that only a run can decide becomes a constraint of the
// module.
#include "compiler/import/NodeImport.h"
#include "compiler/import/SymbolicContent.h"

using namespace mlir;

namespace tare {

/// When `bounded` is min(x, limit) with x == `open`: the limit.
static std::optional<Dim> limitOf(const Dim &bounded, const Dim &open) {
  if (bounded.terms().size() != 1) return std::nullopt;
  auto &[atoms, factor] = *bounded.terms().begin();
  if (factor != 1 || atoms.size() != 1 || atoms[0]->kind != Dim::Atom::Kind::Min) return std::nullopt;
  if (atoms[0]->a == open) return atoms[0]->b;
  if (atoms[0]->b == open) return atoms[0]->a;
  return std::nullopt;
}

/// Dimensions that an operand leaves to the other one.
static int repeated(ArrayRef<Dim> dims, size_t rank) {
  return static_cast<int>(rank - dims.size() + llvm::count_if(dims, [](const Dim &d) { return d.isConstant(1); }));
}

Dims NodeImport::broadcast(ArrayRef<Dim> a, ArrayRef<Dim> b, bool strict) {
  Dims result(std::max(a.size(), b.size()));
  std::string where = "node '" + graph::nodeName(location) + "' (" + proto.op_type() + ", tensor '" +
                      (proto.output_size() ? proto.output(0) : "") + "'): ";
  for (size_t i = 1; i <= result.size(); ++i) {
    Dim x = i <= a.size() ? a[a.size() - i] : Dim(1), y = i <= b.size() ? b[b.size() - i] : Dim(1);
    Dim &r = result[result.size() - i];
    if (x == y || y.isConstant(1)) {
      r = x;
    } else if (x.isConstant(1)) {
      r = y;
    } else if (x.constant() && y.constant()) {
      fail("shapes " + ::tare::text(a) + " and " + ::tare::text(b) + " do not broadcast");
      return result;
    } else if (auto limit = limitOf(y, x)) {
      g.require("at_most", x, *limit, where + x.str() + " must be at most " + limit->str());
      r = x;
    } else if (auto limit = limitOf(x, y)) {
      g.require("at_most", y, *limit, where + y.str() + " must be at most " + limit->str());
      r = y;
    } else {
      // Two sizes of which only a run knows whether one is repeated. The result takes the size of the operand that
      // repeats least elsewhere, so the other one may be 1; one of the two has to be the result's in the types. A
      // kernel multiplies the index by (size != 1) for it.
      bool takesY = y.constant() || (!x.constant() && repeated(b, result.size()) < repeated(a, result.size()));
      r = takesY ? y : x;
      const Dim &other = takesY ? x : y;
      if (strict)
        g.require("equal", x, y, where + x.str() + " must be equal to " + y.str());
      else
        g.require("equal", (other - r) * (other - 1), 0,
                  where + other.str() + " must be equal to " + r.str() + ", or 1");
    }
  }
  return result;
}

Value NodeImport::binary(graph::BinaryKind kind, Value a, Value b) {
  using K = graph::BinaryKind;
  Type element = mlir::cast<RankedTensorType>(a.getType()).getElementType();
  bool compares = kind == K::Eq || kind == K::Lt || kind == K::Le || kind == K::Gt || kind == K::Ge;
  Dims dims = broadcast(graph::dimsOf(a), graph::dimsOf(b));
  return emit<graph::BinaryOp>(type(compares ? g.builder.getI1Type() : element, dims), kind, a, b);
}

Value NodeImport::unary(graph::UnaryKind kind, Value x) {
  auto from = mlir::cast<RankedTensorType>(x.getType());
  bool tests = kind == graph::UnaryKind::IsNaN || kind == graph::UnaryKind::IsInf;
  auto to = tests ? RankedTensorType::get(from.getShape(), g.builder.getI1Type(), from.getEncoding()) : from;
  return emit<graph::UnaryOp>(to, kind, x);
}

Value NodeImport::reshape(Value x, ArrayRef<Dim> dims) {
  auto from = mlir::cast<RankedTensorType>(x.getType());
  auto to = type(from.getElementType(), dims);
  if (to == from) return x;
  Value result = emit<graph::ReshapeOp>(to, x);
  if (auto *known = g.content(x)) g.setContent(result, *known);
  return result;
}

Value NodeImport::cast(Value x, Type element) {
  auto from = mlir::cast<RankedTensorType>(x.getType());
  if (from.getElementType() == element) return x;
  return emit<graph::CastOp>(RankedTensorType::get(from.getShape(), element, from.getEncoding()), x);
}

} // namespace tare
