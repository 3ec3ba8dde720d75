// Region formation. Constant-only nodes never become members: they stay above and are captured. Nodes that depend on no activation are cloned into the
// region and stay for others. The activation input becomes the body's argument; everything else is captured. The layer stands where its last member stood.
#include "passes/LayerRegions.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace tare {
namespace {

std::string tensorName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) return "input " + std::to_string(argument.getArgNumber());
  Operation *op = value.getDefiningOp();
  if (auto name = op->getAttrOfType<StringAttr>(graph::kTensorAttr)) return name.str();
  std::string node = graph::nodeName(op->getLoc());
  return node.empty() ? op->getName().getStringRef().str() : node;
}

/// The source's name of a value, for --emit-onnx; null when it has none.
StringAttr sourceName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto attrs = argument.getOwner()->getParentOp()->getAttrOfType<ArrayAttr>("arg_attrs");
    return attrs && argument.getArgNumber() < attrs.size() ? cast<DictionaryAttr>(attrs[argument.getArgNumber()]).getAs<StringAttr>(graph::kNameAttr) : StringAttr();
  }
  Operation *op = value.getDefiningOp();
  if (auto layer = dyn_cast<graph::LayerOp>(op)) return layer->getAttrOfType<StringAttr>("output_name");
  if (auto name = op->getAttrOfType<StringAttr>(graph::kTensorAttr)) return name;
  if (auto names = op->getAttrOfType<ArrayAttr>(graph::kTensorAttr))
    if (cast<OpResult>(value).getResultNumber() < names.size()) return dyn_cast<StringAttr>(names[cast<OpResult>(value).getResultNumber()]);
  return StringAttr();
}

struct Former {
  const LayerGroup &group;
  const BlockFacts &facts;
  llvm::SmallVectorImpl<Operation *> &erased;
  llvm::SmallSetVector<Operation *, 32> core; ///< members that depend on an activation, in block order
  Value output;

  void erase(Operation *op) {
    erased.push_back(op);
    op->erase();
  }

  bool inside(Operation *op) const {
    for (; op; op = op->getParentOp())
      if (group.members.contains(op)) return true;
    return false;
  }

  /// All values that an op reads, those captured by a region op included.
  template <typename Fn> static void eachRead(Operation *op, Fn fn) {
    for (Value v : op->getOperands()) fn(v);
    op->walk([&](Operation *inner) {
      if (inner == op) return;
      for (Value v : inner->getOperands())
        if (!op->isAncestor(v.getParentRegion()->getParentOp())) fn(v);
    });
  }

  std::optional<LayerRejection> findOutput() {
    SmallVector<Value> outputs;
    for (Operation *op : core)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside(user); })) outputs.push_back(result);
    if (outputs.size() == 1) {
      output = outputs[0];
      return std::nullopt;
    }
    if (outputs.empty())
      return LayerRejection{"NOT_ONE_OUTPUT", core.empty() ? "no node of it depends on an activation" : "nothing outside reads a result of it",
                            "mark the nodes that compute the layer's output as well"};
    std::string names;
    for (Value v : outputs) names += (names.empty() ? "" : ", ") + tensorName(v);
    return LayerRejection{"NOT_ONE_OUTPUT", std::to_string(outputs.size()) + " results are read outside: " + names,
                          "mark a part of the model that has one activation in and one out"};
  }

  /// The other operand of a final residual Add, when one operand is computed inside.
  Value residual(ArrayRef<Value> candidates) const {
    auto add = output.getDefiningOp<graph::BinaryOp>();
    if (!add || add.getKind() != graph::BinaryKind::Add) return nullptr;
    auto computedInside = [&](Value v) { return v.getDefiningOp() && core.contains(v.getDefiningOp()); };
    if (llvm::is_contained(candidates, add.getLhs()) && computedInside(add.getRhs())) return add.getLhs();
    if (llvm::is_contained(candidates, add.getRhs()) && computedInside(add.getLhs())) return add.getRhs();
    return nullptr;
  }

  std::variant<Value, LayerRejection> findInput() const {
    llvm::SmallSetVector<Value, 8> liveIns, qualified;
    for (Operation *op : core)
      eachRead(op, [&](Value v) {
        if (!facts.isActivation(v) || (v.getDefiningOp() && inside(v.getDefiningOp()))) return;
        liveIns.insert(v);
        if (v.getType() == output.getType()) qualified.insert(v);
      });
    bool isCheck = group.role == "fidelity_check";
    if (isCheck) qualified = liveIns;
    if (qualified.size() == 1) return qualified[0];
    if (Value other = residual(qualified.getArrayRef()); other && !isCheck) return other;
    std::string names;
    for (Value v : qualified) names += (names.empty() ? "" : ", ") + tensorName(v);
    if (!qualified.empty())
      return LayerRejection{"NO_ACTIVATION_INPUT", std::to_string(qualified.size()) + " inputs have the output's shape and no residual Add tells which is meant: " + names,
                            "end the layer in a residual Add, or mark a part with one activation input"};
    if (liveIns.empty()) return LayerRejection{"NO_ACTIVATION_INPUT", "no floating-point activation enters it", "mark the part of the model that reads the hidden state as well"};
    return LayerRejection{"SHAPE_OR_DTYPE_CHANGES", "its output " + tensorName(output) + " has another shape or dtype than " + tensorName(liveIns[0]),
                          "only a layer that keeps shape and dtype can be taken out"};
  }

  /// Members that the output does not depend on have no reader: they are dead and go.
  void keepAncestorsOnly() {
    llvm::SmallPtrSet<Operation *, 32> needed;
    SmallVector<Operation *> work{output.getDefiningOp()};
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!core.contains(op) || !needed.insert(op).second) continue;
      eachRead(op, [&](Value v) {
        if (Operation *def = v.getDefiningOp()) work.push_back(def);
      });
    }
    for (Operation *op : llvm::reverse(core.getArrayRef()))
      if (!needed.contains(op) && op->use_empty()) erase(op);
    core.remove_if([&](Operation *op) { return !needed.contains(op); });
  }

  graph::LayerOp build(Value input) {
    keepAncestorsOnly();
    Operation *last = output.getDefiningOp();
    OpBuilder builder(last);
    auto layer = builder.create<graph::LayerOp>(last->getLoc(), output.getType(), group.name, group.role, group.source, input, graph::VerdictAttr());
    if (StringAttr name = sourceName(input)) layer->setAttr("input_name", name);
    if (StringAttr name = sourceName(output)) layer->setAttr("output_name", name);
    Block &body = layer.getBody().emplaceBlock();
    Value argument = body.addArgument(input.getType(), input.getLoc());
    for (Operation *op : core) op->moveBefore(&body, body.end());
    builder.setInsertionPointToEnd(&body);
    builder.create<graph::YieldOp>(last->getLoc(), output);
    output.replaceUsesWithIf(layer.getResult(), [&](OpOperand &use) { return !layer->isAncestor(use.getOwner()); });
    input.replaceUsesWithIf(argument, [&](OpOperand &use) { return layer->isProperAncestor(use.getOwner()); });
    cloneActivationFree(body);
    return layer;
  }

  /// Marked nodes without activations: the region gets copies of those it uses; the originals go when nobody else needs them.
  void cloneActivationFree(Block &body) {
    IRMapping copies;
    OpBuilder builder(&body, body.begin());
    SmallVector<Operation *> originals;
    for (Operation *op : group.members)
      if (facts.isActivationFree(op)) originals.push_back(op);
    llvm::sort(originals, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : originals) {
      Operation *copy = builder.clone(*op, copies);
      for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
        from.replaceUsesWithIf(to, [&](OpOperand &use) { return body.getParentOp()->isProperAncestor(use.getOwner()) && use.getOwner() != copy; });
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (op.use_empty() && isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>()) op.erase();
    for (Operation *op : llvm::reverse(originals))
      if (op->use_empty()) erase(op);
  }
};

} // namespace

