// Phase borders are contracts checked by code. In: a module and the phase that just ended. Out: success, or an error at the op that breaks the
// promise, naming the pass that owed it. A breach is a defect of Tare, never of the input: the message says so.
#include "passes/Contracts.h"
#include "compiler/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Groups.h"

using namespace mlir;

namespace tare {

static LogicalResult owed(Operation *op, StringRef pass, const Twine &why) {
  auto diagnostic = op->emitError() << "internal error: " << pass << " owed: " << why;
  diagnostic.attachNote() << "this is a defect of Tare, not of the model; please report it together with the model";
  return failure();
}

static bool onlyGraphOps(Operation *op) { return isa<graph::GraphDialect>(op->getDialect()) || isa<func::FuncOp, func::ReturnOp, ModuleOp>(op); }

static LogicalResult everyTypeCarriesDims(Operation *op, StringRef pass) {
  for (Value result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type) return owed(op, pass, "a ranked tensor as result");
    if (!type.hasStaticShape() && !isa_and_nonnull<graph::DimsAttr>(type.getEncoding())) return owed(op, pass, "symbolic dims on every dynamic type");
    if (auto dims = dyn_cast_if_present<graph::DimsAttr>(type.getEncoding()); dims && static_cast<int64_t>(dims.getValues().size()) != type.getRank())
      return owed(op, pass, "as many dims as the tensor has dimensions");
  }
  return success();
}

static LogicalResult checkImported(Operation *op) {
  if (!onlyGraphOps(op)) return owed(op, "the importer", "only graph ops, not " + op->getName().getStringRef());
  if (isa<UnknownLoc>(op->getLoc()) && !isa<ModuleOp, func::FuncOp, func::ReturnOp>(op)) return owed(op, "the importer", "a location on every op");
  return everyTypeCarriesDims(op, "the importer");
}

/// After checking, every candidate has a verdict; fidelity checks are no candidates.
static LogicalResult checkChecked(Operation *op) {
  auto layer = dyn_cast<graph::LayerOp>(op);
  if (layer && layer.getRole() != "fidelity_check" && !layer.getVerdict()) return owed(op, "graph-check-layers", "a verdict on every candidate");
  if (layer && layer.getVerdict() && !layer->hasAttr("graph.evidence")) return owed(op, "graph-check-layers", "evidence beside every verdict");
  return success();
}

static bool isNarrowFloat(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() < 32;
}

/// Narrow floats only at inputs, outputs, constants; a rounding to a narrow type that the source asked for is a pair of casts.
static LogicalResult checkClean(Operation *op) {
  if (auto check = dyn_cast<graph::FidelityCheckOp>(op); check && !check.getAnchors()) return owed(op, "graph-expand-fidelity-checks", "no dense check");
  if (isa<graph::DimsConstantOp>(op) && op->use_empty()) return owed(op, "graph-fold-shapes", "no dead shape value");
  if (!isa<graph::ConstantOp, graph::CastOp, graph::DequantizeOp>(op) && !movesElements(op))
    for (Value result : op->getResults())
      if (isNarrowFloat(result.getType())) return owed(op, "graph-widen-activations", "no arithmetic in a type narrower than f32");
  return success();
}

/// The contract with codegen: only groups, constants and views are left; results of main are distinct results of groups.
static LogicalResult checkFused(func::FuncOp main) {
  for (Operation &op : main.getBody().front()) {
    if (!isa<graph::ConstantOp, graph::GroupOp, graph::ReshapeOp, func::ReturnOp>(op)) return owed(&op, "graph-form-groups", "a group around " + op.getName().getStringRef());
    if (auto group = dyn_cast<graph::GroupOp>(op); group && failed(checkGroup(group))) return failure();
    auto exit = dyn_cast<func::ReturnOp>(op);
    for (auto [i, value] : llvm::enumerate(exit ? exit->getOperands() : OperandRange(nullptr, 0)))
      if (!value.getDefiningOp<graph::GroupOp>() || llvm::is_contained(exit->getOperands().take_front(i), value))
        return owed(exit, "graph-form-groups", "result " + Twine(i) + " of main as its own result of a group");
  }
  return success();
}

LogicalResult checkContract(Phase phase, ModuleOp module) {
  auto each = [&](LogicalResult (*check)(Operation *)) {
    return failure(module.walk([&](Operation *op) { return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance(); }).wasInterrupted());
  };
  switch (phase) {
  case Phase::Imported:
    if (!module.lookupSymbol<func::FuncOp>("main")) return owed(module, "the importer", "a function main");
    return each(checkImported);
  case Phase::Marked: return each([](Operation *op) { return everyTypeCarriesDims(op, "graph-mark-layers"); });
  case Phase::Checked: return each(checkChecked);
  case Phase::Pruned:
    return each([](Operation *op) { return isa<graph::LayerOp>(op) ? owed(op, "graph-short-circuit-layers", "no layer left") : success(); });
  case Phase::Clean: return each(checkClean);
  case Phase::Fused: return checkFused(module.lookupSymbol<func::FuncOp>("main"));
  case Phase::Planned:
  case Phase::Engine: return success();
  }
  return success();
}

} // namespace tare
