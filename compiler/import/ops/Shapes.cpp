// Ops that look at or change shapes only: Shape, Reshape and its relatives, Expand. Targets are symbolic contents.
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {

void identity(NodeImport &n) { n.out(0, n.in(0)); }

void dropout(NodeImport &n) {
  n.ignoreAttribute("ratio"), n.ignoreAttribute("seed"), n.ignoreAttribute("is_test");
  if (auto *training = n.content(2); training && !(*training)[0].isConstant(0))
    n.g.trainingDropouts.push_back(graph::nodeName(n.location));
  n.out(0, n.in(0));
  if (n.wanted(1)) { // the mask: everything is kept
    Value ones = n.emit<graph::FillOp>(n.type(n.g.builder.getI1Type(), n.dims(0)), n.g.builder.getBoolAttr(true));
    n.out(1, n.version >= 10 ? ones : n.cast(ones, n.element(0)));
  }
}

void shape(NodeImport &n) {
  int64_t rank = n.rank(0), start = n.integer("start", 0), end = n.integer("end", rank);
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  start = clamp(start), end = std::max(clamp(end), start);
  Dims content(n.dims(0).begin() + start, n.dims(0).begin() + end);
  n.outContent(0, n.g.builder.getI64Type(), {Dim(end - start)}, content);
}

void size(NodeImport &n) { n.outContent(0, n.g.builder.getI64Type(), {}, {elementCount(n.dims(0))}); }

void reshape(NodeImport &n) {
  bool allowZero = n.integer("allowzero", 0) != 0;
  auto *target = n.requireContent(1, "shape");
  if (!target) return;
  Dims dims;
  int64_t inferred = -1;
  Dim total = elementCount(n.dims(0)), known(1);
  std::string from = text(n.dims(0)), to = text(*target);
  for (auto [i, entry] : llvm::enumerate(*target)) {
    Dim d = entry;
    if (entry.isConstant(0) && !allowZero) {
      if (static_cast<int64_t>(i) >= n.rank(0))
        return n.fail("shape " + to + " has a 0 at position " + std::to_string(i) + ", the input " + from +
                      " has no such dimension");
      d = n.dims(0)[i];
    } else if (entry.isConstant(-1)) {
      if (inferred >= 0) return n.fail("shape " + to + " has two -1");
      inferred = static_cast<int64_t>(i);
      dims.push_back(0);
      continue;
    } else if (auto c = entry.constant(); c && *c < 0) {
      return n.fail("shape " + to + " has a negative size");
    }
    dims.push_back(d);
    known = known * d;
  }
  std::string where = "node '" + graph::nodeName(n.location) + "' (Reshape, tensor '" + n.proto.output(0) + "'): ";
  if (inferred >= 0) {
    if (known.isConstant(0)) return n.fail("shape " + to + ": -1 cannot be computed beside a 0");
    Dim rest = Dim::floorDiv(total, known);
    if (!(rest * known == total)) {
      if (total.constant() && known.constant()) return n.fail(from + " cannot be reshaped to " + to);
      n.g.require("equal", total, rest * known,
                  where + "the size of " + from + " must be a multiple of " + known.str());
    }
    dims[inferred] = rest;
  } else if (!(known == total)) {
    if (total.constant() && known.constant())
      return n.fail(from + " cannot be reshaped to " + to + ": " + total.str() + " and " + known.str() + " elements");
    n.g.require("equal", total, known, where + from + " must have as many elements as " + text(dims));
  }
  n.out(0, n.reshape(n.in(0), dims));
}

void flatten(NodeImport &n) {
  int64_t axis = n.axis(n.integer("axis", 1), n.rank(0), /*inclusive=*/true);
  if (n.failed()) return;
  ArrayRef<Dim> dims = n.dims(0);
  Dim before = elementCount(dims.take_front(axis)), after = elementCount(dims.drop_front(axis));
  n.out(0, n.reshape(n.in(0), {before, after}));
}

/// `axes`: attribute before opset 13, operand from then on. Nothing when absent or failed.
static std::optional<SmallVector<int64_t>> axesOf(NodeImport &n) {
  if (n.version < 13) return n.integers("axes");
  return n.in(1) ? n.requireIntegers(1, "axes") : std::nullopt;
}

void squeeze(NodeImport &n) {
  auto list = axesOf(n);
  if (n.failed()) return;
  SmallVector<int64_t> axes = list ? n.axes(*list, n.rank(0)) : SmallVector<int64_t>();
  if (n.failed()) return;
  Dims dims;
  for (auto [i, d] : llvm::enumerate(n.dims(0))) {
    if (!list && !d.constant())
      return n.fail("without axes it would remove dimension " + std::to_string(i) + " (" + d.str() +
                    ") in runs in which that is 1 and keep it in others: the rank of " + text(n.dims(0)) +
                    " after it is not known; export the model with axes");
    bool named = llvm::is_contained(axes, static_cast<int64_t>(i));
    if (named && d.constant() && !d.isConstant(1))
      return n.fail("dimension " + std::to_string(i) + " of " + text(n.dims(0)) + " is not 1");
    if (named && !d.constant())
      n.g.require("equal", d, 1,
                  "node '" + graph::nodeName(n.location) + "' (Squeeze, tensor '" + n.proto.output(0) +
                      "'): " + d.str() + " must be 1");
    if (list ? !named : !d.isConstant(1)) dims.push_back(d);
  }
  n.out(0, n.reshape(n.in(0), dims));
}

void unsqueeze(NodeImport &n) {
  auto list = axesOf(n);
  if (n.failed()) return;
  if (!list) return n.fail("axes are missing");
  int64_t rank = n.rank(0) + static_cast<int64_t>(list->size());
  SmallVector<int64_t> axes = n.axes(*list, rank);
  if (n.failed()) return;
  Dims dims;
  for (int64_t i = 0, next = 0; i < rank; ++i) dims.push_back(llvm::is_contained(axes, i) ? Dim(1) : n.dims(0)[next++]);
  n.out(0, n.reshape(n.in(0), dims));
}

void expand(NodeImport &n) {
  auto *target = n.requireContent(1, "shape");
  if (!target) return;
  for (auto &d : *target)
    if (d.constant() && *d.constant() < 0) return n.fail("shape " + text(*target) + " has a negative size");
  Dims dims = n.broadcast(n.dims(0), *target);
  if (n.failed()) return;
  auto to = n.type(n.element(0), dims);
  if (n.failed()) return;
  if (to == n.in(0).getType()) return n.out(0, n.in(0));
  Dims content;
  if (auto *x = n.content(0);
      x && x->size() == 1 && dims.size() == 1 && dims[0].constant() && *dims[0].constant() <= kMaxContent)
    content.assign(*dims[0].constant(), (*x)[0]);
  if (!content.empty() && n.outContent(0, n.element(0), dims, content)) return;
  n.out(0, n.emit<graph::ExpandOp>(to, n.in(0)));
}

} // namespace tare::ops
