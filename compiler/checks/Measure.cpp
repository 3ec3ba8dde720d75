// Runs the checks over all samples (Measure.h) and joins the numbers: the largest norm over samples and cotangents
// counts.
#include "compiler/checks/Measure.h"
#include "compiler/checks/Parameters.h"
#include "compiler/checks/Proof.h"
#include "compiler/checks/Verdict.h"
#include "compiler/checks/Weights.h"
#include "compiler/graph/ModulePath.h"
#include <cmath>
#include <thread>

using namespace mlir;
using tare::reference::Tensor;

namespace tare::checks {
namespace {

/// What one sample gives, per layer.
struct SampleResult {
  std::vector<ForwardResult> forward;
  std::vector<std::vector<GradientResult>> gradients; ///< per cotangent, per layer of `withGradient`
  SmallVector<std::string> missing;
  std::string forwardError, gradientError;
};

/// Values of all samples are kept between the two parts up to this size. A sample whose run would take more than its
/// share keeps only what is small: the scores of attention grow with the square of the length, and going back makes
/// them again, one layer at a time.
constexpr size_t kKeptBytes = size_t(2) << 30, kLargestKept = size_t(4) << 20;

struct Job {
  func::FuncOp main;
  ArrayRef<graph::LayerOp> layers;
  const Calibration &calibration;
  const CompileOptions &options;
  const reference::Values &known;
  std::optional<unsigned> loss;
  const std::function<void(const std::string &)> &working;
  llvm::DenseSet<Value> keep; ///< what is read from a run by name, whatever its size
  std::vector<graph::LayerOp> withGradient;

  /// "layers.3.attn (sample 2 of 4, forward)"
  void tell(Operation &op, unsigned sample, const std::string &what) const {
    if (!working) return;
    std::string path = graph::modulePath(&op);
    working((path.empty() ? graph::nodeName(op.getLoc()) : path) + " (sample " + std::to_string(sample + 1) + " of " +
            std::to_string(calibration.samples.size()) + ", " + what + ")");
  }

  llvm::Expected<reference::Values> evaluate(unsigned sample, const reference::Symbols &symbols) const {
    Block &body = func::FuncOp(main).getBody().front();
    auto onOp = [&](Operation &op) { tell(op, sample, "forward"); };
    reference::EvaluateOptions how;
    how.known = &known, how.keep = &keep, how.onOp = onOp;
    if (reference::bytesOfRun(body, symbols) > kKeptBytes / calibration.samples.size()) how.largest = kLargestKept;
    return reference::evaluate(body, calibration.samples[sample], how);
  }

  std::unique_ptr<SampleRun> forward(unsigned sample, SampleResult &result) const {
    auto symbols = reference::bindSymbols(func::FuncOp(main).getBody().front(), calibration.samples[sample]);
    auto values = symbols ? evaluate(sample, *symbols) : llvm::Expected<reference::Values>(symbols.takeError());
    if (!values) {
      result.forwardError = llvm::toString(values.takeError());
      return nullptr;
    }
    auto run = std::make_unique<SampleRun>(SampleRun{known, std::move(*symbols), std::move(*values)});
    for (graph::LayerOp layer : layers) result.forward.push_back(measureForward(layer, *run));
    return run;
  }

