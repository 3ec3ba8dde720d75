// The rules of each kind of fusion group, checked (docs/architecture.md, "Fusion groups"). In: a group. Out: success, or an error that says which
// rule of which kind is broken. Emitters in compiler/codegen may rely on everything that is checked here.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Groups.h"

using namespace mlir;
using namespace tare::graph;

namespace tare {

static LogicalResult broken(GroupOp group, const Twine &rule) {
  return group.emitError() << "internal error: graph-form-groups owed: a " << stringifyGroupKind(group.getKind()) << " group " << rule;
}

static bool isRootOf(Operation &op, GroupKind kind) {
  switch (kind) {
  case GroupKind::Reduce: return isa<ReduceOp, CumSumOp>(op);
  case GroupKind::Row: return isa<SoftmaxOp, LayerNormOp, RmsNormOp>(op);
  case GroupKind::Gemm:
  case GroupKind::BatchMatmul: return isa<MatmulOp>(op);
  case GroupKind::Attention: return isa<AttentionOp>(op);
  default: return false;
  }
}

static LogicalResult checkBlockArgument(GroupOp group, Value value, StringRef what) {
  return isa<BlockArgument>(value) ? success() : broken(group, "has " + what + " as a block argument");
}

static LogicalResult checkGemm(GroupOp group, MatmulOp root) {
  Value rhs = root.getRhs();
  if (auto cast = rhs.getDefiningOp<CastOp>()) rhs = cast.getX();
  auto argument = dyn_cast<BlockArgument>(rhs);
  if (!argument || !group.getInputs()[argument.getArgNumber()].getDefiningOp<ConstantOp>()) return broken(group, "has a constant as rhs");
  if (cast<RankedTensorType>(rhs.getType()).getRank() != 2) return broken(group, "has a matrix as rhs");
  return checkBlockArgument(group, root.getLhs(), "lhs");
}

static LogicalResult checkBatchOperand(GroupOp group, Value value) {
  if (value.getDefiningOp() && isa<TransposeOp, ReshapeOp>(value.getDefiningOp())) value = value.getDefiningOp()->getOperand(0);
  return checkBlockArgument(group, value, "each operand (behind at most one transpose or reshape)");
}

static LogicalResult checkRoot(GroupOp group, Operation *root) {
  auto rootDims = dimsOf(root->getResult(0));
  auto last = [&](int64_t axis, Value x) { return axis == cast<RankedTensorType>(x.getType()).getRank() - 1 ? success() : broken(group, "works on the last axis"); };
  switch (group.getKind()) {
  case GroupKind::Gemm:
    if (failed(checkGemm(group, cast<MatmulOp>(root)))) return failure();
    break;
  case GroupKind::BatchMatmul:
    if (failed(checkBatchOperand(group, cast<MatmulOp>(root).getLhs())) || failed(checkBatchOperand(group, cast<MatmulOp>(root).getRhs()))) return failure();
    break;
  case GroupKind::Attention:
    for (Value operand : root->getOperands().take_front(3))
      if (failed(checkBlockArgument(group, operand, "q, k and v"))) return failure();
    if (group.getNumResults() != 1 || group.getBody().front().getTerminator()->getOperand(0) != root->getResult(0)) return broken(group, "yields the attention only");
    return success();
  case GroupKind::Row: {
    if (auto softmax = dyn_cast<SoftmaxOp>(root))
      if (failed(last(softmax.getAxis(), softmax.getX()))) return failure();
    if (auto norm = dyn_cast<LayerNormOp>(root))
      if (failed(last(norm.getAxis(), norm.getX()))) return failure();
    if (auto norm = dyn_cast<RmsNormOp>(root))
      if (failed(last(norm.getAxis(), norm.getX()))) return failure();
    break;
  }
  default: break;
  }
  for (Value result : group.getResults())
    if (dimsOf(result) != rootDims) return broken(group, "has results of its root's shape");
  if ((group.getKind() == GroupKind::Gemm || group.getKind() == GroupKind::BatchMatmul) && group.getNumResults() != 1) return broken(group, "has one result");
  return success();
}

LogicalResult checkGroup(GroupOp group) {
  Operation *root = nullptr;
  for (Operation &op : group.getBody().front().without_terminator()) {
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      if (constant.getValue().getNumElements() != 1) return broken(group, "holds constants of one element only");
    } else if (isRootOf(op, group.getKind())) {
      if (root) return broken(group, "has one root");
      root = &op;
    } else if (auto check = dyn_cast<FidelityCheckOp>(op); check && group.getKind() == GroupKind::Gemm) {
      for (Value operand : check->getOperands())
        if (failed(checkBlockArgument(group, operand, "each operand of its check"))) return failure();
    } else if (!isPointwise(&op) && !movesElements(&op)) {
      return broken(group, "holds no " + op.getName().getStringRef());
    }
  }
  if (group.getKind() == GroupKind::Append) {
    Block &body = group.getBody().front();
    auto concat = dyn_cast<ConcatOp>(body.front());
    if (!concat || concat.getInputs().size() != 2 || !isa<ConcatOp>(concat) || body.getNumArguments() != 2) return broken(group, "is one concat of two inputs");
    return success();
  }
  if (group.getKind() == GroupKind::Pointwise) return group.getNumResults() ? success() : broken(group, "has a result");
  return root ? checkRoot(group, root) : broken(group, "has a root");
}

} // namespace tare
