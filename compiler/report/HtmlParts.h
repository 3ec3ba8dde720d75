// Building blocks of the HTML report. In: numbers and names. Out: markup, every name escaped. Holds: no script, no external resource, colours only through
// the CSS variables of HtmlStyle.cpp, so that light and dark work alike.
#pragma once
#include "compiler/report/Report.h"
#include <string>

namespace tare::report::html {

/// The style sheet.
const char *style();
/// A number with four significant digits and the exact one as tooltip; "not measured" with its why as tooltip.
std::string number(const Measured &value);
/// "pruned", "rejected", "frozen" as a coloured label.
/// A module path or tensor name, escaped, that may break after its dots and underscores.
std::string breakable(const std::string &name);
std::string badge(const std::string &verdict);
/// A log-scale bar from 1e-12 to 1e4 with a mark at the threshold; a zero has an empty bar. `threshold` 0: exact zero is wanted, no mark.
std::string logBar(const Measured &value, double threshold);
/// A linear bar, `share` in [0, 1].
std::string bar(double share, const char *kind);
/// One card of the summary.
std::string card(const std::string &label, const std::string &value, const std::string &detail, const char *kind = "");
/// "-12.3%" from two counts, "" when one is absent.
std::string change(const Count &before, const Count &after);

/// The page's sections.
std::string summary(const Report &report);
std::string candidates(const Report &report, const std::vector<Candidate> &list);
std::string evidence(const Report &report, const Candidate &candidate);
std::string estimates(const Report &report);
std::string heatmap(const Report &report);
std::string picture(const Report &report);
std::string checks(const Report &report);
std::string cuda(const Cuda &cuda);

} // namespace tare::report::html
