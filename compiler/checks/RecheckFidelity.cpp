// The decisions about fidelity checks, derived again (Certificate.h). In: the certificate's JSON, which nobody vouches for; the source as clean ops in front of
// graph-measure-fidelity-checks; what the plan says. Out: success, or exit 4 naming the check and what differs. Written apart from CheckLadder.cpp on purpose: the source is
// evaluated whole, the sparse model walks after it with plain loops for distances, windows and carried bits. Common ground: the IR, the decoder, the
// reference of all other ops, and the quantizer, whose integers are a proposal that the agreements judge.
#include "compiler/checks/Certificate.h"
#include "compiler/checks/CertificateParts.h"
#include "compiler/checks/CheckQuantizer.h"
#include "compiler/checks/QuantizedCheck.h"
#include "compiler/checks/Random.h"
#include "compiler/graph/Failure.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>
#include <fmt/format.h>
#include <thread>

using namespace mlir;
using nlohmann::json;
using tare::reference::Tensor;
using tare::reference::Values;

namespace tare::checks {
namespace {

llvm::Error differs(const std::string &name, const std::string &what) {
  return fail(ExitCode::Gate, "the certificate does not hold: " + (name.empty() ? "" : name + ": ") + what).atNode(name).withHint("compile the model again, or find out what was changed");
}
bool close(double a, double b) { return a == b || std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b)); }

std::string nameOf(graph::FidelityCheckOp check) {
  auto name = check->getAttrOfType<StringAttr>("graph.check");
  return name ? name.str() : graph::nodeName(check.getLoc());
}

// ---- can it be part of the FFN-up product? -------------------------------------------------------------------------------------------------

bool isConstantMatrix(Value value) {
  if (auto cast = value.getDefiningOp<graph::CastOp>()) value = cast.getX();
  auto constant = value.getDefiningOp<graph::ConstantOp>();
  return constant && !constant.getOverridable() && cast<RankedTensorType>(value.getType()).getRank() == 2;
}

/// The summands of `value`, as long as partial sums are read once and have its shape.
void summands(Value value, const Dims &shape, int depth, SmallVectorImpl<Value> &all) {
  auto sum = value.getDefiningOp<graph::BinaryOp>();
  if (depth <= 8 && sum && sum.getKind() == graph::BinaryKind::Add && value.hasOneUse() && graph::dimsOf(value) == shape) {
    summands(sum.getLhs(), shape, depth + 1, all), summands(sum.getRhs(), shape, depth + 1, all);
  } else {
    all.push_back(value);
  }
}

/// The check's result is added, directly or through up to 8 sums, to a product of its own h with a constant matrix.
bool isBesideItsProduct(graph::FidelityCheckOp check) {
  Dims shape = graph::dimsOf(check.getResult());
  Value value = check.getResult();
  for (int step = 0; step < 8 && value.hasOneUse(); ++step) {
    auto sum = dyn_cast<graph::BinaryOp>(*value.user_begin());
    if (!sum || sum.getKind() != graph::BinaryKind::Add || graph::dimsOf(sum.getResult()) != shape) return false;
    SmallVector<Value> terms;
    summands(sum.getLhs() == value ? sum.getRhs() : sum.getLhs(), shape, 0, terms);
    for (Value term : terms)
      if (auto product = term.getDefiningOp<graph::MatmulOp>())
        if (product.getLhs() == check.getH() && term.hasOneUse() && graph::dimsOf(term) == shape && isConstantMatrix(product.getRhs())) return true;
    value = sum.getResult();
  }
  return false;
}

// ---- the sparse model beside the source ----------------------------------------------------------------------------------------------------

using Bits = std::vector<char>; ///< [rows][heads]

/// Only of the rows that are wanted; null: all.
Bits bitsOf(const Tensor &h, const std::vector<double> &w, const CheckWeights &weights, const std::vector<char> *wanted) {
  size_t rows = static_cast<size_t>(h.shape[0] * h.shape[1]), heads = static_cast<size_t>(weights.heads), rank = static_cast<size_t>(weights.rank), width = static_cast<size_t>(weights.width);
  Bits bits(rows * heads);
  for (size_t row = 0; row < rows; ++row) {
    if (wanted && !(*wanted)[row]) continue;
    for (size_t k = 0; k < heads; ++k) {
      double squares = 0;
      for (size_t r = 0; r < rank; ++r) {
        double z = 0;
        for (size_t d = 0; d < width; ++d) z += w[(k * rank + r) * width + d] * h.floats[row * width + d];
        z -= weights.p[k * rank + r];
        squares += z * z;
      }
      bits[row * heads + k] = std::sqrt(squares) < weights.tau[k];
    }
  }
  return bits;
}

