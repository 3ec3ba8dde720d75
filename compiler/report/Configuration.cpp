// The engine's configuration as YAML (cli.md; `--emit-config`, `tare inspect ENGINE --config`) and the dispatch over report forms. In: a Report. Out: text.
// Holds: the YAML reads back with any parser; names that are no plain scalars are quoted.
#include "compiler/report/Writers.h"
#include "llvm/ADT/StringSwitch.h"

namespace tare::report {

/// A number that YAML 1.1 readers take for one, too: with a point in its mantissa.
static std::string yamlNumber(double value) {
  std::string text = shortest(value);
  size_t end = text.find('e');
  if (text.find('.') == std::string::npos) text.insert(end == std::string::npos ? text.size() : end, ".0");
  return text;
}

static std::string named(const Report &r, const char *verdict) {
  std::string text;
  for (auto &c : r.candidates)
    if (c.verdict == verdict) text += "\n  - {name: " + yamlScalar(c.name) + ", code: " + yamlScalar(c.code) + "}";
  return text.empty() ? " []" : text;
}

std::string toConfiguration(const Report &r) {
  std::string pruned;
  for (auto &c : r.candidates)
    if (c.verdict == "pruned") pruned += (pruned.empty() ? "" : ", ") + yamlScalar(c.name);
  std::string text = "# Configuration of the engine compiled from " + yamlScalar(r.modelName) + "\n";
  text += "pruned_layers: [" + pruned + "]\n";
  text += "rejected_layers:" + named(r, "rejected") + "\nfrozen_layers:" + named(r, "frozen") + "\n";
  text += "policy: " + yamlScalar(r.policy) + "\n";
  text += "thresholds: {weight: " + yamlNumber(r.weightThreshold) + ", forward_l2: " + yamlNumber(r.forwardThreshold) + "}\n";
  text += "nan_mode: " + yamlScalar(r.nanMode) + "\n";
  std::string targets;
  for (auto &t : r.targets) targets += (targets.empty() ? "" : ", ") + yamlScalar(t);
  text += r.targets.size() == 1 ? "target: " + targets + "\n" : "target: [" + targets + "]\n";
  return text + "precision: " + yamlScalar(r.precision) + "\n";
}

std::optional<Format> formatOf(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<Format>>(name)
      .Case("text", Format::Text).Case("json", Format::Json).Case("html", Format::Html).Case("junit", Format::JUnit).Case("sarif", Format::Sarif)
      .Default(std::nullopt);
}

std::optional<Format> formatOfFile(llvm::StringRef path) {
  return llvm::StringSwitch<std::optional<Format>>(path)
      .EndsWith(".txt", Format::Text).EndsWith(".json", Format::Json).EndsWith(".html", Format::Html).EndsWith(".xml", Format::JUnit)
      .EndsWith(".sarif", Format::Sarif).Default(std::nullopt);
}

std::string write(const Report &report, Format format) {
  switch (format) {
  case Format::Text: return toText(report);
  case Format::Json: return toJson(report);
  case Format::Html: return toHtml(report);
  case Format::JUnit: return toJUnit(report);
  case Format::Sarif: return toSarif(report);
  }
  return {};
}

} // namespace tare::report
