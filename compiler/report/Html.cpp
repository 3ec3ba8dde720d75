// The report as one self-contained page for whoever signs off. In: a Report. Out: HTML without scripts or external resources (a content security policy
// in the page forbids them). Reading order: summary, verdicts, before/after, heatmap, evidence per layer, what it was measured with.
#include "compiler/report/HtmlParts.h"
#include "compiler/report/Writers.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace tare::report {
namespace html {

static std::string shapeText(const Report &r) {
  std::string text;
  for (auto &[name, value] : r.shape) text += (text.empty() ? "" : ", ") + escapeMarkup(name) + " = " + std::to_string(value);
  return text.empty() ? "the model's fixed shapes" : text;
}

static std::string pair(const char *label, const Count &before, const Count &after, std::string (*readable)(std::optional<int64_t>)) {
  double all = static_cast<double>(std::max<int64_t>({before.value.value_or(0), after.value.value_or(0), 1}));
  std::string text;
  for (auto &[count, name, kind] : {std::tuple(&before, "before", "before"), std::tuple(&after, "after", "good")})
    text += fmt::format("<span>{}, {}</span>{}<span class=\"r\">{}</span>\n", label, name, bar(static_cast<double>(count->value.value_or(0)) / all, kind), readable(count->value));
  return text + "<span class=\"gap\"></span>\n";
}

std::string estimates(const Report &r) {
  std::string text = fmt::format("<div class=\"panel\"><p class=\"soft\">At {}. A multiply-add counts as 2 FLOPs; memory is what a run holds: weights, inputs, outputs, and the activations alive at its fullest step.</p><div class=\"pairs\">\n", shapeText(r));
  text += pair("FLOPs", r.full.flops, r.pruned.flops, readableCount) + pair("Memory", r.full.memory, r.pruned.memory, readableBytes) + "</div>\n";
  text += "<div class=\"inner\"><table><thead><tr><th>Module</th><th class=\"r\">FLOPs before</th><th class=\"r\">after</th><th class=\"r\">change</th><th class=\"r\">Memory before</th><th class=\"r\">after</th></tr></thead><tbody>\n";
  for (auto &l : r.layers)
    text += fmt::format("<tr><td class=\"name\">{}</td><td class=\"r\" title=\"{}\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td></tr>\n", breakable(l.layer),
                        escapeMarkup(l.full.flops.formula), readableCount(l.full.flops.value), readableCount(l.pruned.flops.value), change(l.full.flops, l.pruned.flops),
                        readableBytes(l.full.memory.value), readableBytes(l.pruned.memory.value));
  text += "</tbody></table></div>\n<details><summary class=\"soft\">Formulas</summary>\n";
  for (auto &[name, e] : {std::pair("before", &r.full), std::pair("after", &r.pruned)})
    text += fmt::format("<p>FLOPs {0}: <code>{1}</code></p><p>Memory {0}: <code>{2}</code></p>\n", name, escapeMarkup(e->flops.formula), escapeMarkup(e->memory.formula));
  return text + "</details></div>\n";
}

/// A cell whose background grows with the value's share of the column's largest; `smallest` above 0: on a log scale from there.
static std::string heatCell(const Measured &m, double largest, bool percent, double smallest = 0) {
  double share = m.value && largest > 0 ? std::clamp(*m.value / largest, 0.0, 1.0) : 0;
  // The smallest keeps a faint colour: it is not zero.
  if (share > 0 && smallest > 0) share = largest > smallest ? 0.08 + 0.92 * std::log(std::max(*m.value / smallest, 1.0)) / std::log(largest / smallest) : 1;
  std::string value = m.value && percent ? fmt::format("{:.1f}%", 100 * *m.value) : number(m);
  return fmt::format("<td style=\"background:rgba(var(--heat),{:.2f})\">{}</td>", 0.55 * share, value);
}

std::string heatmap(const Report &r) {
  if (r.heatmap.empty()) return fmt::format("<p class=\"soft\">No heatmap: {}.</p>\n", escapeMarkup(r.heatmapWhy.empty() ? "none was asked for" : r.heatmapWhy));
  double most[3] = {0, 0, 0}, least = 0; // gradients of neighbours differ by orders of magnitude
  for (auto &h : r.heatmap) {
    const Measured *values[] = {&h.contribution, &h.gradientNorm, &h.flopsShare};
    for (int i = 0; i < 3; i++) most[i] = std::max(most[i], values[i]->value.value_or(0));
    if (double g = h.gradientNorm.value.value_or(0); std::isfinite(g) && g > 0) least = least > 0 ? std::min(least, g) : g;
  }
  std::string text = "<p class=\"soft\">How much each residual branch adds to its stream, the gradient that reaches it, and its share of the FLOPs. Faint rows carry little: look there next. Each column is coloured up to its own largest value: from zero, the gradient norm on a log scale.</p>\n"
                     "<div class=\"scroll\"><table class=\"heat\"><thead><tr><th>Layer</th><th class=\"r\">Contribution</th><th class=\"r\">Gradient norm</th><th class=\"r\">Share of FLOPs</th></tr></thead><tbody>\n";
  for (auto &h : r.heatmap)
    text += fmt::format("<tr><td class=\"name\">{}</td>{}{}{}</tr>\n", breakable(h.layer), heatCell(h.contribution, most[0], false), heatCell(h.gradientNorm, most[1], false, least), heatCell(h.flopsShare, most[2], true));
  return text + "</tbody></table></div>\n";
}

std::string picture(const Report &r) {
  constexpr size_t most = 400;
  std::string text = "<div class=\"chain\"><span class=\"head\">Before</span><span class=\"head\">After</span>\n";
  for (size_t i = 0; i < std::min(r.graph.size(), most); i++) {
    auto &n = r.graph[i];
    std::string node = fmt::format("<div class=\"node {}\"><span>{}</span><small>{} ops</small></div>", n.role == "fidelity_check" ? "check" : n.verdict, breakable(n.name), n.ops);
    if (i) text += n.verdict == "pruned" ? "<span class=\"wire\"></span><span class=\"bypass\"></span>\n" : "<span class=\"wire\"></span><span class=\"wire\"></span>\n";
    text += node + (n.verdict == "pruned" ? "<div class=\"bypass\">bypassed</div>" : node) + "\n";
  }
  if (r.graph.size() > most) text += fmt::format("<p class=\"soft\">... and {} more</p>", r.graph.size() - most);
  return text + "</div>\n";
}

static std::string provenance(const Report &r) {
  std::string targets;
  for (auto &t : r.targets) targets += (targets.empty() ? "" : "; ") + t;
  bool changed = r.weightThreshold != 1e-6 || r.forwardThreshold != 1e-5;
  return fmt::format("<div class=\"panel\"><p></p><dl><dt>Model</dt><dd>{} ({}, {} parameters)</dd><dt>SHA-256</dt><dd class=\"mono\">{}</dd><dt>Policy</dt><dd>{}</dd>"
                     "<dt>Thresholds</dt><dd>|w| &lt; {}, forward L2 &lt; {}{}</dd><dt>NaN mode</dt><dd>{}</dd><dt>Calibration</dt><dd>{}, {} samples, seed {}{}</dd><dt>Target</dt><dd>{}</dd><dt>Precision</dt><dd>{}</dd></dl></div>\n",
                     escapeMarkup(r.modelName), escapeMarkup(r.modelFormat), grouped(r.parameters), escapeMarkup(r.modelSha256), escapeMarkup(r.policy), shortest(r.weightThreshold),
                     shortest(r.forwardThreshold), changed ? " <b>(changed from 1e-06 and 1e-05)</b>" : "",
                     r.nanMode == "finite" ? "activations are assumed finite (0 \u00b7 x = 0)" : "strict: removals that need finite activations are refused",
                     escapeMarkup(r.calibrationSource), r.calibrationSamples, r.calibrationSeed, r.calibrationSha256.empty() ? "" : ", sha256 <span class=\"mono\">" + escapeMarkup(r.calibrationSha256) + "</span>",
                     escapeMarkup(targets), escapeMarkup(r.precision));
}

} // namespace html

