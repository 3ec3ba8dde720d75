// What fusion groups are made of. In: ops of main. Out: group ops, or a broken rule named. The rules are those of docs/architecture.md, "Fusion groups";
// every emitter in compiler/codegen relies on them, so checkGroup runs at the border of the fused phase.
#include "passes/Groups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tare::graph;

namespace tare {

bool isPointwise(Operation *op) { return isa<UnaryOp, BinaryOp, SelectOp, CastOp, DequantizeOp>(op); }

bool movesElements(Operation *op) {
  return isa<ReshapeOp, TransposeOp, ExpandOp, SliceOp, ConcatOp, PadOp, TileOp, GatherOp, GatherElementsOp, GatherNDOp, TriluOp, RangeOp, FillOp, DimsConstantOp>(op);
}

bool isScalarConstant(Value value) {
  ConstantOp constant = constantOf(value);
  return constant && constant.getValue().getNumElements() == 1;
}

Value behindViews(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>()) value = view.getX();
  return value;
}

/// The rhs of a packed GEMM: a constant matrix in a type that the microkernels read.
static bool isPackable(Value value) {
  if (auto cast = value.getDefiningOp<CastOp>()) value = cast.getX();
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || constant.getOverridable()) return false;
  auto type = cast<RankedTensorType>(value.getType());
  return type.getRank() == 2 && (type.getElementType().isF32() || type.getElementType().isF16() || type.getElementType().isBF16());
}

static GroupKind matmulKind(MatmulOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType()), result = cast<RankedTensorType>(op.getResult().getType());
  return lhs.getElementType().isF32() && result.getElementType().isF32() && lhs.getRank() >= 2 && isPackable(op.getRhs()) ? GroupKind::Gemm : GroupKind::BatchMatmul;
}

