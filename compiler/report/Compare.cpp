// What changed between two reports (`tare diff`). In: two Reports. Out: differences in a fixed order: verdicts, fidelity
// checks, estimates. Holds: kinds are the names that --fail-on takes, plus those that are only told.
#include "compiler/report/Writers.h"
#include <algorithm>
#include <fmt/format.h>

namespace tare::report {

static std::string told(const Candidate &c) {
  return c.verdict + (c.code.empty() ? c.basis.empty() ? "" : "/" + c.basis : " (" + c.code + ")");
}

static void compareCount(std::vector<Difference> &out, const char *subject, const Count &a, const Count &b, const char *more, const char *less) {
  if (!a.value || !b.value || *a.value == *b.value) return;
  double percent = *a.value ? 100.0 * (static_cast<double>(*b.value) / static_cast<double>(*a.value) - 1) : 100;
  out.push_back({*b.value > *a.value ? more : less, subject, fmt::format("{} -> {} ({:+.2f}%)", grouped(*a.value), grouped(*b.value), percent)});
}

static std::string told(const Check &c) {
  std::string text = c.form + (c.form == "dense" ? "" : " " + c.precision);
  if (!c.windowAgreement.empty()) text += ", bits near anchors agree at " + percents(c.windowAgreement) + "%";
  return text + (c.code.empty() ? "" : " (" + c.code + ")");
}

/// The worst head near anchors: what --check-fidelity gates.
static std::optional<double> worst(const Check &c) {
  auto least = std::min_element(c.windowAgreement.begin(), c.windowAgreement.end());
  return least == c.windowAgreement.end() ? std::nullopt : std::optional(*least);
}

static void compareChecks(std::vector<Difference> &out, const Report &before, const Report &after) {
  auto in = [](const Report &r, const std::string &name) {
    auto found = std::find_if(r.checks.begin(), r.checks.end(), [&](const Check &c) { return c.name == name; });
    return found == r.checks.end() ? nullptr : &*found;
  };
  for (auto &c : after.checks) {
    const Check *old = in(before, c.name);
    if (!old) out.push_back({"appeared", c.name, "new fidelity check: " + told(c)});
    else if (old->form != "dense" && c.form == "dense") out.push_back({"newly-dense", c.name, told(*old) + " -> " + told(c)});
    else if (c.form != "dense" && worst(c) && worst(*old) && *worst(c) < *worst(*old))
      out.push_back({"lower-fidelity", c.name, told(*old) + " -> " + told(c)});
    else if (told(*old) != told(c)) out.push_back({"changed", c.name, told(*old) + " -> " + told(c)});
  }
  for (auto &c : before.checks)
    if (!in(after, c.name)) out.push_back({"disappeared", c.name, "was a fidelity check: " + told(c)});
}

std::vector<Difference> compare(const Report &before, const Report &after) {
  std::vector<Difference> out;
  std::map<std::string, const Candidate *> old, now;
  for (auto &c : before.candidates) old[c.name] = &c;
  for (auto &c : after.candidates) now[c.name] = &c;
  for (auto &c : after.candidates) {
    auto found = old.find(c.name);
    if (found == old.end()) out.push_back({c.verdict == "rejected" ? "newly-rejected" : "appeared", c.name, "new candidate: " + told(c)});
    else if (told(*found->second) != told(c)) {
      bool verdict = found->second->verdict != c.verdict;
      std::string kind = !verdict ? "changed" : c.verdict == "rejected" ? "newly-rejected" : c.verdict == "pruned" ? "newly-pruned" : "changed";
      out.push_back({kind, c.name, told(*found->second) + " -> " + told(c)});
    }
  }
  for (auto &c : before.candidates)
    if (!now.count(c.name)) out.push_back({"disappeared", c.name, "was " + told(c)});
  compareChecks(out, before, after);
  if (before.policy != after.policy) out.push_back({"changed", "policy", before.policy + " -> " + after.policy});
  if (before.weightThreshold != after.weightThreshold || before.forwardThreshold != after.forwardThreshold)
    out.push_back({"changed", "thresholds", fmt::format("{}, {} -> {}, {}", shortest(before.weightThreshold), shortest(before.forwardThreshold), shortest(after.weightThreshold), shortest(after.forwardThreshold))});
  if (before.modelSha256 != after.modelSha256) out.push_back({"changed", "model", before.modelSha256.substr(0, 16) + " -> " + after.modelSha256.substr(0, 16)});
  if (before.parameters != after.parameters) out.push_back({"changed", "parameters", grouped(before.parameters) + " -> " + grouped(after.parameters)});
  // Estimates compare only at one shape.
  if (before.shape == after.shape) {
    compareCount(out, "FLOPs of the pruned plan", before.pruned.flops, after.pruned.flops, "slower", "faster");
    compareCount(out, "memory of the pruned plan", before.pruned.memory, after.pruned.memory, "larger", "smaller");
  } else {
    out.push_back({"changed", "shape", "the two reports estimate at different shapes; FLOPs and memory were not compared"});
  }
  return out;
}

} // namespace tare::report
