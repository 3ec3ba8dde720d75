// The dense and the sparse model side by side over all samples, op by op (CheckLadder.h). Values are dropped after their last use: what is alive of all samples
// at one op is what must fit into memory.
#include "compiler/checks/CheckLadder.h"
#include "compiler/checks/CheckQuantizer.h"
#include "compiler/checks/QuantizedCheck.h"
#include "compiler/checks/Random.h"
#include "compiler/graph/Failure.h"
#include "compiler/reference/FidelityCheck.h"
#include "compiler/reference/Gemm.h"
#include <cmath>
#include <fmt/format.h>
#include <thread>

using namespace mlir;
using tare::reference::Tensor;

namespace tare::checks {

double FormAgreement::fidelity() const {
  double sum = 0;
  for (double percent : window) sum += percent;
  return window.empty() ? 100 : sum / static_cast<double>(window.size());
}

namespace {

std::string nameOf(graph::FidelityCheckOp check) {
  auto name = check->getAttrOfType<StringAttr>("graph.check");
  return name ? name.str() : graph::nodeName(check.getLoc());
}

struct SampleState {
  reference::Symbols symbols;
  reference::Values dense, sparse; ///< a value that is the same in both is in `dense` only
  std::vector<std::vector<int64_t>> anchors; ///< per batch element; empty: seeded ones
};

class Ladder {
public:
  Ladder(func::FuncOp main, const Calibration &calibration, const CompileOptions &options, llvm::function_ref<std::string(graph::FidelityCheckOp)> whyDense)
      : body(main.getBody().front()), calibration(calibration), options(options), whyDense(whyDense), known(reference::decodeConstants(body)) {}

  llvm::Error run() {
    if (options.checkPrecision == "dense") { // nothing is measured
      body.walk([&](graph::FidelityCheckOp check) {
        CheckDecision d;
        d.check = check, d.name = nameOf(check), d.precision = "dense", d.why = "forced by --check-precision dense";
        result.checks.push_back(std::move(d));
      });
      return llvm::Error::success();
    }
    bool given = llvm::any_of(calibration.anchors, [](auto &a) { return !a.empty(); });
    result.anchors = given ? "file" : "seeded";
    for (size_t n = 0; n < calibration.samples.size(); ++n) {
      auto symbols = reference::bindSymbols(body, calibration.samples[n]);
      if (!symbols) return symbols.takeError();
      samples.emplace_back();
      samples[n].symbols = std::move(*symbols);
      if (n < calibration.anchors.size()) samples[n].anchors = calibration.anchors[n];
      for (auto [argument, tensor] : llvm::zip(body.getArguments(), calibration.samples[n])) samples[n].dense[argument] = tensor;
    }
    if (auto error = walk(body)) return error;
    for (SampleState &s : samples)
      for (Value output : body.getTerminator()->getOperands()) {
        const Tensor &a = *find(s, output, false), &b = *find(s, output, true);
        for (size_t i = 0; i < a.floats.size(); ++i) {
          result.outputDifference = std::max(result.outputDifference, std::abs(a.floats[i] - b.floats[i]));
          result.outputMagnitude = std::max(result.outputMagnitude, std::abs(a.floats[i]));
        }
      }
    return llvm::Error::success();
  }

  CheckLadder result;

private:
  const Tensor *find(const SampleState &s, Value value, bool sparse) const {
    if (auto at = known.find(value); at != known.end()) return &at->second;
    if (sparse)
      if (auto at = s.sparse.find(value); at != s.sparse.end()) return &at->second;
    return &s.dense.find(value)->second;
  }

  llvm::Error walk(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (isa<graph::ConstantOp>(op)) continue;
      if (auto layer = dyn_cast<graph::LayerOp>(op)) {
        Block &inner = layer.getBody().front();
        alias(layer.getInput(), inner.getArgument(0));
        if (auto error = walk(inner)) return error;
        alias(inner.getTerminator()->getOperand(0), layer.getResult());
      } else if (auto check = dyn_cast<graph::FidelityCheckOp>(op)) {
        if (auto error = decide(check)) return error;
      } else if (auto error = evaluate(op)) {
        return error;
      }
      drop(op);
    }
    return llvm::Error::success();
  }

  void alias(Value from, Value to) {
    for (SampleState &s : samples) {
      s.dense[to] = Tensor(*find(s, from, false));
      if (auto at = s.sparse.find(from); at != s.sparse.end()) s.sparse[to] = Tensor(at->second);
    }
  }

  /// Values whose uses all lie behind `op`.
  void drop(Operation &op) {
    for (Value operand : op.getOperands()) {
      Operation *last = nullptr;
      for (Operation *user : operand.getUsers()) {
        Operation *top = operand.getParentBlock()->findAncestorOpInBlock(*user);
        if (!last || last->isBeforeInBlock(top)) last = top;
      }
      if (last != &op) continue;
      for (SampleState &s : samples) s.dense.erase(operand), s.sparse.erase(operand);
    }
  }

