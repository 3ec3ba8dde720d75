// Local rewrites that change no value. In: ops of main. Out: fewer ops. One walk from front to back: an op is rewritten until no rule applies, so the
// cost is linear (a chain of a million Identity nodes takes seconds). Must hold: types of results stay; NaN, infinities and signed zeros stay.
#include "passes/Passes.h"
#include "passes/Rewrite.h"
#include "passes/SimplifyRules.h"

namespace tare {
#define GEN_PASS_DEF_SIMPLIFYPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;

namespace {

struct SimplifyPass : tare::impl::SimplifyPassBase<SimplifyPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    OpBuilder builder(&getContext());
    for (Operation &op : llvm::make_early_inc_range(body->without_terminator())) {
      Operation *current = &op;
      // Each rule removes or shrinks something; the bound only guards against two rules that undo each other.
      for (int step = 0; current && step < 64; ++step) current = once(current, builder);
    }
    tare::eraseDeadOps(*body);
  }

  /// Applies one rule; returns the new op to look at next, null when none applied or the result is an older value.
  static Operation *once(Operation *op, OpBuilder &builder) {
    if (op->getNumResults() != 1 || op->use_empty()) return nullptr;
    builder.setInsertionPoint(op);
    for (auto rules : {tare::pointwiseRules(), tare::movingRules()})
      for (auto &rule : rules) {
        Operation *before = op->getPrevNode();
        Value made = rule.apply(op, builder);
        if (!made || made.getType() != op->getResult(0).getType()) continue;
        tare::replaceBy(op, made);
        Operation *next = made.getDefiningOp();
        bool isNew = next && next != before && next == op->getPrevNode();
        if (isNew && next->getDiscardableAttrs().empty()) next->setDiscardableAttrs(op->getDiscardableAttrDictionary());
        return isNew ? next : nullptr;
      }
    return nullptr;
  }
};

} // namespace
