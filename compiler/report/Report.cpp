// Small derived values of a report and numbers as text. In: a Report, numbers. Out: rates, counts and strings that are the same in every locale.
#include "compiler/report/Report.h"
#include <algorithm>
#include <fmt/format.h>

namespace tare::report {

double Report::zeroRate() const {
  return candidates.empty() ? 0.0 : static_cast<double>(count("pruned")) / static_cast<double>(candidates.size());
}

int64_t Report::count(const std::string &verdict) const {
  return std::count_if(candidates.begin(), candidates.end(), [&](const Candidate &c) { return c.verdict == verdict; });
}

std::string grouped(int64_t value) {
  std::string digits = fmt::format("{}", value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return value < 0 ? "-" + digits : digits;
}

static std::string scaled(double value, double step, std::initializer_list<const char *> units, const char *plain) {
  auto unit = units.begin();
  if (value < step) return fmt::format("{:.0f}{}", value, plain);
  value /= step;
  while (value >= step && unit + 1 != units.end()) value /= step, ++unit;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, *unit);
}

std::string readableCount(std::optional<int64_t> value) {
  return value ? scaled(static_cast<double>(*value), 1000, {"k", "M", "G", "T", "P"}, "") : "-";
}
std::string readableBytes(std::optional<int64_t> value) {
  return value ? scaled(static_cast<double>(*value), 1024, {"KiB", "MiB", "GiB", "TiB"}, " B") : "-";
}
std::string shortest(double value) { return fmt::format("{}", value); }
std::string brief(double value) { return fmt::format("{:.4g}", value); }
std::string percents(const std::vector<double> &values) {
  std::string text;
  for (double value : values) text += (text.empty() ? "" : " ") + brief(value);
  return values.empty() ? "-" : text;
}

} // namespace tare::report
