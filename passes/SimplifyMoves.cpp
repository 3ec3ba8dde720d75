// Exact rules on ops that move elements. In: one op. Out: an equal value, or none. Shapes are compared symbolically: a rule applies only when
// the dims are equal for every size (B03: permutations compose as result[i] = first[second[i]]; B01: an identity transpose is none).
#include "passes/Groups.h"
#include "passes/Rewrite.h"
#include "passes/SimplifyRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tare::graph;

namespace tare {

static bool isIota(ArrayRef<int64_t> perm) {
  for (auto [i, p] : llvm::enumerate(perm))
    if (static_cast<int64_t>(i) != p) return false;
  return true;
}

static bool isZeros(DimsAttr offsets) {
  return llvm::all_of(offsets.dims(), [](const Dim &d) { return d.isConstant(0); });
}

/// Moves that move nothing: same dims in and out and no offset.
static Value dropMove(Operation *op, OpBuilder &) {
  bool nothing = isa<ReshapeOp, ExpandOp, TileOp>(op) || (isa<ConcatOp>(op) && op->getNumOperands() == 1);
  if (auto transpose = dyn_cast<TransposeOp>(op)) nothing = isIota(transpose.getPerm());
  if (auto slice = dyn_cast<SliceOp>(op)) nothing = isZeros(slice.getStarts()) && llvm::all_of(slice.getSteps(), [](int64_t s) { return s == 1; });
  if (auto pad = dyn_cast<PadOp>(op)) nothing = isZeros(pad.getBefore());
  return nothing && op->getOperand(0).getType() == op->getResult(0).getType() ? op->getOperand(0) : Value();
}

static Value mergeTransposes(Operation *op, OpBuilder &builder) {
  auto outer = dyn_cast<TransposeOp>(op);
  auto inner = outer ? outer.getX().getDefiningOp<TransposeOp>() : TransposeOp();
  if (!inner) return {};
  SmallVector<int64_t> perm;
  for (int64_t p : outer.getPerm()) perm.push_back(inner.getPerm()[p]);
  return builder.create<TransposeOp>(op->getLoc(), outer.getType(), inner.getX(), perm);
}

static Value mergeReshapes(Operation *op, OpBuilder &builder) {
  auto outer = dyn_cast<ReshapeOp>(op);
  auto inner = outer ? outer.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  return inner ? Value(builder.create<ReshapeOp>(op->getLoc(), outer.getType(), inner.getX())) : Value();
}

static Value mergeExpands(Operation *op, OpBuilder &builder) {
  auto outer = dyn_cast<ExpandOp>(op);
  auto inner = outer ? outer.getX().getDefiningOp<ExpandOp>() : ExpandOp();
  return inner ? Value(builder.create<ExpandOp>(op->getLoc(), outer.getType(), inner.getX())) : Value();
}

static Value mergeSlices(Operation *op, OpBuilder &builder) {
  auto outer = dyn_cast<SliceOp>(op);
  auto inner = outer ? outer.getX().getDefiningOp<SliceOp>() : SliceOp();
  if (!inner) return {};
  Dims starts;
  SmallVector<int64_t> steps;
  for (auto [a, s, b, t] : llvm::zip_equal(inner.getStarts().dims(), inner.getSteps(), outer.getStarts().dims(), outer.getSteps())) {
    int64_t step;
    if (__builtin_mul_overflow(s, t, &step)) return {};
    starts.push_back(a + b * Dim(s));
    steps.push_back(step);
  }
  return builder.create<SliceOp>(op->getLoc(), outer.getType(), inner.getX(), DimsAttr::get(builder.getContext(), starts), steps);
}

/// A transpose that only moves dims of size 1 is a reshape: the order of the other dims stays.
static Value transposeAsReshape(Operation *op, OpBuilder &builder) {
  auto transpose = dyn_cast<TransposeOp>(op);
  if (!transpose) return {};
  auto dims = dimsOf(transpose.getX());
  int64_t last = -1;
  for (int64_t p : transpose.getPerm()) {
    if (dims[p].isConstant(1)) continue;
    if (p < last) return {};
    last = p;
  }
  return builder.create<ReshapeOp>(op->getLoc(), transpose.getType(), transpose.getX());
}

/// For each merged dim the range of dims of `fine` whose product it is; nothing when `coarse` is no such merge of `fine`.
static std::optional<SmallVector<std::pair<size_t, size_t>>> mergedRanges(ArrayRef<Dim> fine, ArrayRef<Dim> coarse) {
  SmallVector<std::pair<size_t, size_t>> ranges;
  size_t at = 0;
  for (auto [i, dim] : llvm::enumerate(coarse)) {
    size_t begin = at;
    Dim product = 1;
    bool isLast = i + 1 == coarse.size(); // takes trailing dims of size 1 too
    while (at < fine.size() && (at == begin || product != dim || isLast)) product = product * fine[at++];
    if (begin == at || product != dim) return std::nullopt;
    ranges.push_back({begin, at});
  }
  return at == fine.size() ? std::optional(ranges) : std::nullopt;
}

/// split(transpose(merge(x))) = transpose(split(merge(x))), where each dim of the transpose is split in its place: two reshapes meet and often cancel.
/// It is how newer exporters write k^T for batched matrices.
static Value splitBeforeTranspose(Operation *op, OpBuilder &builder) {
  auto split = dyn_cast<ReshapeOp>(op);
  auto transpose = split ? split.getX().getDefiningOp<TransposeOp>() : TransposeOp();
  auto merge = transpose ? transpose.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!merge || dimsOf(merge.getX()).size() <= dimsOf(merge.getResult()).size()) return {};
  auto fine = dimsOf(split.getResult());
  auto ranges = mergedRanges(fine, dimsOf(transpose.getResult()));
  if (!ranges) return {};
  size_t rank = transpose.getPerm().size();
  SmallVector<size_t> placeOf(rank); // where dim i of the transpose's operand ends up
  for (auto [to, from] : llvm::enumerate(transpose.getPerm())) placeOf[from] = to;
  Dims before;
  SmallVector<int64_t> perm(fine.size());
  for (size_t from = 0; from < rank; ++from)
    for (size_t d = (*ranges)[placeOf[from]].first; d < (*ranges)[placeOf[from]].second; ++d) {
      perm[d] = static_cast<int64_t>(before.size());
      before.push_back(fine[d]);
    }
  // The old reshape is looked through here, because the new one is not visited again.
  Value x = merge.getX();
  auto type = tensorType(getElementTypeOrSelf(x), before);
  if (x.getType() != type) x = builder.create<ReshapeOp>(op->getLoc(), type, x);
  return builder.create<TransposeOp>(op->getLoc(), split.getType(), x, perm);
}

