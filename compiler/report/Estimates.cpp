// Sums compiler/graph/Cost over a graph and reads the memory of its plan: totals, per module group, and the picture of the graph. In: a module. Out: parts of a
// Report. Holds: ops inside graph.layer count once, containers count nothing; a symbol that the report's shape lacks leaves the formula and no number.
#include "compiler/report/Estimates.h"
#include "compiler/graph/Cost.h"
#include "compiler/graph/Graph.h"
#include "compiler/graph/ModulePath.h"
#include "compiler/plan/Footprint.h"
#include "compiler/report/Collect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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
struct Totals {
  Dim all;
  llvm::MapVector<std::string, Dim, std::map<std::string, unsigned>> groups;
};
} // namespace

static bool isContainer(Operation *op) {
  return llvm::isa<graph::LayerOp, graph::GroupOp, graph::YieldOp, graph::ConstantOp>(op) || op->getName().getDialectNamespace() != "graph";
}

static Totals flopsByGroup(ModuleOp module) {
  Totals totals;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isContainer(op)) return;
    Dim flops = flopsOf(op);
    Dim &group = totals.groups[moduleGroup(op)];
    totals.all = totals.all + flops, group = group + flops;
  });
  return totals;
}

static std::string shownGroup(const std::string &group) { return group.empty() ? "(no module path)" : group; }

static void chooseShape(Report &report, ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (BlockArgument argument : main.getArguments())
    for (auto &dim : graph::dimsOf(argument))
      for (auto &symbol : dim.symbols()) {
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
  Totals totals = flopsByGroup(module);
  chooseShape(report, module);
  report.full = report.pruned = {countAt(totals.all, report.shape), {"0", 0}};
  for (auto &[group, flops] : totals.groups)
    report.layers.push_back({shownGroup(group), {countAt(flops, report.shape), {"0", 0}}, {{"0", 0}, {"0", 0}}});
  addPicture(report, module);
}

void addPrunedEstimates(Report &report, ModuleOp module) {
  Totals totals = flopsByGroup(module);
  report.pruned.flops = countAt(totals.all, report.shape);
  for (auto &layer : report.layers) {
    auto found = totals.groups.find(layer.layer == shownGroup("") ? "" : layer.layer);
    if (found != totals.groups.end()) layer.pruned.flops = countAt(found->second, report.shape);
  }
}

static void addMemory(Report &report, plan::ProgramOp program, Estimate Report::*total, Estimate LayerEstimate::*part) {
  plan::Footprint footprint = plan::footprintOf(program, [](plan::DispatchOp step) { return moduleGroup(step); });
  for (auto &symbol : footprint.all.symbols()) report.shape.try_emplace(symbol, 0); // what the source does not have: anchors, which may be left out
  (report.*total).memory = countAt(footprint.all, report.shape);
  for (auto &[group, bytes] : footprint.parts) {
    auto row = llvm::find_if(report.layers, [name = shownGroup(group)](const LayerEstimate &l) { return l.layer == name; });
    if (row == report.layers.end()) row = report.layers.insert(row, {shownGroup(group), {{"0", 0}, {"0", 0}}, {{"0", 0}, {"0", 0}}});
    ((*row).*part).memory = countAt(bytes, report.shape);
  }
}

void addFullMemory(Report &report, plan::ProgramOp program) { addMemory(report, program, &Report::full, &LayerEstimate::full); }
void addPrunedMemory(Report &report, plan::ProgramOp program) { addMemory(report, program, &Report::pruned, &LayerEstimate::pruned); }

} // namespace tare::report
