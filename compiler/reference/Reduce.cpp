// Reductions and running sums with their VJPs. Sums run over the reduced elements in row-major order; Max and Min pass NaN on; an empty reduction
// gives the neutral element (mean: NaN, max: -inf, min: +inf). The cotangent of Max/Min goes to the first element that attains it.
#include "compiler/graph/Failure.h"
#include "compiler/reference/Math.h"
#include "compiler/reference/Walk.h"

using tare::graph::ReduceKind;

namespace tare::reference {
namespace {

/// Splits x's dims into kept and reduced ones: an element of the result is a walk over `reducedShape` from its own offset.
struct Reduction {
  Shape keptShape, keptStrides, reducedShape, reducedStrides;
  int64_t count = 1;
};

Reduction splitDims(const Shape &shape, llvm::ArrayRef<int64_t> axes) {
  Shape strides = rowMajorStrides(shape);
  Reduction r;
  for (size_t d = 0; d < shape.size(); ++d) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(d));
    (reduced ? r.reducedShape : r.keptShape).push_back(shape[d]);
    (reduced ? r.reducedStrides : r.keptStrides).push_back(strides[d]);
    if (reduced) r.count *= shape[d];
  }
  return r;
}

/// fn(element of the result, offset of its first operand element).
template <typename Fn> void eachKept(const Reduction &r, Fn fn) {
  int64_t i = 0;
  walk<1>(r.keptShape, {r.keptStrides}, [&](auto &at) { fn(i++, at[0]); });
}
template <typename Fn> void eachReduced(const Reduction &r, int64_t start, Fn fn) {
  walk<1>(r.reducedShape, {r.reducedStrides}, [&](auto &at) { fn(at[0]); }, {start});
}

double reduceFloats(ReduceKind kind, const std::vector<double> &v) {
  double sum = 0, product = 1, best = kind == ReduceKind::Min ? math::kInfinity : -math::kInfinity;
  for (double x : v) {
    switch (kind) {
    case ReduceKind::Prod: product *= x; break;
    case ReduceKind::L1: sum += std::fabs(x); break;
    case ReduceKind::L2: case ReduceKind::SumSquare: sum += x * x; break;
    case ReduceKind::Max: case ReduceKind::LogSumExp: best = best != best || x != x ? best + x : std::max(best, x); break;
    case ReduceKind::Min: best = best != best || x != x ? best + x : std::min(best, x); break;
    default: sum += x;
    }
  }
  switch (kind) {
  case ReduceKind::Mean: return sum / static_cast<double>(v.size());
  case ReduceKind::Prod: return product;
  case ReduceKind::L2: return std::sqrt(sum);
  case ReduceKind::LogSum: return math::log(sum);
  case ReduceKind::Max: case ReduceKind::Min: return best;
  case ReduceKind::LogSumExp: {
    if (std::fabs(best) == math::kInfinity || best != best) return best;
    for (double x : v) sum += math::exp(x - best);
    return best + math::log(sum);
  }
  default: return sum;
  }
}

std::optional<int64_t> reduceIntegers(ReduceKind kind, const std::vector<int64_t> &v) {
  if (kind == ReduceKind::Max) return v.empty() ? INT64_MIN : *std::max_element(v.begin(), v.end());
  if (kind == ReduceKind::Min) return v.empty() ? INT64_MAX : *std::min_element(v.begin(), v.end());
  uint64_t sum = 0, product = 1;
  for (int64_t x : v) {
    sum += static_cast<uint64_t>(kind == ReduceKind::SumSquare ? x * x : kind == ReduceKind::L1 ? std::abs(x) : x);
    product *= static_cast<uint64_t>(x);
  }
  switch (kind) {
  case ReduceKind::Sum: case ReduceKind::SumSquare: case ReduceKind::L1: return static_cast<int64_t>(sum);
  case ReduceKind::Prod: return static_cast<int64_t>(product);
  case ReduceKind::Mean:
    if (v.empty()) return std::nullopt;
    return static_cast<int64_t>(sum) / static_cast<int64_t>(v.size());
  case ReduceKind::L2: return static_cast<int64_t>(std::sqrt(reduceFloats(kind, std::vector<double>(v.begin(), v.end()))));
  default: return std::nullopt;
  }
}

/// Index of the best element; NaN wins over numbers (as NumPy), `last` prefers later equal ones.
template <typename T> int64_t argBest(const std::vector<T> &v, bool largest, bool last) {
  int64_t best = 0;
  for (int64_t i = 1; i < static_cast<int64_t>(v.size()); ++i) {
    bool bestIsNaN = v[best] != v[best], isNaN = v[i] != v[i];
    bool better = !bestIsNaN && (isNaN || (largest ? v[i] > v[best] : v[i] < v[best]));
    bool equal = v[i] == v[best] || (bestIsNaN && isNaN);
    if (better || (last && equal)) best = i;
  }
  return best;
}

} // namespace

