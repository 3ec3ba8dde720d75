// Element-wise symbolic evaluation for shape chains (Shape, Gather, Equal, Where, ... down to a Reshape).
#include "compiler/import/SymbolicContent.h"
#include "compiler/import/GraphBuilder.h"

namespace tare {

std::optional<Dim> evaluateBinary(graph::BinaryKind kind, const Dim &a, const Dim &b) {
  using K = graph::BinaryKind;
  auto ca = a.constant(), cb = b.constant();
  auto less = [](const Dim &x, const Dim &y) -> std::optional<Dim> { // x < y for all sizes, for none, or undecided
    if ((y - x - 1).provablyNonNegative()) return Dim(1);
    if ((x - y).provablyNonNegative()) return Dim(0);
    return std::nullopt;
  };
  auto negate = [](std::optional<Dim> d) { return d ? std::optional<Dim>(Dim(1) - *d) : d; };
  switch (kind) {
  case K::Add: return a + b;
  case K::Sub: return a - b;
  case K::Mul: return a * b;
  case K::Div:
    if (ca && cb) return *cb == 0 || *cb == -1 ? std::nullopt : std::optional<Dim>(*ca / *cb);
    if (b.isConstant(1)) return a;
    if (auto exact = a.dividedBy(b); exact && b.provablyPositive()) return exact;
    // Truncation is rounding down only for non-negative numbers.
    if (a.provablyNonNegative() && b.provablyPositive()) return Dim::floorDiv(a, b);
    return std::nullopt;
  case K::Mod: return b.provablyPositive() ? std::optional<Dim>(Dim::mod(a, b)) : std::nullopt;
  case K::Min: return Dim::min(a, b);
  case K::Max: return Dim::max(a, b);
  case K::Lt: return less(a, b);
  case K::Gt: return less(b, a);
  case K::Le: return negate(less(b, a));
  case K::Ge: return negate(less(a, b));
  case K::Eq: {
    if (a == b) return Dim(1);
    auto below = less(a, b), above = less(b, a);
    if ((below && below->isConstant(1)) || (above && above->isConstant(1))) return Dim(0);
    return std::nullopt;
  }
  case K::And: return a.isConstant(0) || b.isConstant(0) ? std::optional<Dim>(0) : ca && cb ? std::optional<Dim>(*ca & *cb) : std::nullopt;
  case K::Or: return ca && cb ? std::optional<Dim>(*ca | *cb) : std::nullopt;
  case K::Xor: return ca && cb ? std::optional<Dim>(*ca ^ *cb) : std::nullopt;
  default: return std::nullopt;
  }
}

int64_t broadcastIndex(int64_t i, llvm::ArrayRef<int64_t> target, llvm::ArrayRef<int64_t> shape) {
  int64_t index = 0, stride = 1;
  for (size_t k = 0; k < target.size(); ++k) {
    int64_t size = target[target.size() - 1 - k], at = size ? i % size : 0;
    i = size ? i / size : 0;
    if (k < shape.size()) {
      int64_t own = shape[shape.size() - 1 - k];
      if (own != 1) index += at * stride;
      stride *= own;
    }
  }
  return index;
}

std::optional<llvm::SmallVector<int64_t>> smallShape(llvm::ArrayRef<Dim> dims) {
  llvm::SmallVector<int64_t> shape;
  int64_t product = 1;
  for (auto &d : dims) {
    auto c = d.constant();
    if (!c || *c < 0 || *c > kMaxContent || (product *= *c) > kMaxContent) return std::nullopt;
    shape.push_back(*c);
  }
  return shape;
}

} // namespace tare
