// Slice: starts and ends are clamped symbolically, so that slicing [0:S] of a table with 512 rows has min(S, 512) rows.
#include "compiler/import/ops/Ops.h"
#include <climits>

using namespace mlir;

namespace tare::ops {

namespace {
/// Exporters write "to the end" as a number near the top of int64 or int32.
constexpr int64_t kFar = INT32_MAX;

struct Axis { Dim start, length; };
} // namespace

static std::string place(NodeImport &n) { return "node '" + graph::nodeName(n.location) + "' (Slice, tensor '" + n.proto.output(0) + "'): "; }

/// A dim that is itself the result of clamping, e.g. max(sequence - 3, 0): empty for small inputs that are legal.
static bool mayBeCutToNothing(const Dim &d) {
  return llvm::any_of(d.terms(), [](auto &term) { return llvm::any_of(term.first, [](auto &atom) { return atom->kind == Dim::Atom::Kind::Max || atom->kind == Dim::Atom::Kind::Min; }); });
}

/// Position `p` counted from the start, for a dimension of size d: negative ones from the end, the result in [low, high].
static Dim position(NodeImport &n, const Dim &p, const Dim &d, const Dim &low, const Dim &high) {
  auto c = p.constant();
  if (c && *c >= kFar) return high;
  if (c && *c <= -kFar) return low;
  if (p.provablyNonNegative()) return (p - high).provablyNonNegative() ? high : Dim::min(p, high);
  bool negative = (Dim(0) - p - 1).provablyNonNegative();
  if (!negative) { // an expression whose sign a run decides: taken as counted from the start
    n.g.require("at_most", 0, p, place(n) + p.str() + " must not be negative");
    return Dim::min(p, high);
  }
  Dim q = d + p;
  if ((q - low).provablyNonNegative()) return q;
  if (p.isConstant(-1) && !d.constant() && !mayBeCutToNothing(d)) { // the last element: only an empty input has none
    n.g.require("at_most", 1, d, place(n) + d.str() + " must be at least 1");
    return q;
  }
  return Dim::max(q, low);
}

static Axis sliceAxis(NodeImport &n, const Dim &d, const Dim &start, const Dim &end, int64_t step) {
  Dim stride(std::abs(step)), from, span;
  if (step > 0) {
    from = position(n, start, d, 0, d);
    span = position(n, end, d, 0, d) - from;
  } else {
    from = position(n, start, d, -1, d - 1);
    span = from - position(n, end, d, -1, d - 1);
  }
  Dim length = Dim::floorDiv(span + stride - 1, stride);
  if (!length.provablyNonNegative()) length = Dim::max(length, 0);
  return {from, length};
}

static bool sliceContent(NodeImport &n, const Dims &dims, const Dims &starts, ArrayRef<int64_t> steps) {
  auto *c = n.content(0);
  if (!c || n.rank(0) != 1 || !isa<IntegerType>(n.element(0))) return false;
  auto start = starts[0].constant(), length = dims[0].constant();
  if (!start || !length) return false;
  Dims content;
  for (int64_t i = 0; i < *length; ++i) content.push_back((*c)[*start + i * steps[0]]);
  return n.outContent(0, n.element(0), dims, std::move(content));
}

void slice(NodeImport &n) {
  Dims from, to;
  std::optional<SmallVector<int64_t>> axes, strides;
  if (n.version < 10) {
    auto starts = n.integers("starts"), ends = n.integers("ends");
    axes = n.integers("axes");
    if (!starts || !ends) return n.fail("attributes 'starts' and 'ends' are needed");
    from.assign(starts->begin(), starts->end()), to.assign(ends->begin(), ends->end());
  } else {
    auto *starts = n.requireContent(1, "starts"), *ends = n.requireContent(2, "ends");
    if (!starts || !ends) return;
    from = *starts, to = *ends;
    if (n.in(3) && !(axes = n.requireIntegers(3, "axes"))) return;
    if (n.in(4) && !(strides = n.requireIntegers(4, "steps"))) return;
  }
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < from.size(); ++i) axes->push_back(static_cast<int64_t>(i));
  }
  if (from.size() != to.size() || axes->size() != from.size() || (strides && strides->size() != from.size()))
    return n.fail("starts, ends, axes and steps have different lengths");
  Dims dims = n.dims(0), starts(dims.size(), Dim(0));
  SmallVector<int64_t> steps(dims.size(), 1);
  SmallVector<bool> seen(dims.size(), false);
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t a = n.axis((*axes)[i], n.rank(0));
    if (n.failed()) return;
    if (seen[a]) return n.fail("axis " + std::to_string(a) + " appears twice");
    seen[a] = true;
    steps[a] = strides ? (*strides)[i] : 1;
    if (steps[a] == 0) return n.fail("a step is 0");
    // A step beyond any size takes one element; clamping it keeps the arithmetic below from overflowing.
    steps[a] = std::clamp<int64_t>(steps[a], -kFar, kFar);
    Axis result = sliceAxis(n, dims[a], from[i], to[i], steps[a]);
    starts[a] = result.start, dims[a] = result.length;
  }
  if (n.failed() || sliceContent(n, dims, starts, steps)) return;
  auto type = n.type(n.element(0), dims);
  bool whole = type == n.in(0).getType() && llvm::all_of(steps, [](int64_t s) { return s == 1; });
  n.out(0, whole ? n.in(0) : n.emit<graph::SliceOp>(type, n.in(0), graph::DimsAttr::get(&n.g.context, starts), steps));
}

} // namespace tare::ops
