// Computing again (Recall.h). In: a value. Out: its tensor. Recursion goes as deep as the chain of values that were not
// kept.
#include "compiler/reference/Recall.h"
#include "compiler/graph/Failure.h"

using namespace mlir;

namespace tare::reference {

llvm::Expected<const Tensor *> Recall::find(Value value) {
  if (auto at = values.find(value); at != values.end()) return &at->second;
  if (known)
    if (auto at = known->find(value); at != known->end()) return &at->second;
  if (auto at = again.find(value); at != again.end()) return at->second.get();
  // The argument of a layer's or group's body is the operand, its result what the body yields.
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (argument.getArgNumber() < parent->getNumOperands()) return find(parent->getOperand(argument.getArgNumber()));
    return refuse("an input of the run has no value");
  }
  Operation *op = value.getDefiningOp();
  if (op->getNumRegions())
    return find(op->getRegion(0).front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
  SmallVector<const Tensor *> operands;
  for (Value operand : op->getOperands()) {
    auto tensor = find(operand);
    if (!tensor) return tensor.takeError();
    operands.push_back(*tensor);
  }
  auto results = evaluateOp(op, operands, symbols);
  if (!results) return results.takeError();
  auto &slot = again[value];
  slot = std::make_unique<Tensor>(std::move(results->front()));
  return slot.get();
}

void Recall::forget(Operation &op) {
  if (again.empty()) return;
  op.walk([&](Operation *inner) {
    for (Value result : inner->getResults()) again.erase(result);
  });
}

} // namespace tare::reference
