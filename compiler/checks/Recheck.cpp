// The checker's small job (Recheck.h): one layer that is about to be erased. What it cannot re-derive from the layer alone (norms over the calibration)
// it takes from the evidence and judges by its own table.
#include "compiler/checks/Recheck.h"
#include "compiler/checks/RecheckParts.h"
#include "compiler/graph/Failure.h"
#include <cmath>

using namespace mlir;

namespace tare::checks {

static double number(DictionaryAttr evidence, StringRef key) {
  auto value = evidence.getAs<FloatAttr>(key);
  return value ? value.getValueAsDouble() : std::nan("");
}

/// The function's constants that reach the layer, decoded.
static reference::Values decodeAround(graph::LayerOp layer) {
  reference::Values known;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work;
  layer.getBody().walk([&](Operation *op) { work.append(op->operand_begin(), op->operand_end()); });
  while (!work.empty()) {
    Value v = work.pop_back_val();
    Operation *op = v.getDefiningOp();
    if (!seen.insert(v).second || !op) continue;
    if (auto constant = dyn_cast<graph::ConstantOp>(op))
      known[v] = reference::decode(constant.getValue());
    else if (op->getNumRegions() == 0)
      work.append(op->operand_begin(), op->operand_end());
  }
  return known;
}

llvm::Error recheck(graph::LayerOp layer, const CompileOptions &options) {
  auto evidence = layer->getAttrOfType<DictionaryAttr>("graph.evidence");
  auto verdict = layer.getVerdict();
  auto differs = [&](const std::string &what) { return llvm::Error(fail(ExitCode::Internal, what).atNode(layer.getName().str())); };
  if (!evidence || !verdict) return differs("it carries no verdict with evidence");
  if (layer.getInput().getType() != layer.getResult().getType()) return differs("its output has another type than its input");
  reference::Values known = decodeAround(layer);
  auto witnesses = again::witnessesOf(layer, known, options.weightThreshold);
  if (!witnesses) return witnesses.takeError();

  auto tensors = evidence.getAs<ArrayAttr>("tensors");
  if (!tensors || tensors.size() != witnesses->size())
    return differs("it has " + std::to_string(witnesses->size()) + " parameters, its evidence lists " + std::to_string(tensors ? tensors.size() : 0));
  for (const again::Witness &w : *witnesses) {
    auto same = llvm::find_if(tensors, [&](Attribute t) {
      auto d = cast<DictionaryAttr>(t);
      auto count = [&](StringRef key) { return d.getAs<IntegerAttr>(key).getInt(); };
      return d.getAs<StringAttr>("name") == StringRef(w.name) && d.getAs<StringAttr>("sha256") == StringRef(w.sha256) && count("elements") == w.elements &&
             count("nonzero") == w.nonzero && count("above_threshold") == w.above && count("non_finite") == w.nonFinite && number(d, "max_abs") == w.largest;
    });
    if (same == tensors.end()) return differs("the evidence about " + w.name + " does not fit its bytes");
  }
  bool proved = verdict->getBasis() == "proved";
  again::Numbers numbers{number(evidence, "forward_l2"), number(evidence, "gradient_branch"), number(evidence, "gradient_parameters")};
  again::Outcome outcome = again::outcome(*witnesses, numbers, proved, options);
  if (options.strictNans) {
    auto needs = evidence.getAs<BoolAttr>("needs_finite");
    if (!needs || needs.getValue()) return differs("its removal assumes finite activations");
  }
  if (!outcome.pruned) return differs("its own table says " + outcome.code);
  if (outcome.basis != verdict->getBasis()) return differs("the basis would be " + outcome.basis);
  if (proved && again::isIdentityOnRandomInputs(layer, known, 1, options.strictNans) == std::optional<bool>(false)) return differs("its output differs from its input on random finite inputs");
  return llvm::Error::success();
}

} // namespace tare::checks
