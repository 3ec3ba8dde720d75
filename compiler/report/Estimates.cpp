// Sums compiler/graph/Cost over a graph: totals, per module group, and the picture of the graph. In: a module. Out: parts of a Report. Holds: ops inside
// graph.layer count once, containers count nothing; a symbol that the report's shape lacks leaves the formula and no number.
#include "compiler/report/Estimates.h"
#include "compiler/graph/Cost.h"
#include "compiler/graph/Graph.h"
#include "compiler/graph/ModulePath.h"
#include "compiler/report/Collect.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tare::report {

Count countAt(const Dim &dim, const std::map<std::string, int64_t> &shape) {
  auto valueOf = [&](llvm::StringRef symbol) -> std::optional<int64_t> {
    auto found = shape.find(symbol.str());
    return found == shape.end() ? std::nullopt : std::optional(found->second);
  };
  return {dim.str(), dim.evaluate(valueOf)};
}

std::string moduleGroup(Operation *op) {
  std::string path = graph::modulePath(op);
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(path).split(parts, '.', -1, false);
  std::string group;
  for (auto part : parts) {
    group += (group.empty() ? "" : ".") + part.str();
    unsigned long long number;
    if (!part.getAsInteger(10, number)) return group;
  }
  return parts.empty() ? "" : parts.front().str();
}

namespace {
struct Sum {
  Dim flops, bytes;
  int64_t ops = 0;
};
struct Totals {
  Sum all;
  llvm::MapVector<std::string, Sum, std::map<std::string, unsigned>> groups;
};
} // namespace

static bool isContainer(Operation *op) {
  return llvm::isa<graph::LayerOp, graph::GroupOp, graph::YieldOp, graph::ConstantOp>(op) || op->getName().getDialectNamespace() != "graph";
}

static Totals totalsOf(ModuleOp module) {
  Totals totals;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isContainer(op)) return;
    Dim flops = flopsOf(op), bytes = bytesOf(op);
    Sum &group = totals.groups[moduleGroup(op)];
    for (Sum *sum : {&totals.all, &group}) sum->flops = sum->flops + flops, sum->bytes = sum->bytes + bytes, sum->ops++;
  });
  return totals;
}

static Estimate estimateOf(const Sum &sum, const std::map<std::string, int64_t> &shape) {
  return {countAt(sum.flops, shape), countAt(sum.bytes, shape)};
}

static void chooseShape(Report &report, const Totals &totals) {
  for (auto *dim : {&totals.all.flops, &totals.all.bytes})
    for (auto &symbol : dim->symbols()) {
      llvm::StringRef name(symbol);
      report.shape[symbol] = name.contains_insensitive("batch") || name == "B" || name == "N" ? 1 : name.contains_insensitive("past") ? 0 : 128;
    }
}

static void addPicture(Report &report, ModuleOp module) {
  llvm::MapVector<std::string, GraphNode, std::map<std::string, unsigned>> nodes;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (auto layer = llvm::dyn_cast<graph::LayerOp>(op)) {
      GraphNode &node = nodes[layer.getName().str()];
      node.name = layer.getName().str(), node.role = layer.getRole().str();
      if (auto verdict = layer.getVerdictAttr()) node.verdict = verdict.getVerdict().str();
      layer.getBody().walk([&](Operation *inner) { node.ops += !isContainer(inner); });
      return WalkResult::skip();
    }
    if (isContainer(op)) return WalkResult::advance();
    std::string group = moduleGroup(op);
    GraphNode &node = nodes[group];
    node.name = group.empty() ? "(no module path)" : group;
    node.ops++;
    return WalkResult::advance();
  });
  for (auto &[name, node] : nodes) report.graph.push_back(node);
}

void addFull(Report &report, ModuleOp module) {
  Totals totals = totalsOf(module);
  chooseShape(report, totals);
  report.full = report.pruned = estimateOf(totals.all, report.shape);
  for (auto &[group, sum] : totals.groups) {
    Estimate e = estimateOf(sum, report.shape);
    report.layers.push_back({group.empty() ? "(no module path)" : group, e, {{"0", 0}, {"0", 0}}});
  }
  addPicture(report, module);
}

void addPrunedEstimates(Report &report, ModuleOp module) {
  Totals totals = totalsOf(module);
  report.pruned = estimateOf(totals.all, report.shape);
  for (auto &layer : report.layers) {
    auto found = totals.groups.find(layer.layer == "(no module path)" ? "" : layer.layer);
    if (found != totals.groups.end()) layer.pruned = estimateOf(found->second, report.shape);
  }
}

} // namespace tare::report