  void gradient(unsigned sample, const SampleRun &run, SampleResult &result) const {
    unsigned count = loss ? 1 : options.cotangents;
    for (unsigned c = 0; c < count && !withGradient.empty(); ++c) {
      auto onOp = [&](Operation &op) {
        tell(op, sample, "gradient " + std::to_string(c + 1) + " of " + std::to_string(count));
      };
      auto one = measureGradient(main, withGradient, run, calibration.seed, sample, c, loss, result.missing, onOp);
      if (!one) {
        result.gradientError = llvm::toString(one.takeError());
        return;
      }
      result.gradients.push_back(std::move(*one));
    }
  }
};

/// fn(sample) for every sample, on up to `threads` threads; a sample is worked off by one thread.
template <typename Fn> void overSamples(unsigned samples, unsigned threads, Fn fn) {
  std::vector<std::thread> workers;
  unsigned count = std::max(1u, std::min(threads, samples));
  for (unsigned t = 1; t < count; ++t)
    workers.emplace_back([=, &fn] {
      for (unsigned s = t; s < samples; s += count) fn(s);
    });
  for (unsigned s = 0; s < samples; s += count) fn(s);
  for (std::thread &worker : workers) worker.join();
}

size_t bytesOf(const reference::Values &values) {
  size_t bytes = 0;
  for (auto &entry : values) bytes += 8 * (entry.second.floats.size() + entry.second.ints.size());
  return bytes;
}

/// max() that keeps NaN.
double larger(double a, double b) { return a != a || b != b ? a + b : std::max(a, b); }

void joinForward(Evidence &e, size_t layer, ArrayRef<SampleResult> samples) {
  double largest = 0;
  for (const SampleResult &s : samples) {
    if (!s.forwardError.empty()) {
      e.forwardWhy = s.forwardError;
      return;
    }
    largest = larger(largest, s.forward[layer].l2);
    if (e.forwardWhy.empty()) e.forwardWhy = s.forward[layer].why;
  }
  if (std::isfinite(largest))
    e.forward = largest;
  else
    e.forwardWhy = "the norm is not finite: " + e.forwardWhy;
}

void joinGradient(Evidence &e, size_t index, ArrayRef<SampleResult> samples) {
  double branch = 0, parameters = 0;
  for (const SampleResult &s : samples) {
    if (!s.forwardError.empty() || !s.gradientError.empty()) {
      e.gradientWhy = s.forwardError.empty() ? s.gradientError : s.forwardError;
      return;
    }
    if (!s.missing.empty()) {
      e.gradientWhy = "no derivative is known for " + s.missing.front();
      return;
    }
    for (auto &one : s.gradients)
      branch = larger(branch, one[index].branch), parameters = larger(parameters, one[index].parameters);
  }
  if (std::isfinite(branch)) e.branch = branch;
  if (std::isfinite(parameters)) e.parameters = parameters;
  if (!e.branch || !e.parameters) e.gradientWhy = "a gradient norm is not finite";
}

} // namespace

llvm::Expected<std::vector<Evidence>> measureLayers(func::FuncOp main, ArrayRef<graph::LayerOp> layers,
                                                    const Calibration &calibration, const CompileOptions &options,
                                                    llvm::function_ref<void(unsigned, const SampleRun &)> onRun,
                                                    ArrayRef<Value> needed,
                                                    const std::function<void(const std::string &)> &working) {
  auto loss = findLoss(main, options);
  if (!loss) return loss.takeError();
  if (layers.empty() && !onRun) return std::vector<Evidence>();
  reference::Values known = reference::decodeConstants(main.getBody().front());
  std::vector<Evidence> evidence(layers.size());
  for (auto [e, layer] : llvm::zip(evidence, layers)) {
    for (const Parameter &p : parametersOf(layer)) {
      Tensor decoded;
      const Tensor *value = nullptr;
      if (auto at = known.find(p.value); at != known.end()) {
        value = &at->second;
      } else if (auto dequantize = p.value.getDefiningOp<graph::DequantizeOp>()) {
        auto result = reference::evaluateConstant(dequantize.getResult(), known);
        if (!result) return result.takeError();
        decoded = std::move(*result);
        value = &decoded;
      }
      e.tensors.push_back(measureTensor(p, value, options.weightThreshold));
    }
    Proof proof = prove(layer, known);
    e.proved = proof.holds, e.proofRule = proof.rule, e.needsFinite = proof.needsFinite;
  }

  // First the forward runs, which every layer needs; then the gradients of the layers whose verdict or report wants
  // them. A run is kept for the second part while all of them fit into memory, and made again where they do not: the
  // same values either way.
  unsigned count = calibration.samples.size();
  std::vector<SampleResult> results(count);
  std::vector<std::unique_ptr<SampleRun>> runs(count);
  Job job{main, layers, calibration, options, known, *loss, working, {}, {}};
  job.keep.insert(needed.begin(), needed.end());
  for (graph::LayerOp layer : layers) job.keep.insert(layer.getInput()), job.keep.insert(layer.getResult());
  auto forward = [&](unsigned s) {
    results[s].forward.clear();
    return job.forward(s, results[s]);
  };
  overSamples(count, options.threads, [&](unsigned s) {
    runs[s] = forward(s);
    if (runs[s] && bytesOf(runs[s]->values) > kKeptBytes / count) runs[s].reset();
  });
  SmallVector<int> index(layers.size(), -1);
  for (auto [i, e] : llvm::enumerate(evidence)) {
    joinForward(e, i, results);
    if (options.measureAll || needsGradient(e, options)) {
      index[i] = job.withGradient.size();
      job.withGradient.push_back(layers[i]);
    } else {
      e.gradientWhy = "left out: the weight or forward check already decided";
    }
  }
  if (!job.withGradient.empty() || onRun)
    overSamples(count, options.threads, [&](unsigned s) {
      if (!runs[s] && results[s].forwardError.empty()) runs[s] = forward(s);
      if (!runs[s]) return;
      job.gradient(s, *runs[s], results[s]);
      if (onRun) onRun(s, *runs[s]);
      runs[s].reset();
    });
  for (auto [i, e] : llvm::enumerate(evidence))
    if (index[i] >= 0) joinGradient(e, index[i], results);
  return evidence;
}

} // namespace tare::checks
