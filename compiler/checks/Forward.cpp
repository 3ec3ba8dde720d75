// Check (b). In: a layer and the values of one run of the whole original model. Out: the L2 norm of what the layer
// changes.
#include "compiler/checks/Measure.h"
#include "compiler/checks/Parameters.h"
#include "compiler/reference/Recall.h"
#include <cmath>

using namespace mlir;
using tare::reference::Tensor;

namespace tare::checks {

static bool allFinite(const Tensor &t) { return llvm::all_of(t.floats, [](double v) { return std::isfinite(v); }); }

/// Walks up from a non-finite state to the first op that made it: the one none of whose activations is non-finite.
static std::string originOf(Value state, const SampleRun &run) {
  reference::Recall values(run.values, &run.known, run.symbols);
  llvm::DenseSet<Value> seen;
  Operation *origin = nullptr;
  for (Value at = state; at && seen.insert(at).second;) {
    Operation *op = at.getDefiningOp();
    if (!op) {
      auto layer = dyn_cast<graph::LayerOp>(at.getParentBlock()->getParentOp());
      if (!layer) return "an input of the model";
      at = layer.getInput();
      continue;
    }
    if (auto layer = dyn_cast<graph::LayerOp>(op)) {
      at = layer.getBody().front().getTerminator()->getOperand(0);
      continue;
    }
    origin = op;
    at = nullptr;
    if (isa<graph::SoftmaxOp>(op)) break; // masked scores are -inf on purpose
    for (Value operand : op->getOperands()) {
      if (isConstantOnly(operand)) continue;
      auto value = values.find(operand);
      if (!value) {
        llvm::consumeError(value.takeError());
        continue;
      }
      if ((*value)->isFloat() && !allFinite(**value)) at = operand;
    }
  }
  if (!origin) return "the model";
  if (auto layer = origin->getParentOfType<graph::LayerOp>()) return layer.getName().str();
  if (auto scope = origin->getAttrOfType<StringAttr>(graph::kScopeAttr); scope && !scope.empty()) return scope.str();
  std::string node = graph::nodeName(origin->getLoc());
  return node.empty() ? origin->getName().getStringRef().str() : node;
}

ForwardResult measureForward(graph::LayerOp layer, const SampleRun &run) {
  const Tensor &in = run.values.find(layer.getInput())->second, &out = run.values.find(layer.getResult())->second;
  double sum = 0;
  for (size_t i = 0; i < out.floats.size(); ++i) {
    double d = out.floats[i] - in.floats[i];
    sum += d * d;
  }
  ForwardResult result{std::sqrt(sum), ""};
  if (std::isfinite(result.l2)) return result;
  if (!allFinite(in))
    result.why = "the state that flows in is already non-finite; it comes from " + originOf(layer.getInput(), run);
  else if (!allFinite(out))
    result.why = "the layer's own output is not finite";
  else
    result.why = "the norm overflows";
  return result;
}

} // namespace tare::checks
