// Takes out what nothing uses. In: any module. Out: no op of main without a use, no function besides main. Must hold: inputs and outputs stay.
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_REMOVEDEADOPSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;

namespace {
struct RemoveDeadOpsPass : tare::impl::RemoveDeadOpsPassBase<RemoveDeadOpsPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function.getName() != "main") function.erase();
    tare::eraseDeadOps(*body);
  }
};
} // namespace
