// Check (c). In: one run of the whole model, a cotangent at its outputs. Out: per layer the norms that back-propagation
// brings to its input through the branch and to its parameters. The whole model is swept once for the cotangents at the
// layers' outputs; then each layer alone with +g at its output and -g at its input, so that the residual path cancels
// exactly and a tensor shared by layers counts for this one only.
#include "compiler/checks/Measure.h"
#include "compiler/checks/Parameters.h"
#include "compiler/checks/Random.h"
#include "compiler/graph/Failure.h"

using namespace mlir;
using tare::reference::Tensor;
using tare::reference::Values;

namespace tare::checks {

llvm::Expected<std::optional<unsigned>> findLoss(func::FuncOp main, const CompileOptions &options) {
  if (options.loss.empty()) return std::optional<unsigned>();
  std::string names;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto attr = main.getResultAttrOfType<StringAttr>(i, graph::kNameAttr);
    std::string name = attr ? attr.str() : "output " + std::to_string(i);
    names += (names.empty() ? "" : ", ") + name;
    if (name != options.loss) continue;
    auto type = cast<RankedTensorType>(main.getResultTypes()[i]);
    if (!isa<FloatType>(type.getElementType()) || !elementCount(graph::dimsOf(type)).isConstant(1))
      return refuse("the loss '" + options.loss + "' is not a floating-point scalar")
          .ofTensor(options.loss)
          .withHint("name an output with one element, or leave --loss out");
    return std::optional<unsigned>(i);
  }
  return refuse("the model has no output '" + options.loss + "'").ofTensor(options.loss).withHint("outputs: " + names);
}

Values randomCotangents(func::FuncOp main, const SampleRun &run, uint64_t seed, unsigned sample, unsigned cotangent,
                        std::optional<unsigned> loss) {
  Values seeds;
  Operation *exit = main.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(exit->getOperands())) {
    auto at = run.values.find(value);
    const Tensor &result = at != run.values.end() ? at->second : run.known.find(value)->second;
    if (!result.isFloat() || (loss && *loss != i)) continue;
    Tensor g = Tensor::zeros(result.element, result.shape);
    Random random(seed, 1000003 + (uint64_t(sample) << 32) + (uint64_t(cotangent) << 16) + i);
    for (double &v : g.floats) v = loss ? 1 : random.normal();
    auto [slot, isNew] = seeds.try_emplace(value, g);
    if (!isNew)
      for (size_t n = 0; n < g.floats.size(); ++n) slot->second.floats[n] += g.floats[n];
  }
  return seeds;
}

static double squares(const Tensor &t) {
  double sum = 0;
  for (double v : t.floats) sum += v * v;
  return sum;
}

static llvm::Expected<GradientResult> throughLayer(graph::LayerOp layer, const Tensor &cotangent, const SampleRun &run,
                                                   llvm::SmallVectorImpl<std::string> &missing) {
  Block &body = layer.getBody().front();
  Value argument = body.getArgument(0), yielded = body.getTerminator()->getOperand(0);
  std::vector<Operation *> ops = constantChain(layer);
  for (Operation &op : body.without_terminator()) ops.push_back(&op);

  Values seeds;
  seeds[argument] = cotangent;
  for (double &v : seeds[argument].floats) v = -v;
  if (yielded == argument)
    seeds[argument] = Tensor::zeros(cotangent.element, cotangent.shape);
  else
    seeds[yielded] = cotangent;

  std::vector<Parameter> parameters = parametersOf(layer);
  llvm::DenseSet<Value> wanted{argument};
  for (const Parameter &p : parameters) wanted.insert(p.value);
  auto cotangents = reference::backward(ops, run.values, seeds, run.symbols, {&run.known, &wanted, &missing});
  if (!cotangents) return cotangents.takeError();

  GradientResult result;
  result.branch = std::sqrt(squares((*cotangents)[argument]));
  double sum = 0;
  for (const Parameter &p : parameters)
    if (auto at = cotangents->find(p.value); at != cotangents->end()) sum += squares(at->second);
  result.parameters = std::sqrt(sum);
  return result;
}

llvm::Expected<std::vector<GradientResult>> measureGradient(func::FuncOp main, ArrayRef<graph::LayerOp> layers,
                                                            const SampleRun &run, uint64_t seed, unsigned sample,
                                                            unsigned cotangent, std::optional<unsigned> loss,
                                                            llvm::SmallVectorImpl<std::string> &missing,
                                                            llvm::function_ref<void(Operation &)> onOp) {
  llvm::DenseSet<Value> wanted;
  for (graph::LayerOp layer : layers) wanted.insert(layer.getResult());
  Values seeds = randomCotangents(main, run, seed, sample, cotangent, loss);
  auto cotangents = reference::backward(main.getBody().front(), run.values, seeds, run.symbols,
                                        {&run.known, &wanted, &missing, onOp});
  if (!cotangents) return cotangents.takeError();
  std::vector<GradientResult> results;
  for (graph::LayerOp layer : layers) {
    auto at = cotangents->find(layer.getResult());
    if (at == cotangents->end()) { // nothing flows back to it
      results.push_back({});
      continue;
    }
    auto result = throughLayer(layer, at->second, run, missing);
    if (!result) return result.takeError();
    results.push_back(*result);
  }
  return results;
}

} // namespace tare::checks
