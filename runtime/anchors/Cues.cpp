// Cues of cross references and what may stand between them and the designator. In and out: Grammar.h. Holds: the lists are closed (docs/anchors.md, "Types").
#include "runtime/anchors/Grammar.h"

namespace tare::anchors {
namespace {

size_t chineseCue(const View &view, size_t i) {
  static constexpr std::u32string_view pairs[] = {U"参见", U"详见", U"另见", U"参阅", U"参照", U"参考", U"比照", U"根据", U"依据", U"依照", U"按照", U"遵照"};
  for (auto pair : pairs)
    if (size_t end = view.hanWord(i, pair)) return end;
  const char32_t c = view.han(i);
  if (c == U'按' || c == U'依') return i + 1;
  if (c != U'见') return 0;
  size_t at = i;
  if (at > 0 && view.get(at - 1) == '\n') --at;
  const char32_t before = simplified(view.before(at));
  return before != 0 && std::u32string_view(U"意可常罕预主成听看").find(before) != std::u32string_view::npos ? 0 : i + 1;
}

/// The words of `phrase` (separated by single spaces) with gaps between them; behind the last one, or 0.
size_t phrase(const View &view, size_t i, std::string_view phrase) {
  for (;;) {
    const size_t space = phrase.find(' ');
    const size_t end = view.word(i, phrase.substr(0, space));
    if (!end || isLatin(view.get(end)) || isDigit(view.get(end))) return 0;
    if (space == phrase.npos) return end;
    phrase.remove_prefix(space + 1);
    i = view.gap(end);
    if (i == end) return 0;
  }
}

size_t englishCue(const View &view, size_t i) {
  static constexpr std::string_view plain[] = {"see also", "see", "refer to", "refers to", "as per", "per", "under", "pursuant to", "in accordance with",
    "according to", "subject to", "notwithstanding"};
  static constexpr std::string_view withAs[] = {"set out in", "set forth in", "defined in", "described in", "specified in", "stated in", "provided in",
    "contained in", "listed in", "shown in", "referred to in"};
  if (isLatin(view.before(i)) || isDigit(view.before(i))) return 0;
  const char32_t first = lower(view.get(i));
  if (first == 'c') {
    const size_t end = view.word(i, "cf");
    if (end) return view.get(end) == '.' ? end + 1 : 0;
  }
  size_t best = 0;
  for (auto cue : plain)
    if (static_cast<char32_t>(cue[0]) == first) best = std::max(best, phrase(view, i, cue));
  if (best) return best;
  size_t at = i;
  if (first == 'a') {
    const size_t as = phrase(view, i, "as");
    if (!as) return 0;
    at = view.gap(as);
    if (at == as) return 0;
  }
  const char32_t start = lower(view.get(at));
  for (auto cue : withAs)
    if (static_cast<char32_t>(cue[0]) == start)
      if (size_t end = phrase(view, at, cue)) return end;
  return 0;
}

/// Behind the name of a document at `i`, or 0; `unit` says that it was 本条 and its like.
size_t documentName(const View &view, size_t i, bool &unit) {
  static constexpr std::u32string_view names[] = {U"合同", U"协议书", U"协议", U"办法", U"规定", U"条例", U"法", U"标准", U"规范", U"规程", U"手册", U"指南",
    U"方案", U"文件", U"章程", U"细则", U"招标文件", U"说明书", U"租约", U"章", U"节", U"条", U"附件"};
  unit = false;
  const char32_t c = view.han(i);
  if (c == U'《') { // no line longer than a name
    int depth = 0;
    for (size_t at = i, breaks = 0; at < i + 128; ++at) {
      const char32_t k = view.get(at);
      if (k == 0 || (k == '\n' && ++breaks > 1)) return 0;
      if (k == U'《') ++depth;
      if (k == U'》' && --depth == 0) return at + 1;
    }
    return 0;
  }
  for (auto pair : {U"上述", U"前述"})
    if (size_t end = view.hanWord(i, pair)) return end;
  for (auto pair : {U"本条", U"该条", U"前条", U"同条", U"前款", U"本款", U"该款"}) {
    const size_t end = view.hanWord(i, pair);
    // 本条例 is a document.
    if (end && !(view.han(end) == U'例' && pair[1] == U'条')) return unit = true, end;
  }
  if (c != U'本' && c != U'该' && c != U'原' && c != U'主') return 0;
  const size_t at = view.gap(i + 1);
  size_t best = 0;
  for (auto name : names) best = std::max(best, view.hanWord(at, name));
  return best;
}

/// Behind one mark of Markdown or one start tag at `i`; `i` itself when there is none.
size_t mark(const View &view, size_t i) {
  const char32_t c = view.get(i);
  if (c == '[') return i + 1;
  if (c == '*' || c == '_') return i + (view.get(i + 1) == c ? 2 : 1);
  size_t at = i;
  if (at < view.end && view.text.mask[at] == Mask::Tag && view.text.cp[at] == '<' && at + 1 < view.end && isLatin(view.text.cp[at + 1])) {
    for (++at; at < view.end && view.text.mask[at] == Mask::Tag && at < i + 1024; ++at)
      if (view.text.cp[at] == '>') return at + 1;
  }
  return i;
}

} // namespace

size_t cueEnd(const View &view, size_t i) {
  return isLatin(view.get(i)) ? englishCue(view, i) : chineseCue(view, i);
}

std::optional<Reference> crossReference(const View &view, size_t i) {
  const size_t cue = cueEnd(view, i);
  if (!cue) return std::nullopt;
  // What may stand between, tried in this order: nothing, a document's name, an English determiner.
  const size_t start = view.gap(cue);
  bool unit = false;
  size_t at = start;
  if (size_t name = documentName(view, start, unit)) {
    at = view.gap(name);
  } else {
    for (auto word : {"the", "this", "said"})
      if (size_t end = phrase(view, start, word); end && view.gap(end) > end) at = view.gap(end);
  }
  const size_t marked = mark(view, at);
  if (marked != at) at = view.gap(marked);
  auto target = designator(view, at, Context{true, false, unit});
  if (!target) return std::nullopt;
  return Reference{at, std::move(*target)};
}

size_t carriedTo(const View &view, size_t i) {
  // Closing marks of the last reference: `]`, a link's target, emphasis, tags.
  size_t at = i;
  for (; at < view.end && at < i + 1024; ++at) {
    const char32_t c = view.text.cp[at];
    const Mask mask = view.text.mask[at];
    if (mask != Mask::Tag && mask != Mask::Target && !(mask == Mask::None && (c == ']' || c == '*' || c == '_'))) break;
  }
  Joiner joint = joiner(view, at);
  const size_t next = joint.word || (joint.end && !joint.comma) ? joint.end : view.spaces(at);
  if (joint.end && joint.comma) return 0;
  const size_t marked = mark(view, next);
  return marked == next ? next : view.gap(marked);
}

} // namespace tare::anchors
