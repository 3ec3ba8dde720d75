// Cuts main into fusion groups. In: clean and recognised ops. Out: only constants, groups, views and the return; each
// result of main is its own result of a group. Must hold: no value changes, no value is computed before its operands, a
// value that main returns stays a result (B05, B08).
#include "compiler/graph/ModulePath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/GroupPlanner.h"
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_FORMGROUPSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;

namespace {

struct FormGroupsPass : tare::impl::FormGroupsPassBase<FormGroupsPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    tare::eraseDeadOps(*body);
    tare::GroupPlanner planner(*body);
    OpBuilder builder(&getContext());
    for (const tare::PlannedGroup &group : planner.groups()) {
      SmallVector<Value> results = {group.last()->getResult(0)};
      for (Operation *extra : group.extra) results.push_back(extra->getResult(0));
      builder.setInsertionPointAfter(group.last());
      auto made = tare::buildGroup(builder, group.root, group.kind, planner.opsOf(group), results);
      made->setDiscardableAttrs(group.root->getDiscardableAttrDictionary());
      setScope(made, scopeOf(group, planner));
      for (Value result : made.getResults()) moveViewsBehind(result, made);
    }
    tare::eraseDeadOps(*body);
    copyResults(cast<func::ReturnOp>(body->getTerminator()));
  }

  /// The module path of the group's root; when the source says none for it, the first that another op of the group has.
  static std::string scopeOf(const tare::PlannedGroup &group, const tare::GroupPlanner &planner) {
    std::string path = modulePath(group.root);
    for (Operation *op : planner.opsOf(group)) {
      if (!path.empty()) break;
      path = modulePath(op);
    }
    return path;
  }

  static void setScope(GroupOp group, const std::string &path) {
    if (!path.empty()) group->setAttr(kScopeAttr, StringAttr::get(group.getContext(), path));
  }

  /// Views of a result that stood between a sibling and the group that took it in follow the group.
  static void moveViewsBehind(Value value, Operation *definition) {
    for (Operation *user : value.getUsers())
      if (isa<ReshapeOp>(user) && user->isBeforeInBlock(definition)) {
        user->moveAfter(definition);
        moveViewsBehind(user->getResult(0), user);
      }
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
      auto group = tare::buildGroup(builder, copy, GroupKind::Pointwise, {copy}, {copy.getResult()});
      if (Operation *source = tare::behindViews(value).getDefiningOp()) setScope(group, modulePath(source));
      copy.erase();
      returned.insert(group.getResult(0));
    }
  }
};

} // namespace
