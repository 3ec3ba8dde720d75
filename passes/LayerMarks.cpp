// Marks, source by source (spec 2, "How a layer gets its role"): the rules file, metadata, the module path, the names of initializers. In: ops with
// their scope, metadata and location. Out: layer groups. A role found by an earlier source keeps later ones from naming the same layer again.
#include "passes/LayerMarks.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using tare::checks::Mark;

namespace tare {

static bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

bool BlockFacts::isActivation(Value value) const { return isFloat(value) && !isConstantOnly(value); }

BlockFacts::BlockFacts(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) continue;
    bool isConstant = op.getNumRegions() == 0, isFree = op.getNumRegions() == 0;
    if (op.getNumOperands() == 0 && !isa<graph::ConstantOp>(op))
      // Ranges, fills and shapes are constants only when every size in them is.
      isConstant &= cast<RankedTensorType>(op.getResult(0).getType()).hasStaticShape() && !isa<graph::DimsConstantOp, graph::RangeOp>(op);
    for (Value operand : op.getOperands()) {
      isConstant &= constantOnly.contains(operand);
      isFree &= !isActivation(operand) && (!operand.getDefiningOp() || constantOnly.contains(operand) || activationFree.contains(operand.getDefiningOp()));
    }
    if (isConstant)
      for (Value result : op.getResults()) constantOnly.insert(result);
    if (isFree) activationFree.insert(&op);
  }
}

/// The module path in PyTorch's list of scopes: "['', 'm', 'm.layers.2', 'linear_20']", of which the last is the node itself.
static std::string pathFromScopes(StringRef list) {
  SmallVector<StringRef> entries;
  list.trim("[] ").split(entries, ',');
  std::string path;
  for (StringRef entry : ArrayRef(entries).drop_back()) {
    entry = entry.trim().trim("'\"");
    if (!entry.empty()) path = entry.str();
  }
  return path;
}

std::string modulePath(Operation *op) {
  if (auto scope = op->getAttrOfType<StringAttr>(graph::kScopeAttr)) return scope.str();
  if (auto meta = op->getAttrOfType<DictionaryAttr>(graph::kMetaAttr))
    if (auto scopes = meta.getAs<StringAttr>("pkg.torch.onnx.name_scopes")) return pathFromScopes(scopes);
  // "/layers.7/pos_enc/fc1/MatMul": all but the last component.
  std::string name = graph::nodeName(op->getLoc());
  size_t cut = name.find_last_of('/');
  if (cut == std::string::npos) return "";
  SmallVector<StringRef> parts;
  StringRef(name).take_front(cut).split(parts, '/', -1, false);
  return llvm::join(parts, ".");
}

/// The path of the first initializer that reaches the op through constant-only nodes: its name without the last segment.
static std::string initializerPath(Operation *op, const BlockFacts &facts) {
  SmallVector<Value> work(op->getOperands());
  llvm::DenseSet<Value> seen;
  for (size_t i = 0; i < work.size(); ++i) {
    if (!seen.insert(work[i]).second || !facts.isConstantOnly(work[i])) continue;
    Operation *def = work[i].getDefiningOp();
    if (auto constant = dyn_cast<graph::ConstantOp>(def)) {
      StringRef name = constant.getName();
      if (name.contains('.')) return name.rsplit('.').first.str();
    }
    work.append(def->operand_begin(), def->operand_end());
  }
  return "";
}

static std::string mnemonic(Operation *op) {
  std::string name = op->getName().stripDialect().str();
  if (auto unary = dyn_cast<graph::UnaryOp>(op)) name += "." + graph::stringifyUnaryKind(unary.getKind()).str();
  if (auto binary = dyn_cast<graph::BinaryOp>(op)) name += "." + graph::stringifyBinaryKind(binary.getKind()).str();
  if (auto reduce = dyn_cast<graph::ReduceOp>(op)) name += "." + graph::stringifyReduceKind(reduce.getKind()).str();
  return name;
}

static bool isTrue(StringRef text) { return text.equals_insensitive("true") || text == "1"; }

/// The role that metadata gives, or "".
static std::string metadataRole(const std::map<std::string, std::string> &metadata) {
  if (auto role = metadata.find("role"); role != metadata.end() && checks::isRole(role->second)) return role->second;
  if (auto flag = metadata.find("is_position_layer"); flag != metadata.end() && isTrue(flag->second)) return "position_encoding_enhancer";
  return "";
}

static std::map<std::string, std::string> metadataOf(Operation *op) {
  std::map<std::string, std::string> metadata;
  if (auto meta = op->getAttrOfType<DictionaryAttr>(graph::kMetaAttr))
    for (NamedAttribute entry : meta)
      if (auto value = dyn_cast<StringAttr>(entry.getValue())) metadata[entry.getName().str()] = value.str();
  return metadata;
}

namespace {

class Collector {
public:
  Collector(Block &block, const BlockFacts &facts, const checks::Rules &user, const checks::Rules &defaults)
      : facts(facts), user(user), defaults(defaults) {
    for (Operation *parent = block.getParentOp(); parent; parent = parent->getParentOp()) graphMetadata.push_back(metadataOf(parent));
    for (Operation &op : block) node(&op);
    nameComponents();
    dropRepeated();
  }

  llvm::DenseSet<const checks::Rule *> used; ///< of both files

  std::vector<LayerGroup> take() {
    std::vector<LayerGroup> result;
    for (auto &entry : groups) result.push_back(std::move(entry.second));
    return result;
  }

private:
  using Groups = llvm::MapVector<std::string, LayerGroup, std::map<std::string, unsigned>>;

