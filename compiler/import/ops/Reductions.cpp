// Reduce*, ArgMax, ArgMin, CumSum. Axes are an attribute in older opsets, an operand in newer ones.
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {

static Dims reducedDims(ArrayRef<Dim> dims, ArrayRef<int64_t> axes, bool keep) {
  Dims result;
  for (auto [i, d] : llvm::enumerate(dims)) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(i));
    if (!reduced) result.push_back(d);
    else if (keep) result.push_back(1);
  }
  return result;
}

static bool reduceContent(NodeImport &n, graph::ReduceKind kind, ArrayRef<Dim> dims) {
  using R = graph::ReduceKind;
  auto *c = n.content(0);
  if (!c || c->empty() || elementCount(dims).constant() != 1 || !isa<IntegerType>(n.element(0))) return false;
  if (kind != R::Sum && kind != R::Prod && kind != R::Max && kind != R::Min) return false;
  Dim acc = (*c)[0];
  for (auto &d : ArrayRef<Dim>(*c).drop_front())
    acc = kind == R::Sum ? acc + d : kind == R::Prod ? acc * d : kind == R::Max ? Dim::max(acc, d) : Dim::min(acc, d);
  return n.outContent(0, n.element(0), dims, {acc});
}

/// A reduction over an empty set of axes keeps every element, but the steps around the sum are still done (operator specification, noop_with_empty_axes).
static Value overNoAxes(NodeImport &n, graph::ReduceKind kind) {
  using R = graph::ReduceKind;
  if (kind == R::L1 || kind == R::L2) return n.unary(graph::UnaryKind::Abs, n.in(0));
  if (kind == R::SumSquare) return n.binary(graph::BinaryKind::Mul, n.in(0), n.in(0));
  if (kind == R::LogSum) return n.unary(graph::UnaryKind::Log, n.in(0));
  return n.in(0); // log(exp(x)) is x
}

void reduce(NodeImport &n, graph::ReduceKind kind) {
  bool keep = n.integer("keepdims", 1) != 0, emptyIsNothing = n.integer("noop_with_empty_axes", 0) != 0;
  int64_t axesOperandSince = kind == graph::ReduceKind::Sum ? 13 : 18;
  std::optional<SmallVector<int64_t>> list;
  if (n.version < axesOperandSince) list = n.integers("axes");
  else if (n.in(1)) list = n.requireIntegers(1, "axes");
  if (n.failed()) return;
  if ((!list || list->empty()) && emptyIsNothing) return n.out(0, overNoAxes(n, kind));
  SmallVector<int64_t> axes;
  if (list && !list->empty()) {
    axes = n.axes(*list, n.rank(0));
  } else {
    for (int64_t i = 0; i < n.rank(0); ++i) axes.push_back(i);
  }
  if (n.failed()) return;
  Dims dims = reducedDims(n.dims(0), axes, keep);
  if (reduceContent(n, kind, dims)) return;
  n.out(0, n.emit<graph::ReduceOp>(n.type(n.element(0), dims), kind, n.in(0), axes, keep, /*last_index=*/false));
}

void argReduce(NodeImport &n, graph::ReduceKind kind) {
  int64_t axis = n.axis(n.integer("axis", 0), n.rank(0));
  bool keep = n.integer("keepdims", 1) != 0, last = n.integer("select_last_index", 0) != 0;
  if (n.failed()) return;
  n.out(0, n.emit<graph::ReduceOp>(n.type(n.g.builder.getI64Type(), reducedDims(n.dims(0), {axis}, keep)), kind, n.in(0), ArrayRef<int64_t>{axis}, keep, last));
}

void cumSum(NodeImport &n) {
  auto given = n.requireIntegers(1, "axis");
  bool exclusive = n.integer("exclusive", 0) != 0, reverse = n.integer("reverse", 0) != 0;
  if (n.failed()) return;
  if (given->size() != 1) return n.fail("axis must be a scalar");
  int64_t axis = n.axis((*given)[0], n.rank(0));
  if (n.failed()) return;
  n.out(0, n.emit<graph::CumSumOp>(mlir::cast<RankedTensorType>(n.in(0).getType()), n.in(0), axis, exclusive, reverse));
}

} // namespace tare::ops
