// graph-mark-layers. In: an imported module. Out: candidates and fidelity checks as graph.layer regions; marked groups that cannot be a layer in the
// module attribute graph.rejected. Smaller groups first, so that a layer may lie inside another; groups that overlap otherwise are rejected.
#include "compiler/checks/Rules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/LayerRegions.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tare {
#define GEN_PASS_DEF_MARKLAYERSPASS
#include "passes/Passes.h.inc"

static constexpr llvm::StringLiteral kDefaultRules =
#include "passes/DefaultRules.inc"
    ;

namespace {

struct MarkLayersPass : impl::MarkLayersPassBase<MarkLayersPass> {
  using MarkLayersPassBase::MarkLayersPassBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.getBody().empty()) return;
    auto defaults = checks::parseRules(kDefaultRules, "default-rules.yaml");
    auto user = rules.empty() ? llvm::Expected<checks::Rules>(checks::Rules()) : checks::loadRules(rules);
    if (!defaults || !user) {
      llvm::Error error = llvm::joinErrors(defaults.takeError(), user.takeError());
      main.emitError() << llvm::toString(std::move(error));
      return signalPassFailure();
    }
    Block &block = main.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>() && !isa<graph::ConstantOp>(op)) op.erase();

    BlockFacts facts(block);
    llvm::DenseSet<const checks::Rule *> used;
    std::vector<LayerGroup> groups = collectMarks(block, facts, *user, *defaults, used);
    for (const checks::Rule &rule : user->rules) // a misspelt rule must not pass for a model without candidates
      if (!used.contains(&rule)) emitWarning(main.getLoc()) << "the rule at line " << rule.line << " of " << rules << " matches no node of the model";
    llvm::DenseSet<Operation *> marked;
    for (LayerGroup &group : groups) marked.insert(group.members.begin(), group.members.end());
    for (LayerGroup &group : groups) addUnmarkedBetween(group, facts, marked);
    llvm::StringMap<size_t> order;
    for (auto [i, group] : llvm::enumerate(groups)) order[group.name] = i;
    llvm::stable_sort(groups, [](const LayerGroup &a, const LayerGroup &b) { return a.members.size() < b.members.size(); });

    SmallVector<Attribute> rejected;
    for (size_t i = 0; i < groups.size(); ++i) form(groups[i], MutableArrayRef(groups).drop_front(i + 1), facts, rejected);
    auto place = [&](Attribute entry) { return order[cast<DictionaryAttr>(entry).getAs<StringAttr>("name")]; };
    llvm::stable_sort(rejected, [&](Attribute a, Attribute b) { return place(a) < place(b); });
    if (!rejected.empty()) getOperation()->setAttr("graph.rejected", ArrayAttr::get(&getContext(), rejected));
  }

  void form(LayerGroup &group, MutableArrayRef<LayerGroup> later, const BlockFacts &facts, SmallVectorImpl<Attribute> &rejected) {
    for (LayerGroup &other : later) {
      size_t common = llvm::count_if(group.members, [&](Operation *op) { return other.members.contains(op); });
      if (common && common != group.members.size())
        return reject(group, {"NOT_ONE_OUTPUT", "it shares nodes with " + other.name + ", and neither lies inside the other", "make the two marks disjoint or nested"}, rejected);
    }
    SmallVector<Operation *> members(group.members.begin(), group.members.end()), erased;
    auto formed = formLayer(group, facts, erased);
    if (auto *rejection = std::get_if<LayerRejection>(&formed)) return reject(group, *rejection, rejected);
    for (LayerGroup &other : later) {
      if (!other.members.contains(members.front())) continue;
      for (Operation *op : members)
        if (llvm::is_contained(erased, op) || !facts.isActivationFree(op)) other.members.remove(op);
      other.members.insert(std::get<graph::LayerOp>(formed));
    }
  }

  void reject(const LayerGroup &group, const LayerRejection &why, SmallVectorImpl<Attribute> &rejected) {
    Location location = group.members.front()->getLoc();
    if (group.role == "fidelity_check") {
      emitWarning(location) << "the fidelity check " << group.name << " is not recognised: " << why.why;
      return;
    }
    Builder b(&getContext());
    std::string line = "[PRUNING_REJECTED: " + why.code.str() + "] " + group.name + ": " + why.why + "; " + why.hint;
    rejected.push_back(b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(group.name)), b.getNamedAttr("role", b.getStringAttr(group.role)),
                                            b.getNamedAttr("marked_by", b.getStringAttr(group.source)), b.getNamedAttr("code", b.getStringAttr(why.code)),
                                            b.getNamedAttr("why", b.getStringAttr(why.why)), b.getNamedAttr("line", b.getStringAttr(line))}));
  }
};

} // namespace
} // namespace tare