  llvm::Error evaluate(Operation &op) {
    std::vector<std::string> errors(samples.size());
    overSamples([&](size_t n) {
      SampleState &s = samples[n];
      bool differs = llvm::any_of(op.getOperands(), [&](Value v) { return s.sparse.contains(v); });
      for (bool sparse : {false, true}) {
        if (sparse && !differs) break;
        SmallVector<const Tensor *> operands;
        for (Value operand : op.getOperands()) operands.push_back(find(s, operand, sparse));
        auto results = reference::evaluateOp(&op, operands, s.symbols);
        if (!results) {
          errors[n] = llvm::toString(results.takeError());
          return;
        }
        for (auto [value, tensor] : llvm::zip(op.getResults(), *results)) (sparse ? s.sparse : s.dense)[value] = std::move(tensor);
      }
    });
    for (std::string &error : errors)
      if (!error.empty()) return refuse("the fidelity checks cannot be measured: " + error).atNode(graph::nodeName(op.getLoc()));
    return llvm::Error::success();
  }

  template <typename Fn> void overSamples(Fn fn) {
    std::vector<std::thread> workers;
    size_t threads = std::min<size_t>(std::max(1u, options.threads), samples.size());
    for (size_t t = 1; t < threads; ++t)
      workers.emplace_back([&, t] { for (size_t n = t; n < samples.size(); n += threads) fn(n); });
    for (size_t n = 0; n < samples.size(); n += std::max<size_t>(threads, 1)) fn(n);
    for (auto &worker : workers) worker.join();
  }

  /// Evaluated tokens of one batch element. Seeded anchors: one per 64 tokens, anywhere behind the first token.
  llvm::Expected<std::vector<bool>> evaluatedOf(size_t n, int64_t batch, int64_t batches, int64_t tokens, int64_t window) {
    std::vector<int64_t> anchors;
    if (result.anchors == "seeded") {
      Random random(calibration.seed ^ 0x616e63686f7273, n * 1024 + batch);
      for (int64_t begin = 0; begin < tokens; begin += 64) anchors.push_back(begin + 1 + random.below(std::min<int64_t>(64, tokens - begin)));
    } else if (!samples[n].anchors.empty()) {
      if (static_cast<int64_t>(samples[n].anchors.size()) != batches)
        return refuse(fmt::format("calibration sample {}: anchors are for {} sequences, the model sees {}", n, samples[n].anchors.size(), batches)).inFile(options.calibration).ofTensor("anchors");
      anchors = samples[n].anchors[batch];
    }
    return reference::evaluatedTokens(anchors, tokens, window);
  }

  llvm::Error decide(graph::FidelityCheckOp check) {
    CheckDecision d;
    d.check = check, d.name = nameOf(check);
    auto weights = checkWeights(check);
    auto stays = [&](std::string code, std::string why) {
      d.precision = "dense", d.code = std::move(code), d.why = std::move(why);
      d.line = fmt::format("[SPARSIFY_REJECTED: {}] {}: {}", d.code, d.name, d.why);
      result.checks.push_back(std::move(d));
      return evaluate(*check.getOperation());
    };
    if (std::string why = whyDense ? whyDense(check) : ""; !why.empty()) return stays("CHECK_NOT_FUSABLE", why);
    if (!weights) return stays("CHECK_NOT_FUSABLE", "W, p, tau and E must be constants whose bytes are there");
    d.heads = weights->heads, d.rank = weights->rank;
    if (graph::dimsOf(check.getH()).size() != 3) return stays("CHECK_NOT_FUSABLE", "the states must be [batch, tokens, width]");
    return climb(check, *weights, std::move(d));
  }