struct Found {
  std::string precision; ///< what the measurement chose; dense when none
  std::string anchors;
  int64_t evaluated = 0, tokens = 0;
  struct Form { std::string precision; std::vector<double> window, overall; };
  std::vector<Form> tried;
  bool measured = false;
};

class Derivation {
public:
  Derivation(func::FuncOp main, const Calibration &calibration, double threshold, int64_t window, std::string forced, unsigned threads)
      : body(main.getBody().front()), calibration(calibration), threshold(threshold), window(window), forced(std::move(forced)), threads(std::max(1u, threads)), known(reference::decodeConstants(body)) {}

  llvm::Error run();
  llvm::DenseSet<Operation *> fusable; ///< only these are measured
  std::vector<std::pair<graph::FidelityCheckOp, Found>> found;
  double difference = 0, magnitude = 0;

private:
  const Tensor &sparseValue(size_t n, Value v) const {
    if (auto at = known.find(v); at != known.end()) return at->second;
    return walked[n].find(v)->second;
  }
  const Tensor &sourceValue(size_t n, Value v) const {
    if (auto at = known.find(v); at != known.end()) return at->second;
    return source[n].find(v)->second;
  }
  llvm::Error each(llvm::function_ref<llvm::Error(size_t)> fn);
  llvm::Error step(size_t n, Operation &op);
  llvm::Error decide(graph::FidelityCheckOp check);
  std::vector<char> windows(size_t n, int64_t batch, int64_t tokens) const;

  Block &body;
  const Calibration &calibration;
  double threshold;
  int64_t window;
  std::string forced;
  unsigned threads;
  Values known;
  std::vector<reference::Symbols> symbols;
  std::vector<Values> source, walked; ///< per sample: what is kept of the source; live values of the sparse model
};

/// All samples, shared among threads; the first error.
llvm::Error Derivation::each(llvm::function_ref<llvm::Error(size_t)> fn) {
  std::vector<std::string> errors(calibration.samples.size());
  std::vector<std::thread> workers;
  auto share = [&](size_t first) {
    for (size_t n = first; n < errors.size(); n += threads)
      if (auto error = fn(n)) errors[n] = llvm::toString(std::move(error));
  };
  for (size_t t = 1; t < std::min<size_t>(threads, errors.size()); ++t) workers.emplace_back(share, t);
  share(0);
  for (auto &worker : workers) worker.join();
  for (auto &error : errors)
    if (!error.empty()) return refuse("the fidelity checks cannot be measured: " + error);
  return llvm::Error::success();
}

llvm::Error Derivation::step(size_t n, Operation &op) {
  SmallVector<const Tensor *> operands;
  for (Value v : op.getOperands()) operands.push_back(&sparseValue(n, v));
  auto results = reference::evaluateOp(&op, operands, symbols[n]);
  if (!results) return results.takeError();
  for (auto [v, tensor] : llvm::zip(op.getResults(), *results)) walked[n][v] = std::move(tensor);
  return llvm::Error::success();
}

llvm::Error Derivation::run() {
  size_t count = calibration.samples.size();
  symbols.resize(count), source.resize(count), walked.resize(count);
  llvm::DenseSet<Value> keep(body.getTerminator()->operand_begin(), body.getTerminator()->operand_end());
  for (auto check : body.getOps<graph::FidelityCheckOp>()) keep.insert(check.getH());
  bool isMeasured = forced != "dense";
  if (isMeasured)
    if (auto error = each([&](size_t n) -> llvm::Error {
          auto bound = reference::bindSymbols(body, calibration.samples[n]);
          if (!bound) return bound.takeError();
          symbols[n] = std::move(*bound);
          reference::EvaluateOptions how;
          how.known = &known, how.keep = &keep, how.largest = 0;
          auto values = reference::evaluate(body, calibration.samples[n], how);
          if (!values) return values.takeError();
          source[n] = std::move(*values);
          for (auto [argument, tensor] : llvm::zip(body.getArguments(), calibration.samples[n])) walked[n][argument] = source[n][argument] = tensor;
          return llvm::Error::success();
        }))
      return error;
  for (Operation &op : body.without_terminator()) {
    if (isa<graph::ConstantOp>(op)) continue;
    auto check = dyn_cast<graph::FidelityCheckOp>(op);
    if (!isMeasured) {
      if (check) found.push_back({check, Found{"dense", "", 0, 0, {}, false}});
      continue;
    }
    if (auto error = check ? decide(check) : each([&](size_t n) { return step(n, op); })) return error;
    for (Value operand : op.getOperands())
      if (!keep.contains(operand) && llvm::all_of(operand.getUsers(), [&](Operation *user) { return user == &op || user->isBeforeInBlock(&op); }))
        for (Values &values : walked) values.erase(operand);
  }
  for (size_t n = 0; isMeasured && n < count; ++n)
    for (Value output : body.getTerminator()->getOperands()) {
      const Tensor &a = sourceValue(n, output), &b = sparseValue(n, output);
      for (size_t i = 0; i < a.floats.size(); ++i) difference = std::max(difference, std::fabs(a.floats[i] - b.floats[i])), magnitude = std::max(magnitude, std::fabs(a.floats[i]));
    }
  return llvm::Error::success();
}

