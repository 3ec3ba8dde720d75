// The report for a terminal. In: a Report. Out: lines of at most about 120 columns: the candidates with verdicts, evidence and savings, the estimates
// before and after, the fidelity checks, what was kept and why. Holds: names are escaped for terminals; no colours, no locale.
#include "compiler/report/Writers.h"
#include <algorithm>
#include <fmt/format.h>

namespace tare::report {

/// Columns on a terminal: UTF-8 continuation bytes take none.
static size_t columns(const std::string &text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// A table with a header line; columns named in `right` are right-aligned.
static std::string table(const std::vector<std::vector<std::string>> &rows, llvm::StringRef alignment) {
  std::vector<size_t> width;
  for (auto &row : rows)
    for (size_t i = 0; i < row.size(); i++) {
      if (i >= width.size()) width.push_back(0);
      width[i] = std::max(width[i], columns(row[i]));
    }
  std::string text;
  for (size_t r = 0; r < rows.size(); r++) {
    std::string line = " ";
    for (size_t i = 0; i < rows[r].size(); i++) {
      std::string pad(width[i] - columns(rows[r][i]), ' ');
      line += " " + (alignment[i] == 'r' ? pad + rows[r][i] : rows[r][i] + pad) + " ";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (r != 0) continue;
    size_t rule = 0;
    for (size_t w : width) rule += w + 2;
    text += "  " + std::string(rule - 2, '-') + "\n";
  }
  return text;
}

static std::string value(const Measured &m) { return m.value ? brief(*m.value) : "-"; }
static std::string why(const Candidate &c) {
  return c.verdict == "pruned" ? c.basis : c.code;
}

static std::string candidateTable(const std::vector<Candidate> &candidates) {
  std::vector<std::vector<std::string>> rows = {{"layer", "verdict", "why", "weights", "non-zero", "max |w|", "forward L2", "grad branch", "grad params", "saves FLOPs", "memory"}};
  for (auto &c : candidates) {
    auto &w = c.weights;
    rows.push_back({escapeTerminal(c.name), c.verdict, why(c), w.measured ? grouped(w.elements) : "-", w.measured ? grouped(w.nonzero) : "-",
                    w.measured ? brief(w.maxAbs) : "-", value(c.forward), value(c.gradientBranch), value(c.gradientParameters),
                    readableCount(c.savedFlops.value), readableBytes(c.savedBytes)});
  }
  return table(rows, "lllrrrrrrrr");
}

static std::string shapeText(const Report &r) {
  std::string text;
  for (auto &[name, value] : r.shape) text += (text.empty() ? "" : ", ") + escapeTerminal(name) + "=" + std::to_string(value);
  return text.empty() ? "fixed shapes" : text;
}

static std::string change(const std::optional<int64_t> &before, const std::optional<int64_t> &after) {
  if (!before || !after || *before == 0) return "-";
  return fmt::format("{:+.1f}%", 100.0 * static_cast<double>(*after - *before) / static_cast<double>(*before));
}

std::string cudaText(const Cuda &c) {
  std::string images;
  for (auto &i : c.images) images += (images.empty() ? "" : ", ") + escapeTerminal(i);
  std::string text = fmt::format("  images: {}, made by {}, precision {}\n", images, escapeTerminal(c.toolkit), escapeTerminal(c.precision));
  if (!c.why.empty()) return text + "  " + escapeTerminal(c.why) + "\n";
  std::vector<std::vector<std::string>> rows = {{"kernel", "kind", "for", "registers", "shared", "dynamic", "stack", "spill stores", "spill loads"}};
  for (auto &k : c.kernels)
    for (auto &r : k.resources)
      rows.push_back({escapeTerminal(k.name), escapeTerminal(k.kind), escapeTerminal(r.architecture), std::to_string(r.registers), std::to_string(r.sharedBytes), std::to_string(k.dynamicSharedBytes),
                      std::to_string(r.stackBytes), std::to_string(r.spillStores), std::to_string(r.spillLoads)});
  return text + table(rows, "lllrrrrrr");
}

std::string toText(const Report &r) {
  std::string text = fmt::format("Pruning report of {} ({}, {} parameters)\n", escapeTerminal(r.modelName), r.modelFormat, grouped(r.parameters));
  text += fmt::format("  sha256 {}\n", r.modelSha256.empty() ? "-" : r.modelSha256);
  text += fmt::format("  policy {}, |w| < {}, forward L2 < {}, NaN mode {}; calibration: {} ({} samples, seed {})\n", r.policy, shortest(r.weightThreshold),
                      shortest(r.forwardThreshold), r.nanMode, escapeTerminal(r.calibrationSource), r.calibrationSamples, r.calibrationSeed);
  if (r.weightThreshold != 1e-6 || r.forwardThreshold != 1e-5) text += "  NOTE: the thresholds were changed (defaults: |w| < 1e-06, forward L2 < 1e-05)\n";
  text += fmt::format("\n{} of {} candidates pruned, {} rejected, {} frozen (zero rate {:.3f})\n\n", r.count("pruned"), r.candidates.size(),
                      r.count("rejected"), r.count("frozen"), r.zeroRate());
  if (!r.candidates.empty()) text += candidateTable(r.candidates) + "\n";
  else text += "  No layer was marked. Layers are known by name, metadata or --rules FILE (docs/rules.md); `tare compile MODEL --stop-after imported`\n  prints every node with its module path.\n\n";
  for (auto &c : r.candidates)
    if (!c.line.empty()) text += "  " + escapeTerminal(c.line) + "\n";
  if (!r.couldBeRemoved.empty()) text += "\nCould be removed under another policy:\n" + candidateTable(r.couldBeRemoved);
  text += fmt::format("\nEstimates at {} (a multiply-add is 2 FLOPs; memory: weights, inputs, outputs, and activations at the fullest step)\n", shapeText(r));
  text += table({{"", "full", "pruned", "change"},
                 {"FLOPs", readableCount(r.full.flops.value), readableCount(r.pruned.flops.value), change(r.full.flops.value, r.pruned.flops.value)},
                 {"memory", readableBytes(r.full.memory.value), readableBytes(r.pruned.memory.value), change(r.full.memory.value, r.pruned.memory.value)}},
                "lrrr");
  if (!r.checks.empty()) {
    text += "\nFidelity checks\n";
    std::vector<std::vector<std::string>> rows = {{"check", "form", "heads", "rank", "precision", "fidelity", "near anchors", "overall", "note"}};
    bool seeded = false;
    for (auto &c : r.checks) {
      std::string note = c.code.empty() ? escapeTerminal(c.why) : c.code;
      // Forms that did not agree well enough stand behind the one that was taken.
      for (size_t i = 0; i + 1 < c.tried.size(); ++i) note += (note.empty() ? "" : "; ") + c.tried[i].precision + " had " + percents(c.tried[i].window);
      rows.push_back({escapeTerminal(c.name), c.form, c.heads ? std::to_string(*c.heads) : "-", c.rank ? std::to_string(*c.rank) : "-", c.precision,
                      c.fidelity ? brief(*c.fidelity) : "-", percents(c.windowAgreement), percents(c.overallAgreement), note});
      seeded |= c.anchors == "seeded";
    }
    text += table(rows, "llrrlrlll");
    for (auto &c : r.checks)
      if (!c.line.empty()) text += escapeTerminal(c.line) + "\n";
    if (seeded) text += "The calibration has no anchors: seeded ones were used, one per 64 tokens.\n";
  }
  if (r.cuda) text += "\nCUDA kernels (per thread: registers, bytes of stack and spills; per block: bytes of shared memory, static and dynamic)\n" + cudaText(*r.cuda);
  if (!r.heatmap.empty()) {
    text += "\nRedundancy heatmap (after pruning)\n";
    std::vector<std::vector<std::string>> rows = {{"layer", "contribution", "gradient norm", "share of FLOPs"}};
    for (auto &h : r.heatmap) rows.push_back({escapeTerminal(h.layer), value(h.contribution), value(h.gradientNorm), h.flopsShare.value ? fmt::format("{:.1f}%", 100 * *h.flopsShare.value) : "-"});
    text += table(rows, "lrrr");
  }
  for (auto &w : r.warnings) text += "\nwarning: " + escapeTerminal(w);
  if (!r.warnings.empty()) text += "\n";
  return text;
}

} // namespace tare::report
