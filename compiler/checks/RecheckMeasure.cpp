// The checker's own measurements (RecheckParts.h): forward and gradient norms over all samples, straight from the
// reference evaluation. Same definitions as spec 3, other code than the compile path's: the branch gradient is taken as
// (VJP of the layer) - (cotangent), summed op by op in one sweep.
#include "compiler/checks/Random.h"
#include "compiler/checks/RecheckParts.h"
#include <cmath>

using namespace mlir;
using tare::reference::Tensor;
using tare::reference::Values;

namespace tare::checks::again {

static double lengthOf(const std::vector<double> &v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

/// All ops that stand between the witnesses and the layer's end: its own, and the constant ones before it.
static std::vector<Operation *> opsOf(graph::LayerOp layer, const std::vector<Witness> &witnesses) {
  llvm::DenseSet<Operation *> chain;
  SmallVector<Operation *> work;
  for (const Witness &w : witnesses)
    for (Operation *user : w.decoded.getUsers()) work.push_back(user);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (layer->isAncestor(op) || op->getNumResults() != 1 || op->getNumRegions() || !chain.insert(op).second) continue;
    for (Operation *user : op->getUsers()) work.push_back(user);
  }
  std::vector<Operation *> ops;
  for (Operation &op : *layer->getBlock())
    if (chain.contains(&op) && op.isBeforeInBlock(layer)) ops.push_back(&op);
  for (Operation &op : layer.getBody().front().without_terminator()) ops.push_back(&op);
  return ops;
}

static Values cotangentsAtOutputs(func::FuncOp main, const Values &known, const Values &values,
                                  const MeasureSetup &setup, unsigned sample, unsigned number) {
  Values seeds;
  for (auto [i, v] : llvm::enumerate(main.getBody().front().getTerminator()->getOperands())) {
    auto at = values.find(v);
    const Tensor &y = at == values.end() ? known.find(v)->second : at->second;
    if (!y.isFloat() || (setup.loss && *setup.loss != i)) continue;
    Random random(setup.seed, 1000003 + (uint64_t(sample) << 32) + (uint64_t(number) << 16) + i);
    bool fresh = !seeds.count(v);
    Tensor &g = seeds[v];
    if (fresh) g = Tensor::zeros(y.element, y.shape);
    for (double &x : g.floats) x += setup.loss ? 1 : random.normal();
  }
  return seeds;
}

llvm::Expected<std::vector<Numbers>> measureAgain(func::FuncOp main, llvm::ArrayRef<graph::LayerOp> ofLayers,
                                                  llvm::ArrayRef<std::vector<Witness>> witnesses,
                                                  llvm::ArrayRef<bool> withGradient, const Values &known,
                                                  const MeasureSetup &setup) {
  SmallVector<graph::LayerOp> layers(ofLayers);
  std::vector<Numbers> numbers(layers.size(), {0, 0, 0});
  auto raise = [](double &to, double value) {
    to = std::isnan(to) || std::isnan(value) ? std::nan("") : std::max(to, value);
  };
  Block &body = main.getBody().front();
  llvm::DenseSet<Value> ends, borders;
  for (graph::LayerOp layer : layers) borders.insert(layer.getInput()), borders.insert(layer.getResult());
  for (size_t i = 0; i < layers.size(); ++i)
    if (withGradient[i])
      ends.insert(layers[i].getResult());
    else
      numbers[i].branch = numbers[i].parameters = std::nan("");
  for (auto [s, inputs] : llvm::enumerate(*setup.samples)) {
    auto symbols = reference::bindSymbols(body, inputs);
    if (!symbols) return symbols.takeError();
    reference::EvaluateOptions how; // large values of a long sample are made again on the way back
    how.known = &known, how.keep = &borders;
    if (reference::bytesOfRun(body, *symbols) > uint64_t(2) << 30) how.largest = 4 << 20;
    auto values = reference::evaluate(body, inputs, how);
    if (!values) return values.takeError();
    for (size_t i = 0; i < layers.size(); ++i) {
      std::vector<double> change = values->find(layers[i].getResult())->second.floats;
      const std::vector<double> &before = values->find(layers[i].getInput())->second.floats;
      for (size_t n = 0; n < change.size(); ++n) change[n] -= before[n];
      raise(numbers[i].forward, lengthOf(change));
    }
    for (unsigned c = 0; c < setup.cotangents && !ends.empty(); ++c) {
      Values seeds = cotangentsAtOutputs(main, known, *values, setup, s, c);
      auto arrived = reference::backward(body, *values, seeds, *symbols, {&known, &ends, nullptr});
      if (!arrived) return arrived.takeError();
      for (size_t i = 0; i < layers.size(); ++i) {
        auto g = arrived->find(layers[i].getResult());
        if (!withGradient[i] || g == arrived->end()) continue;
        Value x = layers[i].getBody().getArgument(0), y = layers[i].getBody().front().getTerminator()->getOperand(0);
        llvm::DenseSet<Value> asked{x};
        for (const Witness &w : witnesses[i]) asked.insert(w.decoded);
        Values start;
        start[x] = Tensor::zeros(g->second.element, g->second.shape);
        for (size_t n = 0; n < g->second.floats.size(); ++n) start[x].floats[n] -= g->second.floats[n];
        if (x == y)
          for (double &v : start[x].floats) v = 0;
        else
          start[y] = g->second;
        auto reached =
            reference::backward(opsOf(layers[i], witnesses[i]), *values, start, *symbols, {&known, &asked, nullptr});
        if (!reached) return reached.takeError();
        double total = 0;
        for (const Witness &w : witnesses[i])
          if (auto at = reached->find(w.decoded); at != reached->end())
            for (double v : at->second.floats) total += v * v;
        raise(numbers[i].branch, lengthOf((*reached)[x].floats));
        raise(numbers[i].parameters, std::sqrt(total));
      }
    }
  }
  for (Numbers &n : numbers)
    for (double *v : {&n.forward, &n.branch, &n.parameters})
      if (!std::isfinite(*v)) *v = std::nan("");
  return numbers;
}

} // namespace tare::checks::again
