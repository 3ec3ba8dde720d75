// Common subexpressions. In: ops of main. Out: of equal ops (same kind, operands, properties and types) only the first is left. Source names and other
// discardable attributes do not count, so that what an exporter repeats for each layer merges; constants merge when value and name are equal.
// Linear by hashing. Must hold: only pure ops without regions merge; an op that draws random numbers would not be pure (B16).
#include "passes/Passes.h"
#include "passes/Rewrite.h"
#include "llvm/ADT/DenseSet.h"

namespace tare {
#define GEN_PASS_DEF_MERGEEQUALOPSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;

namespace {

struct EqualOps : llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(const Operation *constant) {
    auto *op = const_cast<Operation *>(constant);
    return static_cast<unsigned>(llvm::hash_combine(op->getName(), op->hashProperties(), op->getResultTypes(), llvm::hash_combine_range(op->operand_begin(), op->operand_end())));
  }
  static bool isEqual(const Operation *a, const Operation *b) {
    if (a == b) return true;
    for (auto *special : {getEmptyKey(), getTombstoneKey()})
      if (a == special || b == special) return false;
    auto *left = const_cast<Operation *>(a), *right = const_cast<Operation *>(b);
    return left->getName() == right->getName() && left->getOperands() == right->getOperands() && left->getResultTypes() == right->getResultTypes() &&
           left->getName().compareOpProperties(left->getPropertiesStorage(), right->getPropertiesStorage());
  }
};

struct MergeEqualOpsPass : tare::impl::MergeEqualOpsPassBase<MergeEqualOpsPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    llvm::DenseSet<Operation *, EqualOps> seen;
    for (Operation &op : llvm::make_early_inc_range(body->without_terminator())) {
      if (op.getNumRegions() || op.getNumResults() != 1 || !isMemoryEffectFree(&op)) continue;
      auto [first, isNew] = seen.insert(&op);
      if (isNew) continue;
      tare::replaceBy(&op, (*first)->getResult(0));
      op.erase();
    }
  }
};

} // namespace
