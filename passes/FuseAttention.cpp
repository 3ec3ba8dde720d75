// Recognises softmax attention. In: matmul(softmax(scale * q k^T + bias), v) with the transposes, reshapes and expands that exporters put around it.
// Out: graph.attention with the layouts that make them free; bias stays ordinary ops. Must hold: every inner value has no other use; a fully masked
// row stays NaN unless the source guards it with IsNaN/Where (B22).
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;

namespace {

int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

/// The operand of a transpose with exactly this permutation.
Value transposed(Value value, ArrayRef<int64_t> perm) {
  auto op = value.getDefiningOp<TransposeOp>();
  return op && op.getPerm() == perm ? Value(op.getX()) : Value();
}

/// Takes scalar factors off `value` into `scale`; the inner values must have no other use.
Value withoutScale(Value value, double &scale) {
  tare::Product product = tare::productOf(value);
  if (product.terms.size() != 1 || product.terms[0].getType() != value.getType()) return value;
  scale *= product.factor;
  return product.terms[0];
}

/// [B,G,T,D] whose heads are repeated r times by reshape, expand, reshape: the tensor before that.
Value withoutRepeat(Value value) {
  auto merge = value.getDefiningOp<ReshapeOp>();
  auto expand = merge ? merge.getX().getDefiningOp<ExpandOp>() : ExpandOp();
  auto split = expand ? expand.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split || rankOf(value) != 4 || rankOf(expand) != 5 || rankOf(split) != 5 || rankOf(split.getX()) != 4) return value;
  auto before = dimsOf(split.getX()), one = dimsOf(split.getResult()), many = dimsOf(expand.getResult()), after = dimsOf(value);
  tare::Dims expected = {before[0], before[1], tare::Dim(1), before[2], before[3]};
  if (one != expected || many[0] != one[0] || many[1] != one[1] || many[3] != one[3] || many[4] != one[4]) return value;
  if (after[0] != before[0] || after[1] != before[1] * many[2] || after[2] != before[2] || after[3] != before[3]) return value;
  return split.getX();
}

/// One operand in [B,H,S,D] order: the tensor to read and its layout letter.
struct Operand { Value value; char layout; };
Operand inLayout(Value value, bool repeats) {
  if (repeats) value = withoutRepeat(value);
  if (Value inner = transposed(value, {0, 2, 1, 3})) return {inner, 's'};
  return {value, 'h'};
}

/// k given k^T [B,H,D,T]; a transpose is made where there is none to take away.
Operand keys(Value transposedKeys, OpBuilder &builder, Location location) {
  auto op = transposedKeys.getDefiningOp<TransposeOp>();
  if (op && op.getPerm() == ArrayRef<int64_t>{0, 1, 3, 2}) return inLayout(op.getX(), true);
  if (op && op.getPerm() == ArrayRef<int64_t>{0, 2, 3, 1}) return {op.getX(), 's'};
  auto dims = dimsOf(transposedKeys);
  std::swap(dims[2], dims[3]);
  auto type = tensorType(getElementTypeOrSelf(transposedKeys), dims);
  return {builder.create<TransposeOp>(location, type, transposedKeys, ArrayRef<int64_t>{0, 1, 3, 2}), 'h'};
}

/// The scores of select(isnan(p), 0, p), i.e. p itself; null when `value` is no such guard.
Value behindGuard(Value value) {
  auto select = value.getDefiningOp<SelectOp>();
  if (!select || !value.hasOneUse()) return {};
  Value p = select.getRhs();
  bool guards = tare::unaryOf(select.getCond(), UnaryKind::IsNaN) == p && tare::oneElement(select.getLhs()) == 0.0;
  return guards && p.getType() == value.getType() && llvm::all_of(p.getUsers(), [&](Operation *user) { return user == select || user == select.getCond().getDefiningOp(); }) &&
                 select.getCond().hasOneUse()
             ? p
             : Value();
}