/// Rows at which the check runs: token 0, and those less than or equal to `window` steps before an anchor.
std::vector<char> Derivation::windows(size_t n, int64_t batch, int64_t tokens) const {
  bool given = llvm::any_of(calibration.anchors, [](auto &a) { return !a.empty(); });
  std::vector<char> rows;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<int64_t> anchors;
    if (given && n < calibration.anchors.size() && !calibration.anchors[n].empty()) anchors = calibration.anchors[n][static_cast<size_t>(b)];
    if (!given) { // docs/checks.md: one per 64 tokens, from the seed
      Random random(calibration.seed ^ 0x616e63686f7273, n * 1024 + static_cast<uint64_t>(b));
      for (int64_t begin = 0; begin < tokens; begin += 64) anchors.push_back(begin + 1 + random.below(std::min<int64_t>(64, tokens - begin)));
    }
    for (int64_t t = 0; t < tokens; ++t) rows.push_back(t == 0 || llvm::any_of(anchors, [&](int64_t a) { return a >= 0 && t < a && a - t <= window; }));
  }
  return rows;
}

llvm::Error Derivation::decide(graph::FidelityCheckOp check) {
  Found f;
  auto weights = checkWeights(check);
  auto asItIs = [&] {
    found.push_back({check, std::move(f)});
    return each([&](size_t n) { return step(n, *check.getOperation()); });
  };
  f.precision = "dense";
  if (!fusable.contains(check)) {
    f.anchors = llvm::any_of(calibration.anchors, [](auto &a) { return !a.empty(); }) ? "file" : "seeded";
    return asItIs();
  }
  f.measured = true;
  f.anchors = llvm::any_of(calibration.anchors, [](auto &a) { return !a.empty(); }) ? "file" : "seeded";
  size_t count = calibration.samples.size(), heads = static_cast<size_t>(weights->heads);
  std::vector<Bits> dense(count), kept(count);
  std::vector<std::vector<char>> runs(count);
  const std::vector<double> w(weights->w.begin(), weights->w.end());
  StateMoments moments(weights->width);
  for (size_t n = 0; n < count; ++n) {
    const Tensor &h = sparseValue(n, check.getH());
    if (n < calibration.anchors.size() && !calibration.anchors[n].empty() && static_cast<int64_t>(calibration.anchors[n].size()) != h.shape[0])
      return refuse(fmt::format("calibration sample {}: anchors are for {} sequences, the model sees {}", n, calibration.anchors[n].size(), h.shape[0]));
    runs[n] = windows(n, h.shape[0], h.shape[1]);
    f.tokens += static_cast<int64_t>(runs[n].size()), f.evaluated += llvm::count(runs[n], 1);
    moments.add(h.floats.data(), h.shape[0] * h.shape[1]);
  }
  if (auto error = each([&](size_t n) { return dense[n] = bitsOf(sourceValue(n, check.getH()), w, *weights, nullptr), llvm::Error::success(); })) return error;
  bool finite = llvm::all_of(w, [](double v) { return std::isfinite(v); });
  for (std::string form : forced.empty() ? std::vector<std::string>{"int4", "int8", "f32"} : std::vector<std::string>{forced}) {
    if (form != "f32" && !finite) continue;
    std::vector<double> used = form == "f32" ? w : dequantized(quantizeCheck(*weights, moments, form == "int4" ? 4 : 8, threads), weights->width);
    if (auto error = each([&](size_t n) {
          const Tensor &h = sparseValue(n, check.getH());
          kept[n] = bitsOf(h, used, *weights, &runs[n]);
          for (size_t row = 0; row < runs[n].size(); ++row) // token 0 of a sequence is always evaluated: nothing is carried over its start
            for (size_t k = 0; k < heads && !runs[n][row]; ++k) kept[n][row * heads + k] = kept[n][(row - 1) * heads + k];
          return llvm::Error::success();
        }))
      return error;
    Found::Form t{form, {}, {}};
    bool good = true;
    for (size_t k = 0; k < heads; ++k) {
      int64_t near = 0, all = 0;
      for (size_t n = 0; n < count; ++n)
        for (size_t row = 0; row < runs[n].size(); ++row) {
          bool same = dense[n][row * heads + k] == kept[n][row * heads + k];
          all += same, near += same && runs[n][row];
        }
      t.window.push_back(100.0 * static_cast<double>(near) / static_cast<double>(std::max<int64_t>(f.evaluated, 1)));
      t.overall.push_back(100.0 * static_cast<double>(all) / static_cast<double>(std::max<int64_t>(f.tokens, 1)));
      good &= t.window.back() >= threshold - 1e-9;
    }
    f.tried.push_back(std::move(t));
    if (!good && forced.empty()) continue;
    f.precision = form;
    break;
  }
  if (f.precision == "dense") return asItIs();
  auto columns = static_cast<size_t>(weights->columns);
  if (auto error = each([&](size_t n) {
        Tensor y = Tensor::zeros(getElementTypeOrSelf(check.getResult().getType()), sparseValue(n, check.getH()).shape);
        y.shape.back() = weights->columns;
        y.floats.assign(runs[n].size() * columns, 0.0);
        for (size_t row = 0; row < runs[n].size(); ++row)
          for (size_t k = 0; k < heads; ++k)
            for (size_t c = 0; c < columns && kept[n][row * heads + k]; ++c) y.floats[row * columns + c] += weights->e[k * columns + c];
        walked[n][check.getResult()] = std::move(y);
        return llvm::Error::success();
      }))
    return error;
  found.push_back({check, std::move(f)});
  return llvm::Error::success();
}

