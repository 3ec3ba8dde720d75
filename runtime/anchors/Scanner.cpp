// See Scanner.h. A window is masked (Markup), then walked once: at a block's begin the block, at a trigger what the network proposes and the grammar confirms.
#include "runtime/anchors/Scanner.h"
#include "runtime/anchors/Network.h"
#include <algorithm>

namespace tare::anchors {
namespace {

constexpr size_t kWindow = 4 * kReach; ///< matched characters that one window decides
constexpr size_t kAhead = 2 * kReach; ///< what it may look at behind them
constexpr size_t kContext = 1024;   ///< what stays of the text before
constexpr size_t kPiece = 16384;    ///< bytes that are prepared at once

/// Ideographs that begin a designator or a cue, traditional forms included.
bool trigger(char32_t c) {
  switch (c) {
  case U'第': case U'附': case U'表': case U'参': case U'參': case U'详': case U'詳': case U'另': case U'见': case U'見': case U'比': case U'根': case U'依':
  case U'按': case U'遵': case U'§':
    return true;
  default: return false;
  }
}

/// Letters that begin an English noun or cue.
constexpr bool letters[26] = {true, false, true, true, true, false, false, false, true, false, false, true, false, true, false, true, false, true, true, true, true, false, false, false, false, false};

} // namespace

void Scanner::feed(const char *data, size_t size) {
  for (size_t at = 0; at < size;) {
    const size_t piece = std::min(kPiece, size - at);
    preparer.feed(reinterpret_cast<const uint8_t *>(data) + at, piece);
    at += piece;
    while (preparer.settled() >= from + kWindow + kAhead) {
      // The border is a line's begin where there is one, so that lines are seen whole.
      size_t commit = from + kWindow;
      while (commit > from + kWindow / 2 && text.cp[commit - 1] != '\n') --commit;
      if (text.cp[commit - 1] != '\n') commit = from + kWindow;
      window(commit, from + kWindow + kAhead);
    }
  }
}

void Scanner::finish() {
  preparer.finish();
  window(text.size(), text.size());
}

void Scanner::window(size_t commit, size_t end) {
  blocks.clear();
  const MarkupState next = scanMarkup(text, from, commit, end, markup, blocks, counts.steps);
  View view(text, end, counts.steps);
  size_t i = std::max(from, resume), block = 0;
  while (i < commit) {
    while (block < blocks.size() && blocks[block].begin < i) ++block;
    if (block < blocks.size() && blocks[block].begin == i) {
      if (size_t behind = blockAt(view, blocks[block])) {
        i = behind;
        continue;
      }
    }
    if (text.mask[i] == Mask::None)
      if (size_t behind = attempt(view, i)) {
        i = behind;
        continue;
      }
    ++i;
  }
  resume = i, from = commit, markup = next;
  // Forget what no later window looks at.
  const size_t keep = from > kContext ? from - kContext : 0;
  if (keep == 0) return;
  text.dropFront(keep);
  preparer.dropped(keep);
  auto back = [keep](size_t &index) { index = index > keep ? index - keep : 0; };
  back(from), back(resume), back(markup.maskedUntil), back(carry);
}

size_t Scanner::report(const View &view, Type type, std::string value, size_t begin, size_t end) {
  ++counts.anchors;
  sink(Anchor{type, std::move(value), text.byteBegin(begin), text.byteEnd(end - 1), text.charBegin(begin), text.charEnd(end - 1)});
  return end;
}

/// Whether the definition leaves the reading of `found` at `i` to sense: a count, a verb, a word at the end of a line before the next line's number.
static bool ambiguous(const View &view, size_t i, const Designator &found, bool lineStart) {
  const char32_t first = view.get(i), next = view.get(found.end), after = view.get(found.end + 1);
  if (first == U'第') return !lineStart && isIdeograph(next);
  for (size_t k = i; k < found.end; ++k)
    if (view.get(k) == '\n') return true;
  const bool wordFollows = next == ' ' && after >= 'a' && after <= 'z';
  if (!isLatin(first) || !wordFollows) return false;
  const char32_t last = view.get(found.end - 1);
  return found.kind == Kind::Annex || found.kind == Kind::Table || (last == 'I' && view.get(found.end - 2) == ' ');
}

size_t Scanner::blockAt(const View &view, const Block &block) {
  if (block.kind == Block::Delimiter) return report(view, Type::Table, "separator", block.begin, block.end);
  // A title that begins with a designator is that designator.
  const size_t title = titleStart(text, block.titleBegin, block.titleEnd);
  if (title < block.titleEnd)
    if (auto found = designator(view, title, Context{false, true, false}))
      if (!options.network || !ambiguous(view, title, *found, true) || Network::proposes(text, title, view.end)) return 0;
  std::string value = headingValue(text, block.titleBegin, block.titleEnd);
  if (value.empty()) return 0;
  return report(view, Type::Heading, std::move(value), block.begin, block.end);
}

/// Network and grammar must agree; the grammar has spoken, the network is asked where the definition alone is not certain.
bool Scanner::proposes(const View &view, size_t i, const Designator &found, bool certain) {
  ++counts.triggers;
  if (options.network && !certain) {
    counts.steps += Network::kSpan;
    ++counts.asked;
    if (!Network::proposes(text, i, view.end)) return false;
  }
  ++counts.proposed;
  return true;
}

/// Behind the anchor that begins at `i`, or 0.
size_t Scanner::attempt(const View &view, size_t i) {
  const char32_t c = text.cp[i];
  const bool carried = carry != 0 && carry == i;
  if (c < 0x80) {
    const char32_t low = c | 0x20;
    const bool begins = low >= 'a' && low <= 'z' && letters[low - 'a'] && !(i > 0 && text.cp[i - 1] < 0x80 && (isLatin(text.cp[i - 1]) || isDigit(text.cp[i - 1])));
    if (!begins && !options.outline) return 0;
    if (!begins) goto designators;
  } else if (!trigger(c)) {
    if (!options.outline) return 0;
    goto designators;
  }
  if (auto reference = crossReference(view, i)) {
    proposes(view, reference->begin, reference->target, true);
    const auto &target = reference->target;
    const char *prefix = target.kind == Kind::Annex ? "annex " : target.kind == Kind::Table ? "table " : "";
    carry = carriedTo(view, target.end);
    return report(view, Type::CrossReference, prefix + target.value, i, target.end);
  }
designators:
  const bool start = (c == U'第' || isLatin(c)) && view.lineStart(i);
  if (auto found = designator(view, i, Context{carried, start, false})) {
    if (!proposes(view, i, *found, carried || !ambiguous(view, i, *found, start))) return 0;
    Type type = found->kind == Kind::Annex ? Type::Annex : found->kind == Kind::Table ? Type::Table : Type::Clause;
    std::string value = found->value;
    if (carried) {
      if (type != Type::Clause) value = (type == Type::Annex ? "annex " : "table ") + value;
      type = Type::CrossReference;
      carry = carriedTo(view, found->end);
    } else if (found->kind == Kind::Division && start) {
      type = Type::Heading;
    }
    return report(view, type, std::move(value), i, found->end);
  }
  if (options.outline)
    if (auto label = outlineLabel(view, i)) return report(view, Type::Outline, label->value, label->begin, label->end);
  return 0;
}

} // namespace tare::anchors