struct Scores { Value bias; MatmulOp matmul; double scale = 1; };
/// scores = scale * matmul + bias, in either operand order, the scale before or after the sum of several biases.
std::optional<Scores> scoresOf(Value value, const tare::Dims &dims, OpBuilder &builder) {
  Scores scores;
  SmallVector<Value> biases;
  while (true) {
    if (!value.hasOneUse() || dimsOf(value) != dims) return std::nullopt;
    Value plain = withoutScale(value, scores.scale);
    if (auto matmul = plain.getDefiningOp<MatmulOp>()) {
      scores.matmul = matmul;
      break;
    }
    auto sum = plain == value ? tare::binaryOf(value, BinaryKind::Add) : std::nullopt;
    if (!sum) return std::nullopt;
    auto leadsToMatmul = [&](Value v) {
      double ignored = 1;
      while (v.hasOneUse() && dimsOf(v) == dims) {
        v = withoutScale(v, ignored);
        if (v.getDefiningOp<MatmulOp>()) return true;
        auto inner = tare::binaryOf(v, BinaryKind::Add);
        if (!inner) return false;
        v = inner->first;
      }
      return false;
    };
    bool left = leadsToMatmul(sum->first);
    biases.push_back(left ? sum->second : sum->first);
    value = left ? sum->first : sum->second;
  }
  for (Value bias : biases) {
    if (!scores.bias) {
      scores.bias = bias;
      continue;
    }
    auto both = tare::broadcast(dimsOf(bias), dimsOf(scores.bias));
    if (!both) return std::nullopt;
    auto type = tensorType(getElementTypeOrSelf(bias), *both);
    scores.bias = builder.create<BinaryOp>(bias.getLoc(), type, BinaryKind::Add, bias, scores.bias);
  }
  return scores;
}

struct FuseAttentionPass : tare::impl::FuseAttentionPassBase<FuseAttentionPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    for (Operation &op : *body)
      if (auto matmul = dyn_cast<MatmulOp>(op)) fuse(matmul);
    tare::eraseDeadOps(*body);
  }

  void fuse(MatmulOp outer) {
    Value probabilities = outer.getLhs();
    Value guarded = behindGuard(probabilities);
    auto softmax = (guarded ? guarded : probabilities).getDefiningOp<SoftmaxOp>();
    if (!softmax || softmax.getLog() || rankOf(softmax) != 4 || softmax.getAxis() != 3 || rankOf(outer.getRhs()) != 4 || rankOf(outer) != 4) return;
    if (!guarded && !softmax->hasOneUse()) return;
    if (!cast<RankedTensorType>(outer.getType()).getElementType().isF32()) return;
    OpBuilder builder(outer);
    auto dims = dimsOf(softmax.getResult());
    auto scores = scoresOf(softmax.getX(), dims, builder);
    if (!scores) return;
    Value q = withoutScale(scores->matmul.getLhs(), scores->scale), kT = withoutScale(scores->matmul.getRhs(), scores->scale);
    if (rankOf(q) != 4 || rankOf(kT) != 4) return;
    Operand query = inLayout(q, false), key = keys(kT, builder, outer.getLoc()), value = inLayout(outer.getRhs(), true);
    if (!sameHeads(query, key, value, dims)) return;

    bool swaps = outer->hasOneUse() && isa<TransposeOp>(*outer->user_begin()) && cast<TransposeOp>(*outer->user_begin()).getPerm() == ArrayRef<int64_t>{0, 2, 1, 3};
    Operation *last = swaps ? *outer->user_begin() : outer.getOperation();
    std::string layout = {query.layout, key.layout, value.layout, swaps ? 's' : 'h'};
    auto attention = builder.create<AttentionOp>(scores->matmul.getLoc(), last->getResult(0).getType(), query.value, key.value, value.value, scores->bias,
                                                 builder.getF64FloatAttr(scores->scale), builder.getStringAttr(layout), guarded ? builder.getUnitAttr() : UnitAttr());
    attention->setDiscardableAttrs(scores->matmul->getDiscardableAttrDictionary());
    tare::replaceBy(last, attention.getResult());
  }

  /// Heads and lengths fit: no batch broadcasting between q, k, v beyond whole groups of heads.
  static bool sameHeads(Operand q, Operand k, Operand v, const tare::Dims &scores) {
    auto at = [](Operand o, int i) {
      auto dims = dimsOf(o.value);
      return o.layout == 's' && (i == 1 || i == 2) ? dims[3 - i] : dims[i];
    };
    if (rankOf(k.value) != 4 || rankOf(v.value) != 4 || at(k, 1) != at(v, 1) || !at(q, 1).dividedBy(at(k, 1))) return false;
    for (Operand o : {q, k, v})
      if (at(o, 0) != scores[0]) return false;
    return at(q, 1) == scores[1] && at(q, 2) == scores[2] && at(k, 2) == scores[3] && at(v, 2) == scores[3] && at(q, 3) == at(k, 3);
  }
};

} // namespace