// ---- against the certificate ---------------------------------------------------------------------------------------------------------------

std::string listed(const std::vector<double> &values) {
  std::string text;
  for (double v : values) text += fmt::format("{}{:.9g}", text.empty() ? "" : " ", v);
  return text;
}

llvm::Error compareForms(const std::string &name, const json &claimed, const std::vector<Found::Form> &own) {
  if (claimed.size() != own.size()) return differs(name, fmt::format("{} forms were tried, the certificate lists {}", own.size(), claimed.size()));
  for (auto [said, form] : llvm::zip(claimed, own)) {
    if (said.at("precision") != form.precision) return differs(name, "form " + form.precision + " was tried, the certificate lists " + said.at("precision").dump());
    for (auto [key, values] : {std::pair("window_agreement", &form.window), {"overall_agreement", &form.overall}}) {
      auto numbers = said.at(key).get<std::vector<double>>();
      bool same = numbers.size() == values->size();
      for (size_t k = 0; same && k < numbers.size(); ++k) same = close(numbers[k], (*values)[k]);
      if (!same) return differs(name, fmt::format("{} of {} is {}, the certificate says {}", key, form.precision, listed(*values), listed(numbers)));
    }
  }
  return llvm::Error::success();
}

llvm::Error compareCheck(const json &said, const std::string &name, const Found &own, bool fusable, const Derivation &all) {
  bool sparse = fusable && own.precision != "dense";
  std::string form = sparse ? "sparse" : "dense", precision = sparse ? own.precision : "f32";
  std::string code = !fusable ? "CHECK_NOT_FUSABLE" : own.precision == "dense" && own.measured ? "FIDELITY_BELOW_THRESHOLD" : "";
  for (auto &[key, value] : {std::pair("form", form), {"code", code}, {"precision", precision}, {"anchors", own.anchors}})
    if (said.at(key) != value) return differs(name, fmt::format("its {} is '{}', the certificate says '{}'", key, value, said.at(key).get<std::string>()));
  for (auto [key, value] : {std::pair("evaluated", own.evaluated), {"tokens", own.tokens}})
    if (said.at(key) != value) return differs(name, fmt::format("{} is {}, the certificate says {}", key, value, said.at(key).dump()));
  if (auto error = compareForms(name, said.at("tried"), own.tried)) return error;
  for (auto [key, value] : {std::pair("output_difference", all.difference), {"output_magnitude", all.magnitude}}) {
    double number = said.at(key);
    if (!close(number, value) && std::fabs(number - value) > 1e-9 * all.magnitude) return differs(name, fmt::format("{} is {:.9g}, the certificate says {:.9g}", key, value, number));
  }
  return llvm::Error::success();
}

