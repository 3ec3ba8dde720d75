// See Numbers.h.
#include "runtime/anchors/Numbers.h"

namespace tare::anchors {

static int digitValue(char32_t c) {
  switch (c) {
  case U'〇': case U'零': return 0;
  case U'一': case U'壹': return 1;
  case U'二': case U'两': case U'贰': return 2;
  case U'三': case U'叁': return 3;
  case U'四': case U'肆': return 4;
  case U'五': case U'伍': return 5;
  case U'六': case U'陆': return 6;
  case U'七': case U'柒': return 7;
  case U'八': case U'捌': return 8;
  case U'九': case U'玖': return 9;
  default: return -1;
  }
}

/// 10, 100, 1000 for a multiplier; 20 and 30 for the two contracted tens; else 0.
static int unitValue(char32_t c) {
  switch (c) {
  case U'十': case U'拾': return 10;
  case U'百': case U'佰': return 100;
  case U'千': case U'仟': return 1000;
  case U'廿': return 20;
  case U'卅': return 30;
  default: return 0;
  }
}

std::optional<Numeral> chineseNumeral(const View &view, size_t i, bool gaps) {
  constexpr size_t limit = 16;
  char32_t c[limit];
  size_t n = 0, end = i, at = i;
  while (n < limit) {
    char32_t k = view.han(at);
    // 參 folds to the cue's form; here it is the financial three.
    if (k == U'参' && view.get(at) == U'參' && n > 0) k = U'叁';
    if ((digitValue(k) < 0 && unitValue(k) == 0) || (view.flags(at) & Compatibility)) break;
    c[n++] = k;
    end = at + 1;
    at = gaps ? view.gap(end) : end;
  }
  if (n == 0 || n == limit) return std::nullopt;
  bool positional = false;
  for (size_t k = 0; k < n; ++k) positional |= unitValue(c[k]) != 0;
  int64_t value = 0;
  if (!positional) {
    if (n > 9) return std::nullopt;
    for (size_t k = 0; k < n; ++k) value = value * 10 + digitValue(c[k]);
    return Numeral{value, end};
  }
  int64_t digit = -1, lastUnit = 10000;
  for (size_t k = 0; k < n; ++k) {
    int d = digitValue(c[k]), u = unitValue(c[k]);
    if (u == 0) {
      if (d != 0 && digit > 0) return std::nullopt;
      digit = d == 0 ? -1 : d;
      continue;
    }
    if (u == 20 || u == 30) {
      if (digit > 0 || lastUnit <= 10) return std::nullopt;
      value += u, lastUnit = 10, digit = -1;
      continue;
    }
    if (u >= lastUnit || (digit < 0 && u != 10)) return std::nullopt;
    value += (digit < 0 ? 1 : digit) * u, lastUnit = u, digit = -1;
  }
  // 一百二 would be 120 in speech; written designators have 一百零二 or 一百二十.
  if (digit > 0) value += digit;
  return Numeral{value, end};
}

int64_t romanValue(std::string_view s) {
  static constexpr struct { const char *text; int64_t value; } parts[] = {{"M", 1000}, {"CM", 900}, {"D", 500}, {"CD", 400}, {"C", 100}, {"XC", 90}, {"L", 50},
                                                                            {"XL", 40}, {"X", 10}, {"IX", 9}, {"V", 5}, {"IV", 4}, {"I", 1}};
  int64_t value = 0;
  size_t at = 0;
  for (auto &part : parts) {
    std::string_view text = part.text;
    const int most = text.size() == 2 || text == "D" || text == "L" || text == "V" ? 1 : 3;
    for (int k = 0; k < most && s.substr(at, text.size()) == text; ++k) at += text.size(), value += part.value;
  }
  return at == s.size() ? value : 0;
}

static std::string trimmed(std::string digits) {
  size_t zeros = 0;
  while (zeros + 1 < digits.size() && digits[zeros] == '0') ++zeros;
  return digits.substr(zeros);
}

std::optional<Level> level(const View &view, size_t i, bool chinese, bool enclosed) {
  if (view.get(i) != '(') return std::nullopt;
  const bool whole = view.flags(i) & Enclosed;
  if (whole && !enclosed) return std::nullopt;
  size_t at = chinese ? view.gap(i + 1) : i + 1;
  std::string inside;
  if (isDigit(view.get(at))) {
    if (whole) return std::nullopt; // a footnote mark
    while (view.digit(at) && inside.size() < 3) inside += static_cast<char>(view.get(at++));
    if (inside.size() > 2) return std::nullopt;
    inside = trimmed(inside);
  } else if (isLatin(view.get(at)) && !whole) {
    while (isLatin(view.get(at)) && inside.size() < 6) inside += static_cast<char>(view.get(at++));
    bool small = true;
    for (char c : inside) small &= c == 'i' || c == 'v' || c == 'x';
    if (inside.size() > 5 || (inside.size() > 1 && !small)) return std::nullopt;
  } else if (chinese) {
    auto numeral = chineseNumeral(view, at, true);
    if (!numeral) { // a parenthesised ideograph carries the flag on the numeral
      int d = whole ? digitValue(view.han(at)) : -1;
      if (whole && unitValue(view.han(at)) == 10) d = 10;
      if (d < 0) return std::nullopt;
      numeral = Numeral{d, at + 1};
    }
    if (numeral->value > 99) return std::nullopt;
    inside = std::to_string(numeral->value), at = numeral->end;
  } else {
    return std::nullopt;
  }
  if (chinese) at = view.gap(at);
  if (view.get(at) != ')') return std::nullopt;
  return Level{"(" + inside + ")", at + 1};
}

std::optional<Item> digitNumber(const View &view, size_t i, bool gaps, bool letters) {
  auto next = [&](size_t at) { return gaps ? view.gap(at) : at; };
  Item item;
  std::string parts[2];
  size_t count = 0, at = i, length = 0;
  bool plain = true, dash = false;
  for (;;) {
    std::string digits;
    size_t end = at;
    while (view.digit(at) && ++length < 48) digits += static_cast<char>(view.get(at)), end = at + 1, at = next(end);
    if (digits.empty()) break;
    digits = trimmed(digits);
    if (count < 2) parts[count] = digits;
    ++count;
    item.base += digits, item.end = end;
    // One letter: `12A`; not the start of a word.
    if (letters && isLatin(view.get(at)) && !(view.flags(at) & Compatibility) && !isLatin(view.get(next(at + 1))) && !view.digit(at + 1))
      item.base += static_cast<char>(view.get(at)), item.end = ++at, plain = false, at = next(at);
    const char32_t c = view.get(at);
    if ((c != '.' && c != '-') || (view.flags(at) & Compatibility)) break;
    const size_t after = next(at + 1);
    if (!view.digit(after)) break;
    (c == '.' ? item.dotted : dash) = true;
    item.base += static_cast<char>(c), at = after;
  }
  if (item.base.empty() || length >= 48) return std::nullopt;
  if (count == 1 && plain && parts[0].size() < 10) item.integer = std::stoll(parts[0]);
  if (count == 2 && plain && dash && parts[0].size() < 10 && parts[1].size() < 10 && std::stoll(parts[0]) < std::stoll(parts[1]))
    item.low = std::stoll(parts[0]), item.high = std::stoll(parts[1]);
  return item;
}

/// A circled number that is the whole number: all characters of one original.
static std::optional<Item> circledNumber(const View &view, size_t i) {
  if (!(view.flags(i) & (Circled | Enclosed)) || view.get(i) == 0) return std::nullopt;
  Item item;
  std::string inside;
  size_t at = i;
  for (; at < view.end && view.text.byte[at] == view.text.byte[i]; ++at) {
    const char32_t c = view.han(at);
    if (c == '(' || c == ')') continue;
    if (isDigit(c) || isLatin(c)) inside += static_cast<char>(c);
    else if (digitValue(c) >= 0) inside += std::to_string(digitValue(c));
    else if (unitValue(c) == 10) inside += "10";
    else return std::nullopt;
  }
  if (inside.empty()) return std::nullopt;
  item.letter = isLatin(static_cast<char32_t>(inside[0]));
  item.inParens = view.flags(i) & Enclosed;
  (item.inParens ? item.levels : item.base) = item.inParens ? "(" + inside + ")" : inside;
  if (!item.letter && !item.inParens) item.integer = std::stoll(inside);
  item.end = at;
  return item;
}

std::optional<Item> frameNumber(const View &view, size_t i) {
  if (view.flags(i) & (Circled | Enclosed)) return circledNumber(view, i);
  if (auto inner = level(view, i, true, false)) {
    Item item;
    item.inParens = true, item.levels = inner->text, item.end = inner->end;
    item.letter = isLatin(static_cast<char32_t>(inner->text[1]));
    return item;
  }
  if (auto numeral = chineseNumeral(view, i, true)) {
    Item item;
    item.base = std::to_string(numeral->value), item.integer = numeral->value, item.end = numeral->end;
    return item;
  }
  if (view.digit(i)) {
    auto item = digitNumber(view, i, true, true);
    for (int k = 0; item && k < 3; ++k) {
      auto next = level(view, view.gap(item->end), true, false);
      if (!next) break;
      item->levels += next->text, item->end = next->end, item->integer = -1;
    }
    return item;
  }
  if (isLatin(view.get(i)) && !(view.flags(i) & Compatibility) && !isLatin(view.get(i + 1))) {
    Item item;
    item.base = static_cast<char>(view.get(i)), item.letter = true, item.end = i + 1;
    return item;
  }
  return std::nullopt;
}

std::optional<Item> nounNumber(const View &view, size_t i, bool lowerLetters) {
  if (view.flags(i) & (Circled | Enclosed)) {
    auto item = circledNumber(view, i);
    if (item && item->inParens) item->base = item->levels.substr(1, item->levels.size() - 2), item->levels.clear(), item->inParens = false;
    if (item && item->letter) item->base[0] = static_cast<char>(item->base[0] & ~0x20);
    return item;
  }
  const char32_t c = view.get(i);
  if (view.digit(i)) return digitNumber(view, i, false, false);
  if (isLatin(c)) {
    if ((!lowerLetters && c >= 'a') || (isLatin(view.get(i + 1)) && !(view.flags(i + 1) & Compatibility)) || view.digit(i + 1) || (view.flags(i) & Compatibility)) return std::nullopt;
    Item item;
    item.base = static_cast<char>(c & ~0x20u), item.letter = true, item.end = i + 1;
    const char32_t joint = view.get(i + 1);
    if (joint == '.' || joint == '-') {
      if (auto tail = digitNumber(view, i + 2, false, false))
        item.base += static_cast<char>(joint), item.base += tail->base, item.letter = false, item.dotted = true, item.end = tail->end;
    }
    return item;
  }
  if (auto numeral = chineseNumeral(view, i, false)) {
    Item item;
    item.base = std::to_string(numeral->value), item.integer = numeral->value, item.end = numeral->end;
    return item;
  }
  return std::nullopt;
}

} // namespace tare::anchors
