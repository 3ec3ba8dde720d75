// Gather, GatherElements, GatherND.
#include "compiler/import/SymbolicContent.h"
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {

static bool indicesAreIntegers(NodeImport &n) {
  Type t = n.element(1);
  if (!t.isSignlessInteger(64) && !t.isSignlessInteger(32)) n.fail("indices must be int32 or int64, got " + typeName(t));
  return !n.failed();
}

/// Refuses constant indices outside of [-size, size).
static void checkIndices(NodeImport &n, const Dim &size, int64_t axis) {
  auto *indices = n.content(1);
  auto limit = size.constant();
  if (!indices || !limit) return;
  for (auto &d : *indices)
    if (auto i = d.constant(); i && (*i < -*limit || *i >= *limit))
      return n.fail("index " + std::to_string(*i) + " is out of range for dimension " + std::to_string(axis) + " of " + text(n.dims(0)));
}

void gather(NodeImport &n) {
  if (!indicesAreIntegers(n)) return;
  int64_t axis = n.axis(n.integer("axis", 0), n.rank(0));
  if (n.failed()) return;
  ArrayRef<Dim> x = n.dims(0);
  checkIndices(n, x[axis], axis);
  if (n.failed()) return;
  Dims dims(x.begin(), x.begin() + axis);
  dims.append(n.dims(1));
  dims.append(x.begin() + axis + 1, x.end());
  if (auto *c = n.content(0), *indices = n.content(1); c && indices && n.rank(0) == 1 && isa<IntegerType>(n.element(0))) {
    Dims content;
    for (auto &d : *indices) {
      auto i = d.constant();
      if (!i) break;
      content.push_back((*c)[*i < 0 ? *i + static_cast<int64_t>(c->size()) : *i]);
    }
    if (content.size() == indices->size() && n.outContent(0, n.element(0), dims, std::move(content))) return;
  }
  n.out(0, n.emit<graph::GatherOp>(n.type(n.element(0), dims), n.in(0), n.in(1), axis));
}

void gatherElements(NodeImport &n) {
  if (!indicesAreIntegers(n)) return;
  int64_t axis = n.axis(n.integer("axis", 0), n.rank(0));
  if (n.failed()) return;
  if (n.rank(1) != n.rank(0)) return n.fail("indices " + text(n.dims(1)) + " must have the rank of the data " + text(n.dims(0)));
  for (int64_t i = 0; i < n.rank(0); ++i) {
    const Dim &x = n.dims(0)[i], &y = n.dims(1)[i];
    if (i == axis || (x - y).provablyNonNegative()) continue;
    if (x.constant() && y.constant()) return n.fail("indices " + text(n.dims(1)) + " are larger than the data " + text(n.dims(0)));
    n.g.require("at_most", y, x, "node '" + graph::nodeName(n.location) + "' (GatherElements, tensor '" + n.proto.output(0) + "'): " + y.str() + " must be at most " + x.str());
  }
  checkIndices(n, n.dims(0)[axis], axis);
  n.out(0, n.emit<graph::GatherElementsOp>(n.type(n.element(0), n.dims(1)), n.in(0), n.in(1), axis));
}

void gatherND(NodeImport &n) {
  if (!indicesAreIntegers(n)) return;
  int64_t batch = n.integer("batch_dims", 0);
  if (n.failed()) return;
  ArrayRef<Dim> x = n.dims(0), indices = n.dims(1);
  if (indices.empty()) return n.fail("indices must have at least one dimension");
  auto depth = indices.back().constant();
  if (!depth) return n.fail("the last dimension of indices must be constant, got " + text(indices));
  if (batch < 0 || batch >= n.rank(1) || batch + *depth > n.rank(0) || *depth < 1)
    return n.fail("batch_dims " + std::to_string(batch) + " and indices " + text(indices) + " do not fit the data " + text(x));
  for (int64_t i = 0; i < batch; ++i) {
    if (x[i] == indices[i]) continue;
    if (x[i].constant() && indices[i].constant()) return n.fail("batch dimensions of " + text(x) + " and " + text(indices) + " differ");
    n.g.require("equal", x[i], indices[i], "node '" + graph::nodeName(n.location) + "' (GatherND, tensor '" + n.proto.output(0) + "'): " + x[i].str() + " must be equal to " + indices[i].str());
  }
  Dims dims(indices.drop_back());
  dims.append(x.begin() + batch + *depth, x.end());
  n.out(0, n.emit<graph::GatherNDOp>(n.type(n.element(0), dims), n.in(0), n.in(1), batch));
}

} // namespace tare::ops
