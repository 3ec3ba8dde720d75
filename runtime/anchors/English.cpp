// English designators: noun, gap, number. In and out: Grammar.h. Holds: no Latin letter or digit stands directly before the noun or after the number; the
// nouns of headings, tables and annexes need a capital unless a cue stands before them (docs/anchors.md, "Designators").
#include "runtime/anchors/Grammar.h"

namespace tare::anchors {
namespace {

enum class Noun : uint8_t { Clause, Chapter, Part, Table, Annex };

struct Found {
  Noun noun;
  bool plural, article, sign; ///< `article`: a lone I, V or X is a Roman number; `sign`: §
  size_t end;
};

struct Word { std::string_view text; Noun noun; };
constexpr Word words[] = {{"section", Noun::Clause}, {"article", Noun::Clause}, {"clause", Noun::Clause}, {"paragraph", Noun::Clause}, {"subsection", Noun::Clause},
  {"subclause", Noun::Clause}, {"subparagraph", Noun::Clause}, {"chapter", Noun::Chapter}, {"part", Noun::Part}, {"table", Noun::Table}, {"annexure", Noun::Annex},
  {"annex", Noun::Annex}, {"appendix", Noun::Annex}, {"exhibit", Noun::Annex}, {"schedule", Noun::Annex}, {"attachment", Noun::Annex}};
constexpr std::string_view abbreviations[] = {"sec", "art", "para"};

bool capital(const View &view, size_t i) { return view.get(i) >= 'A' && view.get(i) <= 'Z'; }
bool wordEnds(const View &view, size_t i) { return !isLatin(view.get(i)); }

/// The noun at `i`, singular or plural.
std::optional<Found> noun(const View &view, size_t i) {
  if (view.get(i) == U'§') {
    const bool two = view.get(i + 1) == U'§';
    return Found{Noun::Clause, two, false, true, i + 1 + two};
  }
  const char32_t first = lower(view.get(i));
  if (first == 0 || std::string_view("sacpte").find(static_cast<char>(first)) == std::string_view::npos || first > 'z') return std::nullopt;
  if (isLatin(view.before(i)) || isDigit(view.before(i))) return std::nullopt;
  for (auto abbreviation : abbreviations) { // Sec. Secs. Art. Arts. Para. Paras.
    if (!capital(view, i)) break;
    size_t end = view.word(i, abbreviation);
    if (!end) continue;
    const bool plural = lower(view.get(end)) == 's';
    end += plural;
    if (view.get(end) == '.') return Found{Noun::Clause, plural, abbreviation == "art", false, end + 1};
  }
  for (auto &word : words) {
    if (word.text[0] != static_cast<char>(first)) continue;
    size_t end = view.word(i, word.text);
    if (!end && word.text.substr(0, 3) == "sub") { // Sub-clause
      end = view.word(i, "sub");
      if (end && view.get(end) == '-') end = view.word(end + 1, word.text.substr(3));
      else end = 0;
    }
    bool plural = false;
    if (word.text == "appendix" && !end) end = view.word(i, "appendices"), plural = end != 0;
    if (!end) continue;
    if (!plural && word.text == "annex" && lower(view.get(end)) == 'e' && lower(view.get(end + 1)) == 's') plural = true, end += 2;
    else if (!plural && lower(view.get(end)) == 's') plural = true, ++end;
    if (!wordEnds(view, end)) continue;
    return Found{word.noun, plural, word.text == "article" || word.noun != Noun::Clause, false, end};
  }
  return std::nullopt;
}

/// Not directly before a Latin letter or digit; a compatibility digit there is a footnote mark.
bool ends(const View &view, size_t i) {
  if (view.flags(i) & Compatibility) return true;
  return !isLatin(view.get(i)) && !isDigit(view.get(i));
}

/// Up to `most` levels, each after at most one space.
std::string levelsAt(const View &view, size_t &end, int most) {
  std::string out;
  for (int k = 0; k < most; ++k) {
    const size_t at = end + (view.get(end) == ' ');
    auto next = level(view, at, false, false);
    if (!next) break;
    out += next->text, end = next->end;
  }
  return out;
}

/// Capitals as a Roman number where the noun takes them, else one capital letter.
std::optional<Item> lettered(const View &view, size_t i, const Found &found) {
  std::string capitals;
  size_t at = i;
  while (capital(view, at) && !(view.flags(at) & Compatibility) && capitals.size() < 16) capitals += static_cast<char>(view.get(at++));
  if (capitals.empty() || !ends(view, at)) return std::nullopt;
  Item item;
  item.end = at;
  const bool roman = capitals.size() > 1 || (found.article && found.noun != Noun::Table && (capitals == "I" || capitals == "V" || capitals == "X"));
  if (roman && found.noun != Noun::Table) {
    const int64_t value = romanValue(capitals);
    if (!value) return std::nullopt;
    item.base = std::to_string(value), item.integer = value, item.roman = true;
    return item;
  }
  if (capitals.size() > 1 || found.noun == Noun::Clause || found.noun == Noun::Chapter) return std::nullopt;
  item.base = capitals, item.letter = true;
  const char32_t joint = view.get(at);
  if (joint == '.' || joint == '-') {
    if (auto tail = digitNumber(view, at + 1, false, false)) item.base += static_cast<char>(joint), item.base += tail->base, item.letter = false, item.end = tail->end;
  }
  return item;
}

/// One number of the noun. Levels only for clauses.
std::optional<Item> number(const View &view, size_t i, const Found &found) {
  std::optional<Item> item;
  if (view.digit(i)) item = digitNumber(view, i, false, found.noun == Noun::Clause || found.noun == Noun::Chapter || found.noun == Noun::Part);
  else if (view.flags(i) & (Circled | Enclosed)) item = nounNumber(view, i, false);
  else if (isLatin(view.get(i))) item = lettered(view, i, found);
  else if (view.get(i) == '(' && found.noun == Noun::Clause) {
    item = Item{};
    item->end = i;
    item->levels = levelsAt(view, item->end, 3);
    if (item->levels.empty()) return std::nullopt;
  }
  if (!item) return std::nullopt;
  if (!ends(view, item->end) && !(item->levels.size())) return std::nullopt;
  if (found.noun == Noun::Clause && item->levels.empty()) item->levels = levelsAt(view, item->end, 3);
  if (!item->levels.empty() && !ends(view, item->end)) return std::nullopt;
  return item;
}

/// `item` without its last level.
std::string shared(const Item &item) { return item.base + item.levels.substr(0, item.levels.rfind('(')); }

struct Numbers {
  std::vector<std::string> values;
  bool range = false;
  size_t end;
};

/// Further members: after a plural noun whole numbers, after a number with levels its last level.
void more(const View &view, const Found &found, const Item &first, Numbers &numbers) {
  bool dash = false;
  const bool plural = found.plural;
  auto follow = [&](size_t at) -> std::optional<Item> {
    if (!first.levels.empty() && view.get(at) == '(') {
      auto next = level(view, at, false, false);
      if (!next || !ends(view, next->end)) return std::nullopt;
      Item item;
      item.base = shared(first), item.levels = next->text, item.end = next->end;
      return item;
    }
    if (!plural) return std::nullopt;
    auto item = number(view, at, found);
    // A letter follows letters, a number follows numbers; `and I` is no member.
    if (item && item->letter != first.letter && item->base.size() == 1 && !isDigit(static_cast<char32_t>(item->base[0]))) return std::nullopt;
    return item;
  };
  if (size_t mark = rangeMark(view, numbers.end, dash)) {
    const bool allowed = !dash || (plural && found.noun == Noun::Clause);
    auto last = allowed ? follow(mark) : std::nullopt;
    if (last) {
      numbers.values.push_back(last->text()), numbers.range = true, numbers.end = last->end;
      return;
    }
  }
  bool closed = false;
  while (numbers.values.size() < 64) {
    Joiner joint = joiner(view, numbers.end);
    if (!joint.end || (closed && !joint.word)) break;
    auto next = follow(joint.end);
    if (!next) break;
    numbers.values.push_back(next->text()), numbers.end = next->end;
    closed |= joint.word;
  }
}

/// Noun and number; with `further` also lists and ranges.
std::optional<std::pair<Found, Numbers>> one(const View &view, size_t i, Context context, bool further) {
  auto found = noun(view, i);
  if (!found) return std::nullopt;
  if (found->noun != Noun::Clause && !context.cue && !capital(view, i)) return std::nullopt;
  const size_t at = view.gap(found->end);
  if (at == found->end && !found->sign && !view.digit(at) && !(view.flags(at) & (Circled | Enclosed))) return std::nullopt;
  auto item = number(view, at, *found);
  if (!item) return std::nullopt;
  // `the article I read`: the pronoun.
  if (item->roman && item->base == "1" && !capital(view, i) && view.get(item->end) == ' ' && view.get(item->end + 1) >= 'a' && view.get(item->end + 1) <= 'z') return std::nullopt;
  Numbers numbers{{}, false, item->end};
  // A dash is a range after a plural clause noun: `Articles 8-10`, `Sections 4.1-4.3`; 12-1 falls and is one number.
  const size_t dash = item->base.find('-');
  if (further && found->plural && found->noun == Noun::Clause && item->levels.empty() && dash != item->base.npos && dash == item->base.rfind('-') &&
      (item->low >= 0 || item->dotted)) {
    numbers.values = {item->base.substr(0, dash), item->base.substr(dash + 1)}, numbers.range = true;
    return std::pair(*found, numbers);
  }
  numbers.values = {item->text()};
  if (further) more(view, *found, *item, numbers);
  return std::pair(*found, numbers);
}

} // namespace

std::optional<Designator> englishDesignator(const View &view, size_t i, Context context) {
  auto first = one(view, i, context, true);
  if (!first) return std::nullopt;
  auto &[found, numbers] = *first;
  const Kind kind = found.noun == Noun::Clause ? Kind::Clause : found.noun == Noun::Table ? Kind::Table : found.noun == Noun::Annex ? Kind::Annex : Kind::Division;
  const std::string prefix = found.noun == Noun::Chapter ? "chapter " : found.noun == Noun::Part ? "part " : "";
  bool dash = false;
  if (size_t mark = numbers.values.size() == 1 ? rangeMark(view, numbers.end, dash) : 0) { // Section 4 to Section 6
    auto second = one(view, mark, Context{context.cue || capital(view, i), false, false}, false);
    if (second && second->first.noun == found.noun && second->first.end - mark == found.end - i && lower(view.get(mark)) == lower(view.get(i)))
      numbers.values.push_back(second->second.values[0]), numbers.range = true, numbers.end = second->second.end;
  }
  return Designator{kind, prefix + listed(numbers.values, numbers.range), numbers.end};
}

std::optional<Designator> designator(const View &view, size_t i, Context context) {
  const char32_t c = view.get(i);
  if (c == U'第' || c == U'附' || c == U'表') return chineseDesignator(view, i, context);
  if (isLatin(c) || c == U'§') return englishDesignator(view, i, context);
  return std::nullopt;
}

} // namespace tare::anchors
