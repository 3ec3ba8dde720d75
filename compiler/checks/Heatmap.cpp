// Blocks by module path, their norms on the calibration runs and their cost (Heatmap.h).
#include "compiler/checks/Heatmap.h"
#include "compiler/graph/Cost.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using tare::reference::Tensor;
using tare::reference::Values;

namespace tare::checks {

/// "layers.2" of "layers.2.attn.q_proj": up to and with the first segment that is a number; "" when there is none.
static std::string blockPath(StringRef path) {
  SmallVector<StringRef> parts;
  path.split(parts, '.', -1, false);
  for (size_t n = 1; n < parts.size(); ++n)
    if (llvm::all_of(parts[n], llvm::isDigit)) return llvm::join(llvm::ArrayRef(parts).take_front(n + 1), ".");
  return "";
}

static std::string pathOf(Operation *op) {
  if (auto layer = dyn_cast<graph::LayerOp>(op)) return layer.getName().str();
  if (auto scope = op->getAttrOfType<StringAttr>(graph::kScopeAttr)) return scope.str();
  std::string name = graph::nodeName(op->getLoc());
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

static bool isReal(Value v) { return isa<FloatType>(cast<RankedTensorType>(v.getType()).getElementType()); }

/// The stream through a block: its only result that is read elsewhere, and the latest value of the same type that it reads from elsewhere.
static void findStream(HeatBlock &block) {
  llvm::DenseSet<Operation *> own(block.ops.begin(), block.ops.end());
  Block *body = block.ops.front()->getBlock();
  SmallVector<Value> outputs;
  for (Operation *op : block.ops)
    for (Value v : op->getResults())
      if (isReal(v) && llvm::any_of(v.getUsers(), [&](Operation *user) { return !own.contains(body->findAncestorOpInBlock(*user)); })) outputs.push_back(v);
  if (outputs.empty()) return;
  Value out = outputs.back(); // caches and probabilities leave a block before its hidden state does
  Value in;
  auto later = [](Value a, Value b) {
    if (!b) return true;
    if (!a.getDefiningOp() || !b.getDefiningOp()) return static_cast<bool>(a.getDefiningOp());
    return b.getDefiningOp()->isBeforeInBlock(a.getDefiningOp());
  };
  for (Operation *op : block.ops)
    op->walk([&](Operation *inner) {
      for (Value v : inner->getOperands()) {
        if (v.getType() != out.getType() || v.getParentBlock() != body || (v.getDefiningOp() && own.contains(v.getDefiningOp()))) continue;
        if (later(v, in)) in = v;
      }
    });
  if (in) block.in = in, block.out = out;
}

std::vector<HeatBlock> findBlocks(func::FuncOp main) {
  llvm::MapVector<StringAttr, HeatBlock> byPath;
  for (Operation &op : main.getBody().front().without_terminator()) {
    if (isa<graph::ConstantOp, graph::DimsConstantOp, graph::RangeOp, graph::FillOp>(op)) continue;
    std::string path = blockPath(pathOf(&op));
    if (path.empty()) continue;
    HeatBlock &block = byPath[StringAttr::get(main.getContext(), path)];
    block.name = path;
    block.ops.push_back(&op);
  }
  std::vector<HeatBlock> blocks;
  for (auto &[path, block] : byPath) {
    findStream(block);
    if (block.in) blocks.push_back(std::move(block));
  }
  if (!blocks.empty()) return blocks;
  for (auto layer : main.getBody().front().getOps<graph::LayerOp>())
    if (layer.getRole() != "fidelity_check") blocks.push_back({layer.getName().str(), layer.getInput(), layer.getResult(), {layer}});
  return blocks;
}

static double norm(const std::vector<double> &v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

static std::vector<double> difference(const std::vector<double> &a, const std::vector<double> &b) {
  std::vector<double> d(a.size());
  for (size_t i = 0; i < a.size(); ++i) d[i] = a[i] - b[i];
  return d;
}

std::vector<HeatRow> measureBlocks(func::FuncOp main, ArrayRef<HeatBlock> blocks, const SampleRun &run, uint64_t seed, unsigned sample) {
  std::vector<HeatRow> rows(blocks.size());
  llvm::DenseSet<Value> wanted;
  for (auto [row, block] : llvm::zip(rows, blocks)) {
    const Tensor &in = run.values.find(block.in)->second, &out = run.values.find(block.out)->second;
    if (in.shape != out.shape) continue;
    double whole = norm(out.floats), part = norm(difference(out.floats, in.floats));
    if (std::isfinite(part) && whole > 0) row.contribution = part / whole;
    wanted.insert(block.in), wanted.insert(block.out);
  }
  Values seeds = randomCotangents(main, run, seed, sample, 0, std::nullopt);
  auto cotangents = reference::backward(main.getBody().front(), run.values, seeds, run.symbols, {&run.known, &wanted, nullptr});
  if (!cotangents) {
    llvm::consumeError(cotangents.takeError());
    return rows;
  }
  for (auto [row, block] : llvm::zip(rows, blocks)) {
    auto in = cotangents->find(block.in), out = cotangents->find(block.out);
    if (in == cotangents->end() || out == cotangents->end()) continue;
    double passed = norm(difference(in->second.floats, out->second.floats));
    if (std::isfinite(passed)) row.gradientNorm = passed;
  }
  return rows;
}

void joinRows(std::vector<HeatRow> &into, const std::vector<HeatRow> &sample) {
  if (into.size() < sample.size()) into.resize(sample.size());
  auto join = [](std::optional<double> &a, std::optional<double> b) {
    if (b) a = std::max(a.value_or(0), *b);
  };
  for (size_t i = 0; i < sample.size(); ++i) join(into[i].contribution, sample[i].contribution), join(into[i].gradientNorm, sample[i].gradientNorm);
}

static double flopsAt(Operation *op, const reference::Symbols &symbols) {
  if (auto layer = dyn_cast<graph::LayerOp>(op)) {
    if (layer.getVerdict() && layer.getVerdict()->getVerdict() == "pruned") return 0;
    double sum = 0;
    for (Operation &inner : layer.getBody().front()) sum += flopsAt(&inner, symbols);
    return sum;
  }
  auto value = flopsOf(op).evaluate([&](StringRef name) -> std::optional<int64_t> {
    auto at = symbols.find(name);
    return at == symbols.end() ? std::nullopt : std::optional<int64_t>(at->second);
  });
  return value ? static_cast<double>(*value) : 0;
}

std::vector<double> flopShares(func::FuncOp main, ArrayRef<HeatBlock> blocks, const reference::Symbols &symbols) {
  double total = 0;
  for (Operation &op : main.getBody().front()) total += flopsAt(&op, symbols);
  std::vector<double> shares;
  for (const HeatBlock &block : blocks) {
    double own = 0;
    for (Operation *op : block.ops) own += flopsAt(op, symbols);
    shares.push_back(total > 0 ? own / total : 0);
  }
  return shares;
}

} // namespace tare::checks
