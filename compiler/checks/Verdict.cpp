// The verdict table (Verdict.h). Every row is one function: nothing when it holds, else what failed and what to do about it.
#include "compiler/checks/Verdict.h"
#include "llvm/Support/GlobPattern.h"
#include <fmt/format.h>

namespace tare::checks {
namespace {

struct Failed {
  std::string code, what, hint;
};
using Row = std::optional<Failed> (*)(const Evidence &, const CompileOptions &);

std::string indexText(const std::vector<int64_t> &index) { return fmt::format("[{}]", fmt::join(index, ",")); }

/// The tensor that a count is reported for: the one with the largest element among those where it is not zero.
const TensorEvidence *worst(const Evidence &e, int64_t TensorEvidence::*count) {
  const TensorEvidence *best = nullptr;
  for (const TensorEvidence &t : e.tensors)
    if (t.*count > 0 && (!best || t.maxAbs > best->maxAbs)) best = &t;
  return best;
}
std::string others(const Evidence &e, const TensorEvidence *shown, int64_t TensorEvidence::*count) {
  int64_t rest = 0;
  for (const TensorEvidence &t : e.tensors)
    if (&t != shown) rest += t.*count;
  return rest ? fmt::format(" (and {} in other tensors)", rest) : "";
}

std::optional<Failed> present(const Evidence &e, const CompileOptions &) {
  for (const TensorEvidence &t : e.tensors)
    if (!t.present) return Failed{"WEIGHT_MISSING", fmt::format("the bytes of {} ({}) are not there", t.name, t.storage), "restore the file that holds them"};
  return std::nullopt;
}

std::optional<Failed> constant(const Evidence &e, const CompileOptions &) {
  for (const TensorEvidence &t : e.tensors)
    if (t.overridable)
      return Failed{"WEIGHT_OVERRIDABLE", fmt::format("{} ({}) is also a graph input, so a caller may feed other values", t.name, t.storage),
                    "remove it from the graph inputs if it is a constant"};
  return std::nullopt;
}

std::optional<Failed> finite(const Evidence &e, const CompileOptions &) {
  const TensorEvidence *t = worst(e, &TensorEvidence::nonFinite);
  if (!t) return std::nullopt;
  return Failed{"WEIGHT_NOT_FINITE", fmt::format("{} of {} elements of {} ({}) are NaN or infinite, the first at {}{}", t->nonFinite, t->elements, t->name, t->storage,
                                                 indexText(t->nonFiniteIndex), others(e, t, &TensorEvidence::nonFinite)),
                "repair the checkpoint"};
}

std::optional<Failed> weights(const Evidence &e, const CompileOptions &options) {
  const TensorEvidence *t = worst(e, &TensorEvidence::aboveThreshold);
  if (!t) return std::nullopt;
  return Failed{"WEIGHT_ABOVE_THRESHOLD",
                fmt::format("{} of {} elements of {} ({}) are not below {:g}, largest {:.3g} at {}{}", t->aboveThreshold, t->elements, t->name, t->storage,
                            options.weightThreshold, t->largestValue, indexText(t->largestIndex), others(e, t, &TensorEvidence::aboveThreshold)),
                "the layer is in use: keep it, or train it to zero"};
}

std::optional<Failed> noise(const Evidence &e, const CompileOptions &) {
  Evidence half;
  for (const TensorEvidence &t : e.tensors)
    if (t.halfPrecision) half.tensors.push_back(t);
  const TensorEvidence *t = worst(half, &TensorEvidence::nonzero);
  if (!t) return std::nullopt;
  return Failed{"WEIGHT_NOISE_DETECTED",
                fmt::format("{} of {} elements of {} ({}) are non-zero, largest {:.3g} at {}{}", t->nonzero, t->elements, t->name, t->storage, t->largestValue,
                            indexText(t->largestIndex), others(half, t, &TensorEvidence::nonzero)),
                "a dead half-precision weight is exactly 0: set them to zero if this is rounding noise of a cast, or use --policy inference"};
}

std::optional<Failed> forward(const Evidence &e, const CompileOptions &options) {
  if (e.forward && *e.forward < options.forwardThreshold) return std::nullopt;
  std::string what = e.forward ? fmt::format("L2(output - input) is {:.6g} on the calibration data, not below {:g}", *e.forward, options.forwardThreshold)
                               : "L2(output - input) could not be established: " + e.forwardWhy;
  return Failed{"FORWARD_NOT_IDENTITY", what, "the layer changes the hidden state: keep it"};
}

std::optional<Failed> branchGradient(const Evidence &e, const CompileOptions &) {
  if (e.branch && *e.branch == 0) return std::nullopt;
  std::string what = e.branch ? fmt::format("the gradient through the branch has norm {:.6g}, not 0", *e.branch) : "the gradient could not be measured: " + e.gradientWhy;
  return Failed{"GRADIENT_NONZERO", what, "the layer still passes gradient: keep it"};
}

std::optional<Failed> parameterGradient(const Evidence &e, const CompileOptions &) {
  if (e.parameters && *e.parameters == 0) return std::nullopt;
  std::string what = e.parameters ? fmt::format("the gradient that reaches its parameters has norm {:.6g}, not 0", *e.parameters)
                                  : "the gradient could not be measured: " + e.gradientWhy;
  return Failed{"GRADIENT_NONZERO", what, "it could still be trained; --policy inference removes layers of a frozen checkpoint"};
}

constexpr Row kPresence[] = {present, constant, finite};
constexpr Row kMeasured[] = {weights, noise, forward, branchGradient};

template <size_t N> std::optional<Failed> firstFailure(const Row (&rows)[N], const Evidence &e, const CompileOptions &options) {
  for (Row row : rows)
    if (auto failed = row(e, options)) return failed;
  return std::nullopt;
}

std::optional<Failed> byPolicy(const Evidence &e, const CompileOptions &options) {
  if (auto failed = firstFailure(kPresence, e, options)) return failed;
  switch (options.policy) {
  case Policy::Strict:
    if (auto failed = firstFailure(kMeasured, e, options)) return failed;
    return parameterGradient(e, options);
  case Policy::Inference:
    if (e.proved) return std::nullopt;
    return firstFailure(kMeasured, e, options);
  case Policy::Proved:
    if (e.proved) return std::nullopt;
    return Failed{"NOT_PROVED", e.proofRule, "--policy strict or inference decides by measurements"};
  }
  return std::nullopt;
}

bool matchesAny(const std::vector<std::string> &globs, llvm::StringRef name) {
  for (const std::string &pattern : globs) {
    auto glob = llvm::GlobPattern::create(pattern);
    if (glob ? glob->match(name) : pattern == name) return true;
    if (!glob) llvm::consumeError(glob.takeError());
  }
  return false;
}

} // namespace

bool keptByUser(llvm::StringRef name, const CompileOptions &options) {
  return matchesAny(options.keep, name) || (!options.only.empty() && !matchesAny(options.only, name));
}

bool needsGradient(const Evidence &e, const CompileOptions &options) {
  constexpr Row before[] = {weights, noise, forward};
  return !firstFailure(kPresence, e, options) && !firstFailure(before, e, options);
}

Verdict decide(const Evidence &e, llvm::StringRef name, const CompileOptions &options, bool needsFinite) {
  std::optional<Failed> failed = byPolicy(e, options);
  if (!failed && options.strictNans && needsFinite)
    failed = Failed{"NAN_ASSUMPTION_REFUSED", "its removal assumes finite activations and ignores the sign of zeros, which --strict-nans forbids", "leave --strict-nans out to remove it"};
  if (keptByUser(name, options)) failed = Failed{"KEPT_BY_USER", "--keep or --only asks to keep it", "change the globs to let the checks decide"};
  if (!failed) return {true, e.proved ? "proved" : "evidence", "", ""};
  return {false, "", failed->code, fmt::format("[PRUNING_REJECTED: {}] {}: {}; {}", failed->code, name.str(), failed->what, failed->hint)};
}

} // namespace tare::checks
