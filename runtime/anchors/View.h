// How the grammar reads the matching form. In: a Text and its end. Out: characters, gaps, words, line starts. Holds: a masked character reads as 0, which
// matches nothing; no step looks further than kGap characters for one gap, so every match is bounded; `steps` counts the characters looked at.
#pragma once
#include "runtime/anchors/Prepare.h"
#include <optional>
#include <string_view>

namespace tare::anchors {

/// The traditional and financial forms of the characters that the grammar knows, as their simplified ones; others stay.
char32_t simplified(char32_t c);
inline bool isIdeograph(char32_t c) { return (c >= 0x3400 && c <= 0x9FFF) || c == 0x3007 || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF); }
inline bool isLatin(char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' && c < 0x80; }
inline bool isDigit(char32_t c) { return c >= '0' && c <= '9'; }
inline char32_t lower(char32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

class View {
public:
  static constexpr size_t kGap = 512, kLineStart = 256;

  View(const Text &text, size_t end, uint64_t &steps) : text(text), end(end), steps(steps) {}

  char32_t get(size_t i) const { return ++steps, i < end && text.mask[i] == Mask::None ? text.cp[i] : 0; }
  /// get() with traditional forms folded.
  char32_t han(size_t i) const { return simplified(get(i)); }
  uint8_t flags(size_t i) const { return i < end ? text.flags[i] : 0; }
  /// A digit that may continue a number.
  bool digit(size_t i) const { return isDigit(get(i)) && !(text.flags[i] & Compatibility); }
  char32_t before(size_t i) const { return i > 0 ? get(i - 1) : 0; }

  /// Behind white space with at most one line break. A blank line is not passed: the second break stands at the result.
  size_t gap(size_t i) const {
    size_t limit = i + kGap;
    bool broken = false;
    for (; i < limit; ++i) {
      const char32_t c = get(i);
      if (c == '\n' && !broken) broken = true;
      else if (c != ' ') break;
    }
    return i;
  }
  /// Behind white space on one line.
  size_t spaces(size_t i) const {
    size_t limit = i + kGap;
    while (i < limit && get(i) == ' ') ++i;
    return i;
  }
  /// Only spaces, quotes of Markdown, list marks, `[`, emphasis and tags stand before `i` on its line.
  bool lineStart(size_t i) const;
  /// Behind `word` (lower-case ASCII letters) at `i`, any case, or 0. A hyphen with a line break inside the word is passed over.
  size_t word(size_t i, std::string_view word) const;
  /// Behind the ideographs of `word` with gaps between them, or 0.
  size_t hanWord(size_t i, std::u32string_view word) const;
  /// The ideographs of `word` stand directly at `i`.
  bool hanAt(size_t i, std::u32string_view word) const;

  const Text &text;
  const size_t end;

private:
  uint64_t &steps;
};

} // namespace tare::anchors
