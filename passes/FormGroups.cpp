// Cuts main into fusion groups. In: clean and recognised ops. Out: only constants, groups, views and the return; each result of main is its own
// result of a group. Must hold: no value changes, no value is computed before its operands, a value that main returns stays a result (B05, B08).
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Groups.h"
#include "passes/Passes.h"

namespace tare {
#define GEN_PASS_DEF_FORMGROUPSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;

namespace {

struct FormGroupsPass : tare::impl::FormGroupsPassBase<FormGroupsPass> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main) return;
    Block &body = main.getBody().front();
    OpBuilder builder(&getContext());
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
      auto kind = tare::groupKindOf(&op);
      if (isa<ReshapeOp>(op) || !kind) continue;
      builder.setInsertionPoint(&op);
      tare::buildGroup(builder, op.getLoc(), *kind, {&op}, {op.getResult(0)});
      op.erase();
    }
    copyResults(cast<func::ReturnOp>(body.getTerminator()));
  }

  /// Results of main that would alias an input, a constant or another result become copies.
  void copyResults(func::ReturnOp exit) {
    OpBuilder builder(exit);
    llvm::SmallPtrSet<Value, 16> returned;
    for (OpOperand &operand : exit->getOpOperands()) {
      Value value = operand.get();
      if (value.getDefiningOp<GroupOp>() && returned.insert(value).second) continue;
      auto copy = builder.create<UnaryOp>(value.getLoc(), value.getType(), UnaryKind::Identity, value);
      operand.set(copy.getResult());
      auto group = tare::buildGroup(builder, value.getLoc(), GroupKind::Pointwise, {copy}, {copy.getResult()});
      copy.erase();
      returned.insert(group.getResult(0));
    }
  }
};

} // namespace