llvm::Error verify(const json &certificate, func::FuncOp main, llvm::ArrayRef<PlannedCheck> planned, const std::string &calibrationPath, unsigned threads) {
  auto checks = main.getBody().getOps<graph::FidelityCheckOp>();
  if (checks.empty() || !certificate.contains("fidelity_checks"))
    return checks.empty() && !certificate.contains("fidelity_checks") ? llvm::Error::success()
           : checks.empty() ? differs("", "the model has no fidelity checks, the certificate speaks of some")
                            : differs(nameOf(*checks.begin()), "the certificate says nothing about this fidelity check");
  const json &c = certificate.at("fidelity_checks"), &list = c.at("checks");
  int64_t window = c.at("window");
  std::string forced = c.at("forced");
  double threshold = c.at("fidelity_threshold");
  if (window < 1 || window > 1 << 20 || !(threshold >= 0 && threshold <= 100)) throw std::runtime_error("window or threshold of the fidelity checks is out of range");
  if (!llvm::is_contained({"", "int4", "int8", "f32", "dense"}, forced)) throw std::runtime_error("unknown precision of fidelity checks");
  auto calibration = calibrationOf(certificate, main, calibrationPath);
  if (!calibration) return calibration.takeError();
  Derivation derivation(main, *calibration, threshold, window, forced, threads);
  std::optional<Dims> tokens; // batch and tokens of the first check that has them: the others must count alike
  bool ownAnchors = false;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) ownAnchors |= inputName(main, i) == "anchors";
  for (auto check : checks) {
    Dims h = graph::dimsOf(check.getH());
    if (h.size() == 3 && !tokens) tokens = Dims{h[0], h[1]};
    if (!ownAnchors && h.size() == 3 && h[0] == (*tokens)[0] && h[1] == (*tokens)[1] && graph::dimsOf(check.getW())[0].constant().value_or(0) <= 32 && checkWeights(check) && isBesideItsProduct(check))
      derivation.fusable.insert(check);
  }
  if (auto error = derivation.run()) return error;
  size_t next = 0;
  for (size_t i = 0; i < std::max<size_t>(derivation.found.size(), list.size()); ++i) {
    std::string said = i < list.size() ? list[i].at("name").get<std::string>() : "";
    if (i >= derivation.found.size()) return differs(said, "the model has no such fidelity check");
    auto &[check, own] = derivation.found[i];
    std::string name = nameOf(check);
    if (name != said) return differs(name, said.empty() ? "the certificate does not list it" : "the certificate lists " + said + " in its place");
    int64_t heads = graph::dimsOf(check.getW())[0].constant().value_or(0), rank = graph::dimsOf(check.getP())[1].constant().value_or(0);
    bool fusable = derivation.fusable.contains(check);
    if (auto error = compareCheck(list[i], name, own, fusable, derivation)) return error;
    if (!fusable || own.precision == "dense") continue;
    if (next >= planned.size()) return differs(name, "the engine's plan has no such check");
    const PlannedCheck &plan = planned[next++];
    if (plan.precision != own.precision || plan.heads != heads || plan.rank != rank)
      return differs(name, fmt::format("it is {} with {} heads of rank {}, the engine's plan has {} with {} heads of rank {}", own.precision, heads, rank, plan.precision, plan.heads, plan.rank));
    if (plan.window != window) return differs(name, fmt::format("its window is {}, the engine's plan has {}", window, plan.window));
  }
  if (next < planned.size()) return differs("", fmt::format("the engine's plan has {} sparse fidelity checks, the source gives {}", planned.size(), next));
  return llvm::Error::success();
}

} // namespace

llvm::Error verifyFidelityChecks(const json &certificate, ModuleOp module, llvm::ArrayRef<PlannedCheck> planned, const std::string &calibration, unsigned threads) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main) return refuse("the model has no graph");
  try {
    return verify(certificate, main, planned, calibration, threads);
  } catch (const std::exception &e) { // json's own, and what this file throws about values
    return refuse(std::string("the certificate is not well-formed: ") + e.what());
  }
}

} // namespace tare::checks