/// GatherND whose indices address one dim is a gather along the first.
static Value gatherNdAsGather(Operation *op, OpBuilder &builder) {
  auto gather = dyn_cast<GatherNDOp>(op);
  if (!gather || gather.getBatchDims() != 0) return {};
  auto indexDims = dimsOf(gather.getIndices());
  if (indexDims.empty() || !indexDims.back().isConstant(1)) return {};
  indexDims.pop_back();
  auto indices = builder.create<ReshapeOp>(op->getLoc(), tensorType(getElementTypeOrSelf(gather.getIndices()), indexDims), gather.getIndices());
  return builder.create<GatherOp>(op->getLoc(), gather.getType(), gather.getX(), indices, builder.getI64IntegerAttr(0));
}

/// reshape of a fill is a fill.
static Value reshapeOfFill(Operation *op, OpBuilder &builder) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  auto fill = reshape ? reshape.getX().getDefiningOp<FillOp>() : FillOp();
  return fill ? Value(builder.create<FillOp>(op->getLoc(), reshape.getType(), fill.getValue())) : Value();
}

/// expand or transpose of a fill is a fill.
static Value moveOfFill(Operation *op, OpBuilder &builder) {
  if (!isa<ExpandOp, TransposeOp, SliceOp, TileOp>(op)) return {};
  auto fill = op->getOperand(0).getDefiningOp<FillOp>();
  return fill ? Value(builder.create<FillOp>(op->getLoc(), op->getResult(0).getType(), fill.getValue())) : Value();
}

static bool keepsLastDim(ReshapeOp reshape) {
  auto from = dimsOf(reshape.getX()), to = dimsOf(reshape.getResult());
  return !from.empty() && !to.empty() && from.back() == to.back();
}

/// matmul(reshape(x), w) = reshape(matmul(x, w)) for a matrix w: exporters flatten tokens in front of every Gemm.
static Value matmulWithoutFlatten(Operation *op, OpBuilder &builder) {
  auto matmul = dyn_cast<MatmulOp>(op);
  auto reshape = matmul ? matmul.getLhs().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!reshape || !keepsLastDim(reshape)) return {};
  auto dims = dimsOf(reshape.getX());
  auto w = dimsOf(matmul.getRhs());
  if (w.size() != 2 || dims.size() < 2 || dimsOf(reshape.getResult()).size() < 2) return {};
  dims.back() = w[1];
  auto type = tensorType(getElementTypeOrSelf(matmul.getResult()), dims);
  auto made = builder.create<MatmulOp>(op->getLoc(), type, reshape.getX(), matmul.getRhs());
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return builder.create<ReshapeOp>(op->getLoc(), matmul.getType(), made);
}

/// f(reshape(x), scalars or vectors over the last dim) = reshape(f(x, ...)): a view at the end costs nothing and lets f join its producer.
static Value reshapeLater(Operation *op, OpBuilder &builder) {
  if (!isa<UnaryOp, CastOp, BinaryOp, SelectOp>(op)) return {};
  ReshapeOp view;
  for (Value operand : op->getOperands()) {
    auto own = dimsOf(operand);
    bool isVector = own.empty() || (own.size() == 1 && own.back() == dimsOf(op->getResult(0)).back()) || (own.size() == 1 && own[0].isConstant(1));
    if (isVector && !operand.getDefiningOp<ReshapeOp>()) continue;
    if ((view && view.getResult() != operand) || !operand.getDefiningOp<ReshapeOp>()) return {};
    view = operand.getDefiningOp<ReshapeOp>();
  }
  if (!view || !view->hasOneUse() || !keepsLastDim(view) || dimsOf(view.getResult()) != dimsOf(op->getResult(0))) return {};
  Operation *inner = builder.clone(*op);
  for (OpOperand &operand : inner->getOpOperands())
    if (operand.get() == view.getResult()) operand.set(view.getX());
  inner->getResult(0).setType(tensorType(getElementTypeOrSelf(op->getResult(0)), dimsOf(view.getX())));
  return builder.create<ReshapeOp>(op->getLoc(), op->getResult(0).getType(), inner->getResult(0));
}

ArrayRef<SimplifyRule> movingRules() {
  static constexpr SimplifyRule rules[] = {
      {"move", dropMove},
      {"transpose-transpose", mergeTransposes},
      {"transpose-as-reshape", transposeAsReshape},
      {"split-before-transpose", splitBeforeTranspose},
      {"reshape-reshape", mergeReshapes},
      {"expand-expand", mergeExpands},
      {"slice-slice", mergeSlices},
      {"gather-nd", gatherNdAsGather},
      {"reshape-fill", reshapeOfFill},
      {"move-fill", moveOfFill},
      {"matmul-flatten", matmulWithoutFlatten},
      {"reshape-later", reshapeLater},
  };
  return rules;
}

} // namespace tare