  /// Tries the forms one after the other and continues with the one that is taken.
  llvm::Error climb(graph::FidelityCheckOp check, const CheckWeights &weights, CheckDecision d) {
    Tensor w = *find(samples[0], check.getW(), false);
    const Tensor &p = *find(samples[0], check.getP(), false), &tau = *find(samples[0], check.getTau(), false), &e = *find(samples[0], check.getE(), false);
    std::vector<std::vector<double>> dense(samples.size());
    std::vector<std::vector<bool>> evaluated(samples.size()); // batch after batch
    StateMoments moments(weights.width);
    for (size_t n = 0; n < samples.size(); ++n) {
      const Tensor &h = *find(samples[n], check.getH(), false), &reached = *find(samples[n], check.getH(), true);
      dense[n] = reference::denseBits(h, w, p, tau);
      moments.add(reached.floats.data(), reached.shape[0] * reached.shape[1]);
      for (int64_t b = 0; b < h.shape[0]; ++b) {
        auto flags = evaluatedOf(n, b, h.shape[0], h.shape[1], options.checkWindow);
        if (!flags) return flags.takeError();
        evaluated[n].insert(evaluated[n].end(), flags->begin(), flags->end());
      }
      d.tokens += static_cast<int64_t>(evaluated[n].size()), d.evaluated += llvm::count(evaluated[n], true);
    }
    bool finite = llvm::all_of(weights.w, [](float v) { return std::isfinite(v); });
    std::vector<std::vector<double>> bits(samples.size());
    std::vector<std::string> order = {"int4", "int8", "f32"};
    if (!options.checkPrecision.empty()) order = {options.checkPrecision};
    for (const std::string &precision : order) {
      int64_t width = precision == "int4" ? 4 : precision == "int8" ? 8 : 0;
      if (width && !finite) continue;
      Tensor used = w;
      QuantizedCheck quantized;
      if (width) quantized = quantizeCheck(weights, moments, width, options.threads), used.floats = dequantized(quantized, weights.width);
      FormAgreement form{precision, std::vector<double>(d.heads), std::vector<double>(d.heads)};
      for (size_t n = 0; n < samples.size(); ++n) {
        const Tensor &h = *find(samples[n], check.getH(), true);
        bits[n] = reference::denseBits(h, used, p, tau);
        int64_t tokens = h.shape[1], stride = tokens * d.heads;
        for (int64_t b = 0; b < h.shape[0]; ++b)
          reference::carryBits(MutableArrayRef(bits[n]).slice(b * stride, stride), std::vector<bool>(evaluated[n].begin() + b * tokens, evaluated[n].begin() + (b + 1) * tokens), d.heads);
        for (size_t i = 0; i < bits[n].size(); ++i) {
          double agrees = bits[n][i] == dense[n][i];
          form.overall[i % d.heads] += agrees;
          if (evaluated[n][i / d.heads]) form.window[i % d.heads] += agrees;
        }
      }
      bool good = true;
      for (int64_t k = 0; k < d.heads; ++k) {
        form.window[k] *= 100.0 / static_cast<double>(std::max<int64_t>(d.evaluated, 1)), form.overall[k] *= 100.0 / static_cast<double>(std::max<int64_t>(d.tokens, 1));
        good &= form.window[k] >= options.checkFidelity;
      }
      d.forms.push_back(form), d.precision = precision, d.quantized = std::move(quantized);
      if (good || !options.checkPrecision.empty()) return take(check, e, bits, std::move(d));
    }
    return reject(check, std::move(d));
  }

  llvm::Error take(graph::FidelityCheckOp check, const Tensor &e, const std::vector<std::vector<double>> &bits, CheckDecision d) {
    if (!options.checkPrecision.empty()) d.why = "forced by --check-precision " + d.precision + ": the fidelity gates nothing";
    if (auto error = evaluate(*check.getOperation())) return error;
    int64_t columns = e.shape[1];
    for (size_t n = 0; n < samples.size(); ++n) {
      Tensor y = samples[n].dense[check.getResult()];
      std::fill(y.floats.begin(), y.floats.end(), 0.0);
      reference::gemmAccumulate(static_cast<int64_t>(bits[n].size()) / std::max<int64_t>(d.heads, 1), columns, d.heads, bits[n].data(), d.heads, 1, e.floats.data(), columns, y.floats.data(), columns);
      if (y.floats == samples[n].dense[check.getResult()].floats) samples[n].sparse.erase(check.getResult());
      else samples[n].sparse[check.getResult()] = std::move(y);
    }
    result.checks.push_back(std::move(d));
    return llvm::Error::success();
  }

  llvm::Error reject(graph::FidelityCheckOp check, CheckDecision d) {
    const FormAgreement &last = d.forms.back();
    size_t worst = std::min_element(last.window.begin(), last.window.end()) - last.window.begin();
    d.precision = "dense", d.code = "FIDELITY_BELOW_THRESHOLD";
    d.why = fmt::format("sparse f32 bits of head {} agree with the dense ones at {:.1f}% of {} evaluated tokens, wanted {}%", worst, last.window[worst], d.evaluated, options.checkFidelity);
    d.line = fmt::format("[SPARSIFY_REJECTED: {}] {}: {}; give calibration text with anchors like those of real documents, or force a form with --check-precision", d.code, d.name, d.why);
    d.quantized = {};
    result.checks.push_back(std::move(d));
    return evaluate(*check.getOperation());
  }

  Block &body;
  const Calibration &calibration;
  const CompileOptions &options;
  llvm::function_ref<std::string(graph::FidelityCheckOp)> whyDense;
  reference::Values known;
  std::vector<SampleState> samples;
};

} // namespace

llvm::Expected<CheckLadder> climbLadder(func::FuncOp main, const Calibration &calibration, const CompileOptions &options,
                                        llvm::function_ref<std::string(graph::FidelityCheckOp)> whyDense) {
  Ladder ladder(main, calibration, options, whyDense);
  if (auto error = ladder.run()) return error;
  return std::move(ladder.result);
}

} // namespace tare::checks