/// The KV-cache form: main's input (used by nothing else) followed by new rows, returned by main.
static bool isAppend(ConcatOp op) {
  if (op.getInputs().size() != 2) return false;
  auto past = dyn_cast<BlockArgument>(op.getInputs()[0]);
  if (!past || !past.hasOneUse() || !isa<func::FuncOp>(past.getOwner()->getParentOp()) || op.getInputs()[1] == past) return false;
  return llvm::any_of(op.getResult().getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
}

FidelityCheckOp fusedCheckOf(Operation *op) {
  auto matmul = dyn_cast<MatmulOp>(op);
  auto sum = matmul && matmul->hasOneUse() ? dyn_cast<BinaryOp>(*matmul->user_begin()) : BinaryOp();
  if (!sum || sum.getKind() != BinaryKind::Add || matmulKind(matmul) != GroupKind::Gemm) return {};
  auto check = (sum.getLhs() == matmul.getResult() ? sum.getRhs() : sum.getLhs()).getDefiningOp<FidelityCheckOp>();
  return check && check.getAnchors() && check->hasOneUse() && check.getH() == matmul.getLhs() ? check : FidelityCheckOp();
}

std::optional<GroupKind> groupKindOf(Operation *op) {
  if (auto concat = dyn_cast<ConcatOp>(op); concat && isAppend(concat)) return GroupKind::Append;
  if (auto matmul = dyn_cast<MatmulOp>(op)) return matmulKind(matmul);
  if (isa<ReduceOp, CumSumOp>(op)) return GroupKind::Reduce;
  if (isa<SoftmaxOp, LayerNormOp, RmsNormOp>(op)) return GroupKind::Row;
  if (isa<AttentionOp>(op)) return GroupKind::Attention;
  if (isPointwise(op) || movesElements(op)) return GroupKind::Pointwise;
  return std::nullopt;
}

GroupOp buildGroup(OpBuilder &builder, Operation *root, GroupKind kind, ArrayRef<Operation *> ops, ArrayRef<Value> results) {
  llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
  llvm::SetVector<Value> inputs;
  llvm::SetVector<Operation *> scalars;
  auto take = [&](Value operand) {
    if (operand.getDefiningOp() && inside.contains(operand.getDefiningOp())) return;
    bool isOfCheck = llvm::all_of(operand.getUsers(), [](Operation *user) { return isa<FidelityCheckOp>(user); }); // read from memory by a microkernel
    if (isScalarConstant(operand) && !isOfCheck && !inputs.contains(operand))
      scalars.insert(operand.getDefiningOp());
    else
      inputs.insert(operand);
  };
  // What a microkernel reads lies in memory, also when it has one element; the sources of views inside the group are such operands, too.
  auto inMemory = [&](Value operand) {
    while (Operation *made = operand.getDefiningOp()) {
      if (!inside.contains(made) || !isa<CastOp, TransposeOp, ReshapeOp>(made)) break;
      operand = made->getOperand(0);
    }
    if (!operand.getDefiningOp() || !inside.contains(operand.getDefiningOp())) inputs.insert(operand);
  };
  unsigned read = isa<MatmulOp>(root) ? 2 : isa<AttentionOp>(root) ? 3 : 0;
  llvm::for_each(root->getOperands().take_front(read), inMemory);
  llvm::for_each(root->getOperands().drop_front(read), take);
  for (Operation *op : ops) llvm::for_each(op->getOperands(), take);
  // A packed weight has another layout than the one that the rest of the body would read: that reads an operand of its own.
  Value packed;
  Operation *widened = nullptr;
  if (kind == GroupKind::Gemm) {
    packed = root->getOperand(1);
    if (widened = packed.getDefiningOp(); widened && inside.contains(widened)) packed = widened->getOperand(0);
    else widened = nullptr;
    auto readsWeight = [&](Operation *op) { return op != root && op != widened && llvm::any_of(op->getOperands(), [&](Value v) { return v == packed || (widened && v == widened->getResult(0)); }); };
    if (root->getOperand(0) != packed && llvm::none_of(ops, readsWeight)) packed = nullptr;
  }
  SmallVector<Value> operands(inputs.getArrayRef());
  if (packed) operands.push_back(packed);
  SmallVector<Type> types;
  for (Value result : results) types.push_back(result.getType());
  auto group = builder.create<GroupOp>(root->getLoc(), types, kind, operands);
  OpBuilder body(builder.getContext());
  Block *block = body.createBlock(&group.getBody());
  IRMapping mapping;
  for (Value input : inputs) mapping.map(input, block->addArgument(input.getType(), input.getLoc()));
  auto cloneWith = [&](Operation *op, IRMapping &values) {
    Operation *made = body.clone(*op, values);
    made->setDiscardableAttrs(DictionaryAttr::get(op->getContext()));
    return made;
  };
  IRMapping ofRoot; // the packed operand, where it is read in two layouts
  if (packed) {
    ofRoot.map(packed, mapping.lookup(packed));
    mapping.map(packed, block->addArgument(packed.getType(), packed.getLoc()));
  }
  auto clone = [&](Operation *op) {
    if (op != root || !packed) return void(cloneWith(op, mapping));
    Value rhs = widened ? cloneWith(widened, ofRoot)->getResult(0) : ofRoot.lookup(packed);
    cloneWith(root, mapping)->setOperand(1, rhs);
  };
  for (Operation *scalar : scalars) {
    clone(scalar);
    cast<ConstantOp>(block->back()).setName("");
  }
  llvm::for_each(ops, clone);
  if (Operation *copy = widened && packed ? mapping.lookup(widened->getResult(0)).getDefiningOp() : nullptr; copy && copy->use_empty()) copy->erase();
  SmallVector<Value> yielded;
  for (Value result : results) yielded.push_back(mapping.lookup(result));
  body.create<YieldOp>(root->getLoc(), yielded);
  for (auto [result, made] : llvm::zip_equal(results, group.getResults()))
    Value(result).replaceUsesWithIf(made, [&](OpOperand &use) { return !inside.contains(use.getOwner()); });
  return group;
}

} // namespace tare
