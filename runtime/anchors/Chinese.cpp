// Chinese designators: chains of 第 N unit, annexes, tables. In and out: Grammar.h. Holds: gaps stand between any two characters of a frame, a number outside
// a frame is contiguous; a character that makes another word of the unit ends the match (docs/anchors.md, "Designators").
#include "runtime/anchors/Grammar.h"
#include <initializer_list>

namespace tare::anchors {
namespace {

enum class Unit : uint8_t { Book, Part, Chapter, Section, Article, Paragraph, Item, Point };

struct Frame {
  Unit unit;
  std::vector<Item> items; ///< more than one: a list, or the two ends of a range
  bool range = false;
  bool single() const { return items.size() == 1; }
  size_t end;
};

bool oneOf(char32_t c, std::u32string_view set) { return c != 0 && set.find(c) != set.npos; }

/// What stands directly behind a unit; outside of line starts a wrapped line goes on.
size_t behind(const View &view, size_t i, bool lineStart) {
  if (!lineStart && view.get(i) == '\n' && view.get(i + 1) != '\n') return i + 1;
  return i;
}

/// 条 or 节 counts things, in prose before these nouns.
bool measured(const View &view, size_t i, Context context) {
  if (context.cue || context.lineStart) return false;
  static constexpr std::u32string_view nouns[] = {U"消息", U"短信", U"微博", U"新闻", U"评论", U"留言", U"推送", U"线索", U"生产线", U"产线", U"流水线", U"跑道", U"航线",
    U"车道", U"鱼", U"船", U"记录", U"纪录", U"数据", U"建议", U"意见", U"课", U"车厢", U"电池", U"比赛"};
  i = behind(view, i, false);
  for (auto noun : nouns)
    if (view.hanAt(i, noun)) return true;
  return false;
}

/// The unit at `i` and its end, unless the characters form another word.
std::optional<std::pair<Unit, size_t>> unitAt(const View &view, size_t i, Context context) {
  const char32_t c = view.han(i);
  const char32_t next = view.han(behind(view, i + 1, context.lineStart));
  switch (c) {
  case U'条': {
    if (oneOf(next, U"件例码形纹目理") || measured(view, i + 1, context)) return std::nullopt;
    const size_t money = view.spaces(i + 1); // 条款 is the unit as well
    if (view.han(money) == U'款' && !oneOf(view.han(money + 1), U"项式")) return std::pair(Unit::Article, money + 1);
    return std::pair(Unit::Article, i + 1);
  }
  case U'款': return oneOf(next, U"项式") ? std::nullopt : std::optional(std::pair(Unit::Paragraph, i + 1));
  case U'项': return next == U'目' ? std::nullopt : std::optional(std::pair(Unit::Item, i + 1));
  case U'目': return std::pair(Unit::Point, i + 1);
  case U'编': return oneOf(next, U"辑号制码程") ? std::nullopt : std::optional(std::pair(Unit::Book, i + 1));
  case U'章': return next == U'程' ? std::nullopt : std::optional(std::pair(Unit::Chapter, i + 1));
  case U'节':
    if (oneOf(next, U"点能约目日奏假") || measured(view, i + 1, context)) return std::nullopt;
    return std::pair(Unit::Section, i + 1);
  case U'部': {
    const size_t second = view.gap(i + 1);
    if (view.han(second) != U'分' || !(context.cue || context.lineStart)) return std::nullopt;
    return std::pair(Unit::Part, second + 1);
  }
  default: return std::nullopt;
  }
}

/// The value of one member at a unit: levels in parentheses for 款, 项, 目.
bool fits(const Item &item, Unit unit) {
  if (unit == Unit::Article) return !item.letter;
  if (unit >= Unit::Paragraph) return true;
  return !item.letter && (item.inParens || item.levels.empty());
}
std::string inner(const Item &item) { return item.inParens ? item.levels.substr(1, item.levels.size() - 2) : item.base; }

/// 第 N unit, with lists and ranges of N.
std::optional<Frame> frame(const View &view, size_t i, Context context) {
  if (view.get(i) != U'第') return std::nullopt;
  size_t at = view.gap(i + 1);
  Frame result{Unit::Article, {}, false, 0};
  for (;;) {
    auto item = frameNumber(view, at);
    if (!item) return std::nullopt;
    at = view.gap(item->end);
    // `3-5` is a range when the integers rise.
    if (result.items.empty() && item->low >= 0 && unitAt(view, at, context)) {
      Item low, high;
      low.base = std::to_string(item->low), low.integer = item->low, high.base = std::to_string(item->high), high.integer = item->high;
      result.items = {low, high}, result.range = true;
    } else {
      const bool inParens = item->inParens;
      result.items.push_back(std::move(*item));
      if (result.range && result.items.size() > 2) return std::nullopt;
      if (inParens != result.items.front().inParens) return std::nullopt;
    }
    if (auto unit = unitAt(view, at, context)) {
      for (auto &one : result.items)
        if (!fits(one, unit->first)) return std::nullopt;
      result.unit = unit->first, result.end = unit->second;
      return result;
    }
    if (result.items.size() > 64) return std::nullopt;
    bool dash = false;
    if (size_t mark = rangeMark(view, at, dash); mark && result.items.size() == 1) {
      result.range = true, at = mark;
    } else if (Joiner joint = joiner(view, at); joint.end && !result.range) {
      at = joint.end;
    } else {
      return std::nullopt;
    }
    if (view.get(at) == U'第') { // 第一至第五条
      if (result.items.size() > 16) return std::nullopt;
      at = view.gap(at + 1);
    }
    if (dash) { // 第三-五条: only when it rises
      auto high = frameNumber(view, at);
      if (!high || high->integer <= result.items.front().integer || result.items.front().integer < 0) return std::nullopt;
    }
  }
}

/// 之一, 之二, 之1: the number behind 之 and its end. 之一般 and its like are other words.
std::optional<Numeral> insertion(const View &view, size_t i) {
  size_t at = view.spaces(i);
  if (view.get(at) != U'之') return std::nullopt;
  at = view.spaces(at + 1);
  auto numeral = chineseNumeral(view, at, false);
  if (view.digit(at)) {
    auto digits = digitNumber(view, at, false, false);
    if (digits && digits->integer > 0 && digits->integer < 100 && view.get(digits->end) != '%') numeral = Numeral{digits->integer, digits->end};
  }
  if (!numeral || oneOf(view.han(numeral->end), U"般切致旦些部种类间个名年月日次方倍")) return std::nullopt;
  return numeral;
}

std::string levelOf(const Item &item) { return item.inParens ? item.levels : "(" + item.base + ")" + item.levels; }
bool rises(const Item &a, const Item &b) { return a.integer < 0 || b.integer < 0 || a.integer < b.integer; }

/// What follows 条 or a 款 that stands alone: frames of 款, 项, 目 and bare (N). `values` are extended; a list ends the chain.
void levels(const View &view, size_t &end, Unit last, std::vector<std::string> &values, bool &range) {
  for (int depth = 0; depth < 3; ++depth) {
    const std::string shared = values.front();
    // 第 N unit of a smaller unit.
    size_t at = view.gap(end);
    if (auto next = frame(view, at, Context{true, false, false}); next && next->unit > last) {
      values.clear();
      for (auto &item : next->items) values.push_back(shared + levelOf(item));
      end = next->end, last = next->unit, range = next->range;
      if (!next->single()) return;
      bool dash = false;
      if (size_t mark = rangeMark(view, end, dash)) { // 第二款至第五款
        auto other = frame(view, mark, Context{true, false, false});
        if (other && other->single() && other->unit == next->unit && rises(next->items[0], other->items[0])) {
          values.push_back(shared + levelOf(other->items[0]));
          end = other->end, range = true;
          return;
        }
      }
      continue;
    }
    // (N), (N)项: directly behind, or with a gap when its unit follows.
    auto bare = level(view, at, true, true);
    if (!bare) return;
    std::vector<std::string> members{bare->text};
    size_t to = bare->end;
    bool isRange = false;
    for (;;) { // （一）、（二）
      bool dash = false;
      size_t next = 0;
      if (size_t mark = rangeMark(view, to, dash); mark && members.size() == 1 && !dash) next = mark, isRange = true;
      else if (Joiner joint = joiner(view, to); joint.end && !isRange) next = joint.end;
      auto member = next ? level(view, next, true, true) : std::nullopt;
      if (!member || members.size() > 64) {
        if (members.size() == 1) isRange = false;
        break;
      }
      members.push_back(member->text), to = member->end;
    }
    const size_t unit = view.gap(to);
    const char32_t u = view.han(unit);
    const bool named = (u == U'款' && !oneOf(view.han(unit + 1), U"项式")) || (u == U'项' && view.han(unit + 1) != U'目') || u == U'目';
    if (!named && at != end) return;
    if (named) to = unit + 1;
    values.clear();
    for (auto &member : members) values.push_back(shared + member);
    end = to, range = isRange;
    if (members.size() > 1) return;
    last = named ? (u == U'款' ? Unit::Paragraph : u == U'项' ? Unit::Item : Unit::Point) : last;
  }
}

std::string divisionName(Unit unit) { return unit == Unit::Chapter ? "chapter " : unit == Unit::Section ? "section " : "part "; }
/// Height in a chain: 编 and 部分 above 章 above 节 above 条.
int height(Unit unit) { return unit <= Unit::Part ? 0 : unit == Unit::Chapter ? 1 : unit == Unit::Section ? 2 : unit == Unit::Article ? 3 : 4; }

struct Chain {
  std::vector<std::string> values;
  bool range = false, division = false;
  Unit first;
  size_t end;
};

std::optional<Chain> oneChain(const View &view, size_t i, Context context) {
  auto top = frame(view, i, context);
  if (!top) return std::nullopt;
  Chain chain{{}, top->range, false, top->unit, top->end};
  std::string divisions;
  while (top->unit < Unit::Article) {
    chain.division = true, chain.end = top->end;
    std::vector<std::string> members;
    for (auto &item : top->items) members.push_back(inner(item));
    divisions += (divisions.empty() ? "" : " ") + divisionName(top->unit) + listed(members, top->range);
    if (!top->single()) break;
    auto next = frame(view, view.spaces(top->end), Context{true, context.lineStart, false});
    if (!next || height(next->unit) <= height(top->unit) || next->unit > Unit::Article) break;
    if (next->unit == Unit::Article && measured(view, next->end, context)) break;
    top = std::move(next), chain.division = false;
  }
  if (top->unit < Unit::Article) {
    chain.values = {divisions}, chain.range = false, chain.division = true;
    return chain;
  }
  chain.division = false, chain.end = top->end, chain.range = top->range;
  if (top->unit == Unit::Article) {
    for (auto &item : top->items) chain.values.push_back(item.inParens ? inner(item) : item.text());
    if (!top->single()) return chain;
    if (auto after = insertion(view, chain.end)) chain.values[0] += "-" + std::to_string(after->value), chain.end = after->end;
    levels(view, chain.end, Unit::Article, chain.values, chain.range);
    return chain;
  }
  // 款, 项, 目 without 条.
  for (auto &item : top->items)
    if (!(item.dotted || item.inParens || context.afterUnit)) return std::nullopt;
  for (auto &item : top->items) chain.values.push_back(item.dotted && !item.inParens ? item.text() : levelOf(item));
  if (top->single()) levels(view, chain.end, top->unit, chain.values, chain.range);
  return chain;
}

} // namespace

std::optional<Designator> chain(const View &view, size_t i, Context context) {
  auto first = oneChain(view, i, context);
  if (!first) return std::nullopt;
  const Kind kind = first->division ? Kind::Division : Kind::Clause;
  if (first->values.size() == 1) { // 第3条至第5条, 第三章至第五章
    bool dash = false;
    size_t mark = rangeMark(view, first->end, dash);
    auto second = mark ? oneChain(view, mark, Context{true, false, context.afterUnit}) : std::nullopt;
    if (second && second->first == first->first && second->values.size() == 1 && second->division == first->division) {
      std::string to = second->values[0];
      if (first->division) to = to.substr(to.rfind(' ') + 1);
      return Designator{kind, first->values[0] + ".." + to, second->end};
    }
  }
  return Designator{kind, listed(first->values, first->range), first->end};
}

bool unitBefore(const View &view, size_t i) {
  size_t at = i, steps = 0;
  while (at > 0 && steps < 32 && (view.get(at - 1) == ' ' || view.get(at - 1) == '\n')) --at, ++steps;
  if (at < 2) return false;
  const char32_t unit = view.han(at - 1), which = view.han(at - 2);
  return (unit == U'条' && oneOf(which, U"本该前同")) || (unit == U'款' && oneOf(which, U"前本该"));
}

namespace {

/// 份, 个 and the like: the number counted things. With `member` also what a second number of a list may count.
bool counts(const View &view, size_t i, bool member) {
  const char32_t c = view.han(i);
  if (oneOf(c, U"份个张页件册套")) return true;
  return member && oneOf(c, U"方日天年月次名人种类级期项条款家者倍元万米周时分季楼层号位点台只款%式些般切旦起");
}

bool date(const View &view, const Item &item) {
  const char32_t c = view.han(item.end);
  return (c == U'年' && item.base.size() == 4) || (c == U'月' && item.integer >= 1 && item.integer <= 12);
}

/// One number behind an annex or table noun.
std::optional<Item> member(const View &view, size_t i, bool annex, bool later) {
  auto item = nounNumber(view, i, annex);
  if (!item || counts(view, item->end, later) || date(view, *item)) return std::nullopt;
  const char32_t next = view.get(item->end);
  if (isDigit(next) && !(view.flags(item->end) & Compatibility)) return std::nullopt;
  if (isLatin(next) && !(view.flags(item->end) & Compatibility) && !isLatin(view.get(item->end + 1))) return std::nullopt;
  return item;
}

/// Behind the noun (附件, 附录, 附表; 表) at `i`, or 0.
size_t nounEnd(const View &view, size_t i, bool annex) {
  if (!annex) return view.get(i) == U'表' ? i + 1 : 0;
  if (view.get(i) != U'附') return 0;
  const size_t second = view.gap(i + 1);
  return oneOf(view.han(second), U"件录表") ? second + 1 : 0;
}

std::optional<Designator> nounDesignator(const View &view, size_t i, bool annex) {
  const size_t noun = nounEnd(view, i, annex);
  if (!noun) return std::nullopt;
  auto first = member(view, view.gap(noun), annex, false);
  if (!first) return std::nullopt;
  std::vector<std::string> values{first->base};
  size_t end = first->end;
  bool range = false, dash = false;
  if (size_t mark = rangeMark(view, end, dash)) { // 附件二至附件四, 附件一至九
    const size_t again = nounEnd(view, mark, annex);
    auto last = again ? member(view, view.gap(again), annex, false) : dash ? std::nullopt : member(view, mark, annex, true);
    if (last) return Designator{annex ? Kind::Annex : Kind::Table, listed({first->base, last->base}, true), last->end};
  }
  while (values.size() < 64) { // 附件一、二
    Joiner joint = joiner(view, end);
    if (!joint.end) break;
    auto next = member(view, joint.end, annex, true);
    // After a comma prose goes on: the member must end there.
    if (!next || (joint.comma && isIdeograph(view.get(next->end)) && !joiner(view, next->end).end)) break;
    values.push_back(next->base), end = next->end;
  }
  return Designator{annex ? Kind::Annex : Kind::Table, listed(values, range), end};
}

} // namespace

std::optional<Designator> chineseDesignator(const View &view, size_t i, Context context) {
  switch (view.get(i)) {
  case U'第': {
    context.afterUnit |= unitBefore(view, i);
    return chain(view, i, context);
  }
  case U'附': return nounDesignator(view, i, true);
  case U'表': {
    const char32_t before = simplified(view.before(i));
    if (!context.cue && isIdeograph(before) && !oneOf(before, U"和与及或至到在由从以于对即为是将把用的该续如同合足查入据并而但则除自若因比")) return std::nullopt;
    return nounDesignator(view, i, false);
  }
  default: return std::nullopt;
  }
}

std::string listed(const std::vector<std::string> &members, bool range) {
  std::string out;
  for (auto &member : members) out += (out.empty() ? "" : range ? ".." : ",") + member;
  return out;
}

size_t rangeMark(const View &view, size_t i, bool &dash) {
  const size_t at = view.gap(i);
  const char32_t c = view.get(at);
  dash = c == '-';
  if (c == U'至' || c == U'到' || c == '~') return view.gap(at + 1);
  if (dash && view.get(at + 1) != '-') return view.gap(at + 1);
  if (at == i) return 0; // the words need a space
  size_t end = view.word(at, "to");
  if (!end) end = view.word(at, "through");
  const size_t to = end ? view.gap(end) : 0;
  return to > end ? to : 0;
}

Joiner joiner(const View &view, size_t i) {
  size_t at = view.gap(i);
  Joiner result;
  const char32_t c = view.han(at);
  if (c == U'、' || c == ',') {
    result.comma = c == ',', at = view.gap(at + 1);
    result.end = at;
  }
  const char32_t d = view.han(at);
  if (d == U'以' && view.han(view.gap(at + 1)) == U'及') return {view.gap(view.gap(at + 1) + 1), false, true};
  if (d == U'和' || d == U'与' || d == U'及' || d == U'或') return {view.gap(at + 1), false, true};
  if (!isLatin(d) || isLatin(view.before(at)) || isDigit(view.before(at))) return result;
  size_t end = view.word(at, "and");
  if (!end) end = view.word(at, "or");
  if (end && !isLatin(view.get(end)) && !isDigit(view.get(end))) return {view.gap(end), false, true};
  return result;
}

} // namespace tare::anchors