llvm::Expected<Tensor> reduce(const Call &call) {
  auto op = llvm::cast<graph::ReduceOp>(call.op);
  const Tensor &x = call.operand(0);
  Tensor y = call.result();
  Reduction r = splitDims(x.shape, op.getAxes());
  ReduceKind kind = op.getKind();
  bool isArg = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin, failed = false;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  eachKept(r, [&](int64_t i, int64_t start) {
    floats.clear(), ints.clear();
    eachReduced(r, start, [&](int64_t at) { x.isFloat() ? floats.push_back(x.floats[at]) : ints.push_back(x.ints[at]); });
    if (isArg) {
      bool largest = kind == ReduceKind::ArgMax, last = op.getLastIndex();
      y.ints[i] = x.isFloat() ? argBest(floats, largest, last) : argBest(ints, largest, last);
    } else if (x.isFloat()) {
      y.floats[i] = reduceFloats(kind, floats);
    } else {
      auto value = reduceIntegers(kind, ints);
      failed |= !value;
      y.ints[i] = wrapTo(llvm::cast<mlir::IntegerType>(y.element), value.value_or(0));
    }
  });
  if (failed) return refuse("graph.reduce " + graph::stringifyReduceKind(kind).str() + " has no meaning on these integers");
  return y;
}

Cotangents reduceVjp(const VjpCall &call) {
  auto op = llvm::cast<graph::ReduceOp>(call.op);
  Cotangents result(1);
  const Tensor &x = call.operand(0);
  ReduceKind kind = op.getKind();
  if (!call.value.isFloat() || !x.isFloat() || kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin) return result;
  result[0] = Tensor::zeros(x.element, x.shape);
  Reduction r = splitDims(x.shape, op.getAxes());
  eachKept(r, [&](int64_t i, int64_t start) {
    double g = call.cotangent.floats[i], y = call.value.floats[i], total = 0;
    bool given = false;
    if (kind == ReduceKind::LogSum) eachReduced(r, start, [&](int64_t at) { total += x.floats[at]; });
    eachReduced(r, start, [&](int64_t at) {
      double v = x.floats[at], slope = 1;
      switch (kind) {
      case ReduceKind::Mean: slope = 1.0 / static_cast<double>(r.count); break;
      case ReduceKind::L1: slope = v > 0 ? 1 : v < 0 ? -1 : 0; break;
      case ReduceKind::L2: slope = y == 0 ? 0 : v / y; break;
      case ReduceKind::SumSquare: slope = 2 * v; break;
      case ReduceKind::LogSumExp: slope = math::exp(v - y); break;
      case ReduceKind::LogSum: slope = 1 / total; break;
      case ReduceKind::Max: case ReduceKind::Min: slope = v == y && !given ? 1 : 0, given |= v == y; break;
      case ReduceKind::Prod:
        eachReduced(r, start, [&](int64_t other) { slope *= other == at ? 1 : x.floats[other]; });
        break;
      default: break;
      }
      result[0].floats[at] = g * slope;
    });
  });
  return result;
}

/// fn(offset of the element, offset of the one before it or -1) along axis, in the direction of the sum.
template <typename Fn> static void eachStep(const Shape &shape, int64_t axis, bool reverse, Fn fn) {
  if (axis < 0) axis += shape.size();
  Reduction r = splitDims(shape, {axis});
  int64_t size = shape[axis], stride = r.reducedStrides[0];
  eachKept(r, [&](int64_t, int64_t start) {
    for (int64_t i = 0, previous = -1; i < size; ++i) {
      int64_t at = start + (reverse ? size - 1 - i : i) * stride;
      fn(at, previous);
      previous = at;
    }
  });
}

llvm::Expected<Tensor> cumsum(const Call &call) {
  auto op = llvm::cast<graph::CumSumOp>(call.op);
  const Tensor &x = call.operand(0);
  Tensor y = call.result();
  eachStep(x.shape, op.getAxis(), op.getReverse(), [&](int64_t at, int64_t previous) {
    int64_t added = op.getExclusive() ? previous : at;
    if (x.isFloat())
      y.floats[at] = (previous < 0 ? 0 : y.floats[previous]) + (added < 0 ? 0 : x.floats[added]);
    else
      y.ints[at] = wrapTo(llvm::cast<mlir::IntegerType>(y.element), (previous < 0 ? 0 : y.ints[previous]) + (added < 0 ? 0 : x.ints[added]));
  });
  return y;
}

Cotangents cumsumVjp(const VjpCall &call) {
  auto op = llvm::cast<graph::CumSumOp>(call.op);
  Cotangents result(1);
  const Tensor &x = call.operand(0), &g = call.cotangent;
  if (!x.isFloat()) return result;
  result[0] = Tensor::zeros(x.element, x.shape);
  Tensor &d = result[0]; // the same sum, walked the other way
  eachStep(x.shape, op.getAxis(), !op.getReverse(), [&](int64_t at, int64_t previous) {
    int64_t added = op.getExclusive() ? previous : at;
    d.floats[at] = (previous < 0 ? 0 : d.floats[previous]) + (added < 0 ? 0 : g.floats[added]);
  });
  return result;
}

} // namespace tare::reference
