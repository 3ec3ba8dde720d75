// Bare outline labels, an opt-in type. In: a View and a position. Out: the label's value and end. Holds: a label begins its line and something follows it,
// or a cue stands before a bare dotted number (`见5.3`); decimals, dates and prices in prose are none.
#include "runtime/anchors/Scanner.h"

namespace tare::anchors {

static bool separates(char32_t c) { return c == ' ' || c == '\n' || c == 0 || isIdeograph(c); }

std::optional<Outline> outlineLabel(const View &view, size_t i) {
  const char32_t c = view.get(i);
  if (isIdeograph(c) || isLatin(c)) {
    if (size_t cue = cueEnd(view, i)) {
      const size_t at = view.gap(cue);
      auto number = view.digit(at) ? digitNumber(view, at, false, false) : std::nullopt;
      if (number && number->dotted && !isLatin(view.get(number->end)) && view.get(number->end) != '%') return Outline{number->base, i, number->end};
    }
  }
  if (!view.digit(i) && c != '(' && !isIdeograph(c)) return std::nullopt;
  // The label is the first visible thing on its line.
  size_t back = i;
  while (back > 0 && i - back < 64 && view.get(back - 1) == ' ') --back;
  if (back > 0 && view.get(back - 1) != '\n') return std::nullopt;
  if (auto inner = level(view, i, true, true)) return Outline{inner->text, i, inner->end};
  if (view.digit(i)) {
    auto number = digitNumber(view, i, false, false);
    if (!number) return std::nullopt;
    size_t end = number->end;
    const char32_t next = view.get(end);
    if (next == '.' || next == U'、' || next == ')') ++end;
    else if (!number->dotted) return std::nullopt;
    if (!separates(view.get(end)) || view.han(end) == U'年' || number->base.find('-') != std::string::npos) return std::nullopt;
    return Outline{number->base, i, end};
  }
  auto numeral = chineseNumeral(view, i, false);
  if (!numeral) return std::nullopt;
  const char32_t next = view.get(numeral->end);
  if (next != U'、' && next != '.') return std::nullopt;
  return Outline{std::to_string(numeral->value), i, numeral->end + 1};
}

} // namespace tare::anchors
