// Brings ops into the one form that kernels know. In: softmax over any axis, norms over several last dims, matmul with
// 1-D operands. Out: softmax and norms over the last axis only, matmul of matrices, with reshapes and transposes around
// them. No value changes.
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_NORMALIZEAXESPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;
using tare::Dim;
using tare::Dims;

namespace {

RankedTensorType typed(Value like, ArrayRef<Dim> dims) { return tensorType(getElementTypeOrSelf(like), dims); }

/// softmax over `axis` as transpose, softmax over the last axis, transpose.
void lastAxis(SoftmaxOp op) {
  auto dims = dimsOf(op.getX());
  int64_t last = static_cast<int64_t>(dims.size()) - 1, axis = op.getAxis();
  if (axis == last) return;
  OpBuilder builder(op);
  SmallVector<int64_t> perm;
  for (int64_t i = 0; i <= last; ++i) perm.push_back(i);
  std::swap(perm[axis], perm[last]);
  std::swap(dims[axis], dims[last]);
  auto moved = builder.create<TransposeOp>(op.getLoc(), typed(op.getX(), dims), op.getX(), perm);
  auto softmax =
      builder.create<SoftmaxOp>(op.getLoc(), moved.getType(), moved, static_cast<uint64_t>(last), op.getLog());
  softmax->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  tare::replaceBy(op, builder.create<TransposeOp>(op.getLoc(), op.getType(), softmax, perm));
}

/// Scale or bias over dims [axis, rank) as one dim; it is broadcast to all of them first.
Value flatParameter(OpBuilder &builder, Value parameter, ArrayRef<Dim> inner) {
  auto full = typed(parameter, inner);
  if (parameter.getType() != full) {
    Dims own = dimsOf(parameter);
    if (own.size() > inner.size())
      parameter = builder.create<ReshapeOp>(parameter.getLoc(),
                                            typed(parameter, ArrayRef<Dim>(own).take_back(inner.size())), parameter);
    parameter = builder.create<ExpandOp>(parameter.getLoc(), full, parameter);
  }
  return builder.create<ReshapeOp>(parameter.getLoc(), typed(parameter, {tare::elementCount(inner)}), parameter);
}

template <typename Norm> void flatten(Norm op) {
  Dims dims = dimsOf(op.getX());
  int64_t axis = op.getAxis(), last = static_cast<int64_t>(dims.size()) - 1;
  if (axis >= last) return;
  OpBuilder builder(op);
  SmallVector<Dim> inner(dims.begin() + axis, dims.end());
  Dims flat(dims.begin(), dims.begin() + axis);
  flat.push_back(tare::elementCount(inner));
  auto x = builder.create<ReshapeOp>(op.getLoc(), typed(op.getX(), flat), op.getX());
  SmallVector<Value> operands = {x};
  for (Value parameter : op->getOperands().drop_front()) operands.push_back(flatParameter(builder, parameter, inner));
  Operation *made = builder.clone(*op.getOperation());
  made->setOperands(operands);
  made->getResult(0).setType(typed(op.getResult(), flat));
  cast<Norm>(made).setAxis(static_cast<uint64_t>(axis));
  tare::replaceBy(op, builder.create<ReshapeOp>(op.getLoc(), op.getType(), made->getResult(0)));
}

/// 1-D operands get the dim of size 1 that NumPy gives them; the result loses it again.
void asMatrices(MatmulOp op) {
  Dims a = dimsOf(op.getLhs()), b = dimsOf(op.getRhs()), result = dimsOf(op.getResult());
  if (a.size() > 1 && b.size() > 1) return;
  OpBuilder builder(op);
  Value lhs = op.getLhs(), rhs = op.getRhs();
  if (b.size() == 1) {
    rhs = builder.create<ReshapeOp>(op.getLoc(), typed(rhs, {b[0], Dim(1)}), rhs);
    result.push_back(1);
  }
  if (a.size() == 1) {
    lhs = builder.create<ReshapeOp>(op.getLoc(), typed(lhs, {Dim(1), a[0]}), lhs);
    result.insert(result.end() - 1, Dim(1));
  }
  auto matmul = builder.create<MatmulOp>(op.getLoc(), typed(op.getResult(), result), lhs, rhs);
  matmul->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  tare::replaceBy(op, builder.create<ReshapeOp>(op.getLoc(), op.getType(), matmul));
}

struct NormalizeAxesPass : tare::impl::NormalizeAxesPassBase<NormalizeAxesPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    for (Operation &op : llvm::make_early_inc_range(*body)) {
      if (auto softmax = dyn_cast<SoftmaxOp>(op)) lastAxis(softmax);
      if (auto norm = dyn_cast<LayerNormOp>(op)) flatten(norm);
      if (auto norm = dyn_cast<RmsNormOp>(op)) flatten(norm);
      if (auto matmul = dyn_cast<MatmulOp>(op)) asMatrices(matmul);
    }
    tare::eraseDeadOps(*body);
  }
};

} // namespace
