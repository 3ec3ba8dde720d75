// The report as JUnit XML for CI dashboards. In: a Report. Out: one test case per candidate: pruned passes, rejected fails with its line, frozen is
// skipped. Holds: well-formed XML 1.0 whatever the names are; no time stamps, so that equal reports are equal bytes.
#include "compiler/report/Writers.h"
#include <fmt/format.h>

namespace tare::report {

std::string toJUnit(const Report &r) {
  std::string model = escapeMarkup(r.modelName);
  std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"0\"", r.candidates.size(), r.count("rejected"), r.count("frozen"));
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format("<testsuites name=\"tare\" {}>\n  <testsuite name=\"tare.pruning.{}\" {}>\n", counts, model, counts);
  xml += fmt::format("    <properties>\n      <property name=\"policy\" value=\"{}\"/>\n      <property name=\"zero_rate\" value=\"{}\"/>\n"
                     "      <property name=\"model.sha256\" value=\"{}\"/>\n    </properties>\n",
                     escapeMarkup(r.policy), shortest(r.zeroRate()), escapeMarkup(r.modelSha256));
  for (auto &c : r.candidates) {
    xml += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\">\n", escapeMarkup(c.role), escapeMarkup(c.name));
    if (c.verdict == "rejected") xml += fmt::format("      <failure type=\"{}\" message=\"{}\"/>\n", escapeMarkup(c.code), escapeMarkup(c.line.empty() ? c.code : c.line));
    if (c.verdict == "frozen") xml += fmt::format("      <skipped message=\"{}\"/>\n", escapeMarkup(c.line.empty() ? c.code : c.line));
    if (c.verdict == "pruned") xml += fmt::format("      <system-out>pruned, {}; max |w| {}, forward L2 {}</system-out>\n", escapeMarkup(c.basis), brief(c.weights.maxAbs), c.forward.value ? brief(*c.forward.value) : "not measured");
    xml += "    </testcase>\n";
  }
  return xml + "  </testsuite>\n</testsuites>\n";
}

} // namespace tare::report