/// When the policy removes a layer (spec 3), for whoever signs off.
static const char *rule(llvm::StringRef policy) {
  if (policy == "inference") return "Under the policy inference a layer is pruned when a structural proof exists, or when its weights, its output and the gradient of its branch are all dead.";
  if (policy == "proved") return "Under the policy proved a layer is pruned when a structural proof exists; measurements alone do not suffice.";
  return "Under the policy strict a layer is pruned when all checks hold: weights, output, gradient of the branch and of the layer's parameters; a proof does not replace them.";
}

std::string toHtml(const Report &r) {
  std::string title = escapeMarkup(r.modelName);
  std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>Pruning report: " + title + "</title>\n<style>" + html::style() + "</style>\n</head>\n<body>\n<main>\n";
  page += fmt::format("<h1>{}</h1>\n<p class=\"soft\">Pruning report \u00b7 policy {} \u00b7 tare {}</p>\n", title, escapeMarkup(r.policy), escapeMarkup(r.version));
  page += html::summary(r);
  for (auto &w : r.warnings) page += fmt::format("<p class=\"line\">Warning: {}</p>\n", escapeMarkup(w));
  page += "<h2>Verdicts</h2>\n" + html::candidates(r, r.candidates);
  if (!r.couldBeRemoved.empty()) page += "<h2>Could be removed under another policy</h2>\n" + html::candidates(r, r.couldBeRemoved);
  page += "<h2>Estimates before and after</h2>\n" + html::estimates(r);
  page += "<h2>Redundancy heatmap after pruning</h2>\n" + html::heatmap(r);
  if (!r.checks.empty()) page += "<h2>Fidelity checks</h2>\n" + html::checks(r);
  if (r.cuda) page += "<h2>CUDA kernels</h2>\n" + html::cuda(*r.cuda);
  page += "<h2>Evidence per layer</h2>\n";
  if (r.candidates.empty()) page += "<p class=\"soft\">No layer was marked as a candidate. Layers are known by name, metadata or a rules file (docs/rules.md).</p>\n";
  for (auto &c : r.candidates) page += html::evidence(r, c);
  for (auto &c : r.couldBeRemoved) page += html::evidence(r, c);
  if (!r.graph.empty()) page += "<h2>The graph before and after</h2>\n" + html::picture(r);
  page += "<h2>Measured with</h2>\n" + html::provenance(r);
  page += std::string("<footer>") + rule(r.policy) + " Otherwise it is kept with the code of the first check that failed. "
          "The certificate inside the engine holds the same evidence: <code>tare verify --certificate ENGINE MODEL</code> derives it again from the source.</footer>\n";
  return page + "</main>\n</body>\n</html>\n";
}

} // namespace tare::report
