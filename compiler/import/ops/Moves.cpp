// Transpose, Concat, Split, Pad, Tile, Trilu.
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {

void transpose(NodeImport &n) {
  int64_t rank = n.rank(0);
  auto perm = n.integers("perm");
  if (!perm) {
    perm.emplace();
    for (int64_t i = rank - 1; i >= 0; --i) perm->push_back(i);
  }
  SmallVector<bool> seen(rank, false);
  Dims dims;
  for (int64_t &p : *perm) {
    int64_t i = n.axis(p, rank);
    if (n.failed()) return;
    if (seen[i]) return n.fail("attribute 'perm' names dimension " + std::to_string(i) + " twice");
    seen[i] = true, p = i;
    dims.push_back(n.dims(0)[i]);
  }
  if (static_cast<int64_t>(perm->size()) != rank) return n.fail("attribute 'perm' has " + std::to_string(perm->size()) + " entries for rank " + std::to_string(rank));
  n.out(0, n.emit<graph::TransposeOp>(n.type(n.element(0), dims), n.in(0), *perm));
}

void concat(NodeImport &n) {
  auto given = n.integer("axis");
  if (n.failed()) return;
  if (!given) return n.fail("attribute 'axis' is missing");
  int64_t axis = n.axis(*given, n.rank(0));
  if (n.failed()) return;
  Dims dims = n.dims(0);
  SmallVector<Value> operands;
  Dims content;
  bool known = n.rank(0) == 1;
  for (unsigned i = 0; i < n.operandCount(); ++i) {
    if (!n.in(i)) return n.fail("operand " + std::to_string(i) + " is missing");
    if (n.element(i) != n.element(0)) return n.fail("operands have different element types: " + typeName(n.element(0)) + " and " + typeName(n.element(i)));
    const Dims &other = n.dims(i);
    if (other.size() != dims.size()) return n.fail("operands have different ranks: " + text(n.dims(0)) + " and " + text(other));
    for (size_t k = 0; i && k < dims.size(); ++k) {
      if (static_cast<int64_t>(k) == axis) { dims[k] = dims[k] + other[k]; continue; }
      if (dims[k] == other[k]) continue;
      if (dims[k].constant() && other[k].constant()) return n.fail("shapes " + text(n.dims(0)) + " and " + text(other) + " differ outside of axis " + std::to_string(axis));
      n.g.require("equal", dims[k], other[k], "node '" + graph::nodeName(n.location) + "' (Concat, tensor '" + n.proto.output(0) + "'): " + dims[k].str() + " must be equal to " + other[k].str());
      if (other[k].constant()) dims[k] = other[k];
    }
    operands.push_back(n.in(i));
    if (auto *c = n.content(i); c && isa<IntegerType>(n.element(i))) content.append(c->begin(), c->end());
    else known = false;
  }
  if (known && static_cast<int64_t>(content.size()) <= kMaxContent && n.outContent(0, n.element(0), dims, content)) return;
  if (operands.size() == 1) return n.out(0, operands[0]);
  n.out(0, n.emit<graph::ConcatOp>(n.type(n.element(0), dims), operands, axis));
}

void split(NodeImport &n) {
  int64_t axis = n.axis(n.integer("axis", 0), n.rank(0));
  auto count = n.integer("num_outputs");
  std::optional<SmallVector<int64_t>> attribute = n.version < 13 ? n.integers("split") : std::nullopt;
  if (n.failed()) return;
  Dim total = n.dims(0)[axis];
  int64_t outputs = n.resultCount();
  if (count && *count != outputs) return n.fail("attribute 'num_outputs' is " + std::to_string(*count) + ", the node has " + std::to_string(outputs) + " outputs");
  Dims sizes;
  if (attribute) {
    for (int64_t s : *attribute) sizes.push_back(s);
  } else if (n.version >= 13 && n.in(1)) {
    auto *given = n.requireContent(1, "split");
    if (!given) return;
    sizes = *given;
  } else {
    // Equal parts; from opset 18 on the last may be smaller.
    Dim part = Dim::floorDiv(total + outputs - 1, outputs);
    if (n.version < 18 && total.constant() && *total.constant() % outputs != 0)
      return n.fail("dimension " + total.str() + " cannot be split into " + std::to_string(outputs) + " equal parts");
    if (auto exact = total.dividedBy(outputs)) part = *exact;
    sizes.assign(outputs, part);
    sizes.back() = total - Dim(outputs - 1) * part;
  }
  if (static_cast<int64_t>(sizes.size()) != outputs) return n.fail("split has " + std::to_string(sizes.size()) + " sizes for " + std::to_string(outputs) + " outputs");
  Dim sum;
  for (auto &s : sizes) {
    if (s.constant() && *s.constant() < 0) return n.fail("split sizes " + text(sizes) + " contain a negative size");
    sum = sum + s;
  }
  if (sum.constant() && total.constant() && !(sum == total))
    return n.fail("split sizes " + text(sizes) + " sum to " + sum.str() + ", dimension " + std::to_string(axis) + " has " + total.str());
  if (!(sum == total)) n.g.require("equal", total, sum, "node '" + graph::nodeName(n.location) + "' (Split): the sizes must sum to " + total.str());
  Dim start;
  for (int64_t i = 0; i < outputs; ++i) {
    Dims dims = n.dims(0), starts(dims.size(), Dim(0));
    dims[axis] = sizes[i], starts[axis] = start;
    if (n.wanted(i)) {
      auto *c = n.content(0);
      auto from = start.constant(), size = sizes[i].constant();
      bool known = c && n.rank(0) == 1 && from && size && isa<IntegerType>(n.element(0));
      if (!known || !n.outContent(i, n.element(0), dims, Dims(c->begin() + *from, c->begin() + *from + *size)))
        n.out(i, n.emit<graph::SliceOp>(n.type(n.element(0), dims), n.in(0), graph::DimsAttr::get(&n.g.context, starts), SmallVector<int64_t>(dims.size(), 1)));
    }
    start = start + sizes[i];
  }
}

void pad(NodeImport &n) {
  std::string mode = n.text("mode", "constant");
  if (mode != "constant") return n.fail("attribute 'mode' = '" + mode + "' is not supported (constant is)");
  int64_t rank = n.rank(0);
  Dims pads;
  Value value;
  if (n.version < 11) {
    auto given = n.integers("pads");
    if (!given) return n.fail("attribute 'pads' is missing");
    for (int64_t p : *given) pads.push_back(p);
    value = n.scalar(n.element(0), n.real("value", 0));
  } else {
    auto *given = n.requireContent(1, "pads");
    if (!given) return;
    pads = *given;
    value = n.in(2) ? n.reshape(n.in(2), {}) : n.scalar(n.element(0), 0);
  }
  SmallVector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  if (n.version >= 18 && n.in(3)) {
    auto given = n.requireIntegers(3, "axes");
    if (!given) return;
    axes.clear();
    for (int64_t a : *given) axes.push_back(n.axis(a, rank));
  }
  if (n.failed()) return;
  if (pads.size() != 2 * axes.size()) return n.fail("pads has " + std::to_string(pads.size()) + " entries, " + std::to_string(2 * axes.size()) + " are needed");
  if (cast<RankedTensorType>(value.getType()).getElementType() != n.element(0)) return n.fail("the padding value has another element type than the input");
  Dims dims = n.dims(0), before(rank, Dim(0));
  for (auto [i, a] : llvm::enumerate(axes)) {
    before[a] = pads[i];
    dims[a] = dims[a] + pads[i] + pads[axes.size() + i];
    if (dims[a].constant() && *dims[a].constant() < 0) return n.fail("negative pads are larger than dimension " + std::to_string(a) + " of " + text(n.dims(0)));
  }
  auto type = n.type(n.element(0), dims);
  if (n.failed()) return;
  n.out(0, n.emit<graph::PadOp>(type, n.in(0), value, graph::DimsAttr::get(&n.g.context, before)));
}

void tile(NodeImport &n) {
  auto *repeats = n.requireContent(1, "repeats");
  if (!repeats) return;
  if (static_cast<int64_t>(repeats->size()) != n.rank(0)) return n.fail("repeats has " + std::to_string(repeats->size()) + " entries for rank " + std::to_string(n.rank(0)));
  Dims dims = n.dims(0);
  for (size_t i = 0; i < dims.size(); ++i) {
    auto c = (*repeats)[i].constant();
    if (c && *c < 0) return n.fail("repeats " + text(*repeats) + " contains a negative number");
    if (c && dims[i].constant() && *c > int64_t(kMaxElements)) return n.fail("the result has more than 2^40 elements", "", ExitCode::Limit);
    dims[i] = dims[i] * (*repeats)[i];
  }
  auto type = n.type(n.element(0), dims);
  if (n.failed()) return;
  n.out(0, type == n.in(0).getType() ? n.in(0) : n.emit<graph::TileOp>(type, n.in(0)));
}

void trilu(NodeImport &n) {
  bool upper = n.integer("upper", 1) != 0;
  if (n.rank(0) < 2) return n.fail("needs at least 2 dimensions, got " + text(n.dims(0)));
  Dim k;
  if (n.in(1)) {
    auto *known = n.requireContent(1, "k");
    if (!known) return;
    if (known->size() != 1) return n.fail("k must be a scalar");
    k = (*known)[0];
  }
  n.out(0, n.emit<graph::TriluOp>(cast<RankedTensorType>(n.in(0).getType()), n.in(0), graph::DimsAttr::get(&n.g.context, k), n.g.builder.getBoolAttr(upper)));
}

} // namespace tare::ops
