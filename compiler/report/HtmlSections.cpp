// The sections of the HTML report: summary, candidates with their evidence, fidelity checks. In: a Report. Out: markup, every name escaped.
#include "compiler/report/HtmlParts.h"
#include "compiler/report/Writers.h"
#include <fmt/format.h>

namespace tare::report::html {

std::string summary(const Report &r) {
  std::string text = "<div class=\"cards\">\n";
  text += card("Candidates pruned", fmt::format("{} of {}", r.count("pruned"), r.candidates.size()), fmt::format("zero rate {:.3f}", r.zeroRate()), r.count("pruned") ? "good" : "");
  text += card("Kept", fmt::format("{}", r.count("rejected") + r.count("frozen")), fmt::format("{} rejected, {} frozen", r.count("rejected"), r.count("frozen")), r.count("rejected") ? "bad" : "");
  auto both = [](const std::string &before, const std::string &after) { return before == after ? before : before + " \u2192 " + after; };
  text += card("FLOPs", change(r.full.flops, r.pruned.flops), both(readableCount(r.full.flops.value), readableCount(r.pruned.flops.value)));
  text += card("Memory", change(r.full.memory, r.pruned.memory), both(readableBytes(r.full.memory.value), readableBytes(r.pruned.memory.value)));
  int64_t bytes = 0;
  for (auto &c : r.candidates)
    if (c.verdict == "pruned") bytes += c.savedBytes.value_or(0);
  text += card("Weights removed", readableBytes(bytes), fmt::format("model: {} parameters", readableCount(r.parameters)));
  return text + "</div>\n";
}

static std::string reason(const Candidate &c) {
  if (c.verdict != "pruned") return fmt::format("<code>{}</code>", breakable(c.code));
  return c.basis == "proved" ? "proved" : "measured evidence";
}

std::string candidates(const Report &r, const std::vector<Candidate> &list) {
  if (list.empty()) return "<p class=\"soft\">None.</p>\n";
  std::string text = "<div class=\"scroll\"><table><thead><tr><th>Layer</th><th>Verdict</th><th>Why</th><th class=\"r\">Weights</th><th class=\"r\">Non-zero</th>"
                     "<th class=\"r\">Forward L2</th><th class=\"r\">Saves FLOPs</th><th class=\"r\">Saves memory</th></tr></thead><tbody>\n";
  for (auto &c : list) {
    auto &w = c.weights;
    text += fmt::format("<tr><td class=\"name\">{}<br><small>{}</small></td><td>{}</td><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td>"
                        "<td class=\"r\" title=\"{}\">{}</td><td class=\"r\">{}</td></tr>\n",
                        breakable(c.name), breakable(c.role), badge(c.verdict), reason(c), w.measured ? grouped(w.elements) : "-", w.measured ? grouped(w.nonzero) : "-",
                        number(c.forward), escapeMarkup(c.savedFlops.formula), readableCount(c.savedFlops.value), readableBytes(c.savedBytes));
  }
  return text + "</tbody></table></div>\n";
}

static std::string fact(const std::string &label, const std::string &value, const std::string &track) {
  return fmt::format("<span>{}</span><span class=\"v\">{}</span>{}\n", label, value, track.empty() ? "<span></span>" : track);
}

static std::string tensors(const Weights &w) {
  if (w.tensors.empty()) return "";
  std::string text = "<div class=\"inner\"><table><thead><tr><th>Tensor</th><th>Storage</th><th class=\"r\">Elements</th><th class=\"r\">Non-zero</th>"
                     "<th class=\"r\">Above threshold</th><th class=\"r\">max |w|</th><th>SHA-256</th></tr></thead><tbody>\n";
  for (auto &t : w.tensors)
    text += fmt::format("<tr><td class=\"mono\">{}</td><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"mono\" title=\"{}\">{}</td></tr>\n",
                        breakable(t.name), escapeMarkup(t.storage), grouped(t.elements), grouped(t.nonzero), grouped(t.aboveThreshold), brief(t.maxAbs),
                        escapeMarkup(t.sha256), escapeMarkup(t.sha256.substr(0, 12)));
  return text + "</tbody></table></div>\n";
}

std::string evidence(const Report &r, const Candidate &c) {
  std::string text = fmt::format("<details class=\"panel\"{}><summary><b>{}</b>{}<span class=\"soft\">{} \u00b7 marked by {}</span></summary><div>\n", c.verdict == "pruned" ? "" : " open",
                                 breakable(c.name), badge(c.verdict), escapeMarkup(c.role), escapeMarkup(c.markedBy));
  if (!c.line.empty()) text += fmt::format("<p class=\"line mono\">{}</p>\n", escapeMarkup(c.line));
  if (c.verdict == "pruned")
    text += fmt::format("<p>{}</p>\n", c.basis == "proved" ? fmt::format("Proved: {}.", escapeMarkup(c.proofRule.empty() ? "the branch is zero for every finite input" : c.proofRule))
                                                           : "All checks hold on the calibration inputs; there is no structural proof.");
  else if (!c.proofRule.empty())
    text += fmt::format("<p class=\"soft\">{}: {}</p>\n", c.proved.value_or(false) ? "There is a structural proof (policies inference and proved use it)" : "No structural proof", escapeMarkup(c.proofRule));
  auto &w = c.weights;
  text += "<div class=\"facts\">\n";
  if (w.measured) {
    text += fact("Largest weight", brief(w.maxAbs), logBar({w.maxAbs, ""}, r.weightThreshold));
    text += fact("Non-zero weights", fmt::format("{} of {}", grouped(w.nonzero), grouped(w.elements)), w.elements ? bar(static_cast<double>(w.nonzero) / static_cast<double>(w.elements), w.nonzero ? "bad" : "good") : "");
    if (w.nonFinite) text += fact("NaN or infinite", grouped(w.nonFinite), "");
  } else {
    text += fact("Weights", number({std::nullopt, w.why}), "");
  }
  text += fact("Forward L2 of output \u2212 input", number(c.forward), logBar(c.forward, r.forwardThreshold));
  text += fact("Gradient through the branch", number(c.gradientBranch), logBar(c.gradientBranch, 0));
  text += fact("Gradient of the parameters", number(c.gradientParameters), logBar(c.gradientParameters, 0));
  if (c.trainable) text += fact("Trainable", *c.trainable ? "yes" : "no", "");
  text += "</div>\n" + tensors(w);
  if (!c.savedFlops.formula.empty()) text += fmt::format("<p class=\"soft\">FLOPs of this layer: <code>{}</code></p>\n", escapeMarkup(c.savedFlops.formula));
  return text + "</div></details>\n";
}

std::string checks(const Report &r) {
  std::string text = "<div class=\"scroll\"><table><thead><tr><th>Check</th><th>Form</th><th class=\"r\">Heads</th><th class=\"r\">Rank</th><th>Precision</th><th class=\"r\">Fidelity</th><th>Near anchors</th><th>Overall</th><th>Note</th></tr></thead><tbody>\n";
  for (auto &c : r.checks) {
    std::string note = c.line.empty() ? c.why : c.line;
    for (size_t i = 0; i + 1 < c.tried.size(); ++i) note += (note.empty() ? "" : "; ") + c.tried[i].precision + " had " + percents(c.tried[i].window);
    if (c.anchors == "seeded") note += (note.empty() ? "" : "; ") + std::string("measured with seeded anchors, one per 64 tokens");
    text += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td>{}</td><td class=\"r\">{}</td><td>{}</td><td>{}</td><td class=\"note\">{}</td></tr>\n", breakable(c.name),
                        escapeMarkup(c.form), c.heads ? std::to_string(*c.heads) : "-", c.rank ? std::to_string(*c.rank) : "-", escapeMarkup(c.precision),
                        c.fidelity ? brief(*c.fidelity) : "-", percents(c.windowAgreement), percents(c.overallAgreement), escapeMarkup(note));
  }
  return text + "</tbody></table></div>\n";
}

std::string cuda(const Cuda &c) {
  std::string images;
  for (auto &i : c.images) images += (images.empty() ? "" : ", ") + i;
  std::string text = fmt::format("<p class=\"soft\">Images: {}; made by {}; precision {}. {}</p>\n", escapeMarkup(images), escapeMarkup(c.toolkit), escapeMarkup(c.precision), escapeMarkup(c.why));
  text += "<div class=\"scroll\"><table><thead><tr><th>Kernel</th><th>Kind</th><th>For</th><th class=\"r\">Registers</th><th class=\"r\">Shared, static</th><th class=\"r\">Dynamic</th><th class=\"r\">Stack</th>"
          "<th class=\"r\">Spill stores</th><th class=\"r\">Spill loads</th></tr></thead><tbody>\n";
  for (auto &k : c.kernels)
    for (auto &r : k.resources)
      text += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td></tr>\n",
                          breakable(k.name), escapeMarkup(k.kind), escapeMarkup(r.architecture), r.registers, r.sharedBytes, k.dynamicSharedBytes, r.stackBytes, r.spillStores, r.spillLoads);
  return text + "</tbody></table></div>\n";
}

} // namespace tare::report::html
