// Pointwise kernels: every result is written by a loop nest over its dims, results of equal dims share one. Where nothing moves the nest is one flat loop; a
// concat or reshape at the root shapes the nest instead of each element; inner loops are split where a fixed concat or pad border crosses them.
#include "compiler/codegen/IndexWalk.h"
#include "compiler/codegen/cpu/Kinds.h"
#include <set>

using namespace mlir;

namespace tare::codegen {

static Type elementType(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

/// Fixed positions along the last dim where a concat, pad or slice inside the expression changes its source.
static std::set<int64_t> borders(ArrayRef<Target> targets) {
  std::set<int64_t> result;
  SmallVector<Value> all;
  DenseSet<Value> seen;
  for (auto &t : targets) collectSources(t.value, all, seen);
  Dims space = graph::dimsOf(targets.front().value);
  for (Value v : all) {
    Dims dims = graph::dimsOf(v);
    if (dims.empty() || !(dims.back() == space.back())) continue;
    if (auto concat = v.getDefiningOp<graph::ConcatOp>(); concat && concat.getAxis() + 1 == dims.size()) {
      Dim at = 0;
      for (Value input : concat.getInputs()) {
        at = at + graph::dimsOf(input).back();
        if (auto c = at.constant()) result.insert(*c);
      }
    }
  }
  return result;
}

static void storeAll(Emitter &e, ArrayRef<Target> targets, Indices at) {
  SmallVector<Value> scalars;
  for (auto &t : targets) scalars.push_back(e.element(t.value, at));
  for (auto [t, scalar] : llvm::zip(targets, scalars)) {
    SmallVector<Value> where(at);
    for (auto [i, offset] : llvm::enumerate(t.offset)) where[i] = e.add(where[i], e.dim(offset));
    e.store(t.memory, where, scalar);
  }
}

void emitNest(Emitter &e, ArrayRef<Target> targets) {
  Dims space = graph::dimsOf(targets.front().value);
  if (isFlat(targets, e.memory, [](const Memory &) { return true; })) {
    e.flat = true;
    auto [lo, hi] = e.part(e.dim(elementCount(space)), 64);
    e.loop(lo, hi, [&](Value i) { storeAll(e, targets, i); });
    e.flat = false;
    return;
  }
  if (targets.size() == 1) {
    Target t = targets.front();
    auto reshape = t.value.getDefiningOp<graph::ReshapeOp>();
    if (reshape && t.offset.empty() && ArrayRef<Dim>(t.memory.physical) == ArrayRef<Dim>(space)) {
      t.value = reshape.getX();
      t.memory.physical = graph::dimsOf(t.value);
      return emitNest(e, t);
    }
    if (auto concat = t.value.getDefiningOp<graph::ConcatOp>()) {
      if (t.offset.empty()) t.offset.assign(space.size(), Dim(0));
      for (Value input : concat.getInputs()) {
        Target piece = t;
        piece.value = input;
        emitNest(e, piece);
        t.offset[concat.getAxis()] = t.offset[concat.getAxis()] + graph::dimsOf(input)[concat.getAxis()];
      }
      return;
    }
  }
  std::set<int64_t> splits = space.empty() ? std::set<int64_t>() : borders(targets);
  e.rows(space, [&](Indices row, Value lo, Value hi) {
    if (space.empty()) return storeAll(e, targets, {});
    auto inner = [&](Value from, Value to, int64_t begin, int64_t end) {
      e.loop(from, to, [&](Value i) {
        if (end) e.knowRange(i, begin, end);
        SmallVector<Value> at(row);
        at.push_back(i);
        storeAll(e, targets, at);
      });
    };
    if (splits.empty()) return inner(lo, hi, 0, 0);
    int64_t begin = 0;
    for (int64_t end : splits) {
      if (end == begin) continue;
      inner(e.larger(lo, e.integer(begin)), e.smaller(hi, e.integer(end)), begin, end);
      begin = end;
    }
    if (!space.back().isConstant(begin)) inner(e.larger(lo, e.integer(begin)), hi, begin, INT64_MAX);
  });
}

void emitPointwise(Emitter &e, Kernel &k) {
  SmallVector<SmallVector<Target>> nests;
  for (auto [v, m] : llvm::zip(k.body.front().getTerminator()->getOperands(), k.results)) {
    Dims dims = graph::dimsOf(v);
    auto it = llvm::find_if(nests, [&](auto &n) { return ArrayRef<Dim>(graph::dimsOf(n.front().value)) == ArrayRef<Dim>(dims); });
    if (it == nests.end())
      nests.push_back({Target{v, m, {}}});
    else
      it->push_back({v, m, {}});
  }
  for (auto &targets : nests) emitNest(e, targets);
}

bool canEmit(func::FuncOp body, std::string &why) {
  for (Operation &op : body.front().without_terminator()) {
    bool known = isa<graph::ConstantOp, graph::FillOp, graph::UnaryOp, graph::BinaryOp, graph::SelectOp, graph::CastOp, graph::DequantizeOp, graph::ReduceOp, graph::CumSumOp,
                     graph::MatmulOp, graph::ReshapeOp, graph::TransposeOp, graph::ExpandOp, graph::SliceOp, graph::ConcatOp, graph::PadOp, graph::TileOp, graph::GatherOp,
                     graph::GatherElementsOp, graph::GatherNDOp, graph::TriluOp, graph::RangeOp, graph::DimsConstantOp, graph::SoftmaxOp, graph::LayerNormOp, graph::RmsNormOp,
                     graph::AttentionOp, graph::FidelityCheckOp>(op);
    if (auto binary = dyn_cast<graph::BinaryOp>(op)) {
      bool logic = binary.getKind() == graph::BinaryKind::And || binary.getKind() == graph::BinaryKind::Or || binary.getKind() == graph::BinaryKind::Xor;
      known &= !logic || isa<IntegerType>(elementType(binary.getLhs()));
    }
    if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
      known &= dense && (dense.isSplat() || dense.getNumElements() == 1);
    }
    if (auto gather = dyn_cast<graph::GatherNDOp>(op)) {
      Dims table = graph::dimsOf(gather.getIndices());
      known &= !table.empty() && table.back().constant().has_value();
    }
    if (!known) {
      why = op.getName().getStringRef().str();
      return false;
    }
  }
  return true;
}

} // namespace tare::codegen