  void node(Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>() || op->getNumResults() == 0) return;
    bool constantOnly = llvm::all_of(op->getResults(), [&](Value v) { return facts.isConstantOnly(v); });
    if (constantOnly) return;
    checks::NodeFacts node{modulePath(op), mnemonic(op), metadataOf(op)};
    SmallVector<Mark> marks;
    bool exempt = false;
    apply(user, node, "rules", marks, exempt);
    if (!exempt) metadata(node, marks, exempt);
    if (!exempt) apply(defaults, node, "path", marks, exempt);
    bool byInitializer = false;
    if (!exempt && marks.empty() && node.path.empty()) {
      node.path = initializerPath(op, facts);
      apply(defaults, node, "path", marks, exempt);
      byInitializer = !marks.empty();
    }
    if (marks.empty() && !exempt && isa<graph::FidelityCheckOp>(op)) marks.push_back({graph::nodeName(op->getLoc()), "fidelity_check", "path"});
    for (Mark &mark : marks) add(op, mark, byInitializer);
  }

  /// Adds the marks of the first rule per layer name; a rule with role none ends the search.
  void apply(const checks::Rules &rules, const checks::NodeFacts &node, StringRef source, SmallVectorImpl<Mark> &marks, bool &exempt) {
    for (const checks::Rule &rule : rules.rules)
      for (Mark &mark : rule.match(node, source)) {
        used.insert(&rule);
        if (mark.role == "none") {
          exempt = true;
          return;
        }
        if (mark.name.empty()) mark.name = nameFor(node);
        if (llvm::none_of(marks, [&](const Mark &m) { return m.name == mark.name; })) marks.push_back(mark);
      }
  }

  void metadata(const checks::NodeFacts &node, SmallVectorImpl<Mark> &marks, bool &exempt) {
    auto take = [&](const std::map<std::string, std::string> &data, bool wholeGraph) {
      std::string role = metadataRole(data);
      if (role.empty()) return;
      auto layer = data.find("layer");
      // On a graph or model, `layer` says which nodes are meant: those whose path lies under it.
      if (wholeGraph && layer != data.end() && node.path != layer->second && !StringRef(node.path).starts_with(layer->second + ".")) return;
      if (role == "none" && !wholeGraph) exempt = true;
      if (role == "none") return;
      std::string name = layer != data.end() ? layer->second : nameFor(node);
      if (llvm::none_of(marks, [&](const Mark &m) { return m.name == name; })) marks.push_back({name, role, "metadata"});
    };
    take(node.metadata, false);
    for (auto &data : graphMetadata) take(data, true);
  }

  /// The path up to and with the segment that a default rule knows; "" when there is none (the component's first node names it later).
  std::string nameFor(const checks::NodeFacts &node) const {
    for (const checks::Rule &rule : defaults.rules)
      if (auto marks = rule.match(node, ""); !marks.empty()) return marks.front().name;
    return "";
  }

  void add(Operation *op, const Mark &mark, bool byInitializer) {
    std::string key = mark.name.empty() ? "\n" + mark.role + "\n" + mark.source : mark.name;
    LayerGroup &group = groups[key];
    if (group.members.empty()) group = {mark.name, mark.role, mark.source, byInitializer, {}};
    group.byInitializer &= byInitializer;
    group.members.insert(op);
  }

  /// Splits nodes that are marked but not named into connected components, each named after its first node.
  void nameComponents() {
    Groups named;
    for (auto &[key, group] : groups) {
      if (!group.name.empty()) {
        named[key] = std::move(group);
        continue;
      }
      llvm::EquivalenceClasses<Operation *> connected;
      for (Operation *op : group.members) {
        connected.insert(op);
        for (Value operand : op->getOperands())
          if (Operation *def = operand.getDefiningOp(); def && group.members.contains(def)) connected.unionSets(def, op);
      }
      llvm::MapVector<Operation *, LayerGroup> components;
      for (Operation *op : group.members) {
        LayerGroup &component = components[connected.getLeaderValue(op)];
        if (component.members.empty()) component = {graph::nodeName(op->getLoc()), group.role, group.source, false, {}};
        component.members.insert(op);
      }
      for (auto &[leader, component] : components) {
        std::string base = component.name.empty() ? component.role : component.name;
        component.name = base;
        for (int n = 2; named.count(component.name) || groups.count(component.name); ++n) component.name = base + "#" + std::to_string(n);
        named[component.name] = std::move(component);
      }
    }
    groups = std::move(named);
  }

  /// Two sources may mark the very same nodes under two names: the first source wins.
  void dropRepeated() {
    static constexpr llvm::StringLiteral order[] = {"rules", "metadata", "path"};
    auto rank = [](const LayerGroup &g) { return llvm::find(order, g.source) - std::begin(order); };
    groups.remove_if([&](auto &entry) {
      LayerGroup &group = entry.second;
      return llvm::any_of(groups, [&](auto &other) {
        return rank(other.second) < rank(group) && other.second.members.size() == group.members.size() &&
               llvm::all_of(group.members, [&](Operation *op) { return other.second.members.contains(op); });
      });
    });
  }

  const BlockFacts &facts;
  const checks::Rules &user, &defaults;
  SmallVector<std::map<std::string, std::string>> graphMetadata;
  Groups groups;
};

} // namespace

std::vector<LayerGroup> collectMarks(Block &block, const BlockFacts &facts, const checks::Rules &user, const checks::Rules &defaults,
                                     llvm::DenseSet<const checks::Rule *> &used) {
  Collector collector(block, facts, user, defaults);
  used = std::move(collector.used);
  return collector.take();
}

} // namespace tare