std::variant<graph::LayerOp, LayerRejection> formLayer(const LayerGroup &group, const BlockFacts &facts, llvm::SmallVectorImpl<Operation *> &erased) {
  Former former{group, facts, erased, {}, {}};
  SmallVector<Operation *> ordered(group.members.begin(), group.members.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ordered)
    if (!facts.isActivationFree(op)) former.core.insert(op);
  if (auto rejection = former.findOutput()) return *rejection;
  auto input = former.findInput();
  if (auto *rejection = std::get_if<LayerRejection>(&input)) return *rejection;
  return former.build(std::get<Value>(input));
}

void addUnmarkedBetween(LayerGroup &group, const BlockFacts &facts, const llvm::DenseSet<Operation *> &marked) {
  auto isFreeToTake = [&](Operation *op) {
    return !marked.contains(op) && op->getNumResults() > 0 && modulePath(op).empty() && !facts.isActivationFree(op) && op->getNumRegions() == 0;
  };
  // Forward from the members over takeable ops, then keep those from which a member is reached.
  llvm::SetVector<Operation *> after;
  SmallVector<Operation *> work(group.members.begin(), group.members.end());
  for (size_t i = 0; i < work.size(); ++i)
    for (Operation *user : work[i]->getUsers())
      if (user->getBlock() == work[i]->getBlock() && isFreeToTake(user) && after.insert(user)) work.push_back(user);
  llvm::SmallVector<Operation *> before(group.members.begin(), group.members.end());
  llvm::SmallPtrSet<Operation *, 16> between;
  for (size_t i = 0; i < before.size(); ++i)
    for (Value operand : before[i]->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && after.contains(def) && between.insert(def).second) before.push_back(def);
  for (Operation *op : after)
    if (between.contains(op)) group.members.insert(op);
  if (!group.byInitializer) return;

  // The residual Add of weights-only marks: the only reader of the only result, adding a value that the group reads too.
  SmallVector<Operation *> exits;
  for (Operation *op : group.members)
    if (!facts.isActivationFree(op) && llvm::any_of(op->getUsers(), [&](Operation *user) { return !group.members.contains(user); })) exits.push_back(op);
  if (exits.size() != 1 || !exits[0]->hasOneUse()) return;
  auto add = dyn_cast<graph::BinaryOp>(*exits[0]->getUsers().begin());
  if (!add || add.getKind() != graph::BinaryKind::Add || !isFreeToTake(add)) return;
  Value other = add.getLhs() == exits[0]->getResult(0) ? add.getRhs() : add.getLhs();
  bool isRead = llvm::any_of(group.members, [&](Operation *op) { return llvm::is_contained(op->getOperands(), other); });
  if (isRead && other.getType() == add.getType()) group.members.insert(add);
}

} // namespace tare
