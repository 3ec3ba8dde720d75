// The small pieces of the HTML report (HtmlParts.h). In: numbers. Out: markup.
#include "compiler/report/HtmlParts.h"
#include "compiler/report/Writers.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace tare::report::html {

std::string number(const Measured &m) {
  if (m.value) return fmt::format("<span title=\"{}\">{}</span>", shortest(*m.value), brief(*m.value));
  return fmt::format("<span class=\"soft\" title=\"{}\">not measured</span>", escapeMarkup(m.why));
}

std::string breakable(const std::string &name) {
  std::string text, part;
  for (char c : name) {
    part += c;
    if (c != '.' && c != '_' && c != '/') continue;
    text += escapeMarkup(part) + "<wbr>";
    part.clear();
  }
  return text + escapeMarkup(part);
}

std::string badge(const std::string &verdict) { return fmt::format("<span class=\"badge {0}\">{0}</span>", escapeMarkup(verdict)); }

/// Position of a value on the log scale, 0 to 1.
static double position(double value) {
  if (value <= 0) return 0;
  return std::clamp((std::log10(value) + 12) / 16, 0.01, 1.0);
}

std::string logBar(const Measured &m, double threshold) {
  double value = m.value ? std::abs(*m.value) : 0;
  bool fine = m.value && (threshold > 0 ? value < threshold : value == 0);
  double width = !m.value ? 0 : std::isfinite(value) ? position(value) : 1;
  std::string text = fmt::format("<span class=\"track\" title=\"log scale, 1e-12 to 1e4\"><span class=\"fill {}\" style=\"width:{:.1f}%\"></span>", fine ? "good" : "bad", 100 * width);
  if (threshold > 0) text += fmt::format("<span class=\"mark\" style=\"left:{:.1f}%\" title=\"threshold {}\"></span>", 100 * position(threshold), shortest(threshold));
  return text + "</span>";
}

std::string bar(double share, const char *kind) {
  return fmt::format("<span class=\"track\"><span class=\"fill {}\" style=\"width:{:.1f}%\"></span></span>", kind, 100 * std::clamp(std::isfinite(share) ? share : 0, 0.0, 1.0));
}

std::string card(const std::string &label, const std::string &value, const std::string &detail, const char *kind) {
  return fmt::format("<div class=\"card {}\"><div class=\"label\">{}</div><div class=\"value\">{}</div><div class=\"detail\">{}</div></div>\n", kind, label, value, detail);
}

std::string change(const Count &before, const Count &after) {
  if (!before.value || !after.value || *before.value == 0) return "";
  double percent = 100.0 * (static_cast<double>(*after.value) / static_cast<double>(*before.value) - 1);
  return percent == 0 ? "no change" : fmt::format("{}{:.1f}%", percent < 0 ? "\u2212" : "+", std::abs(percent));
}

} // namespace tare::report::html
