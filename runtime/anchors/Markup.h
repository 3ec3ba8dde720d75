// Markup of a window: what is hidden from the grammar, and which lines or elements are headings or delimiter rows. In: the matching form from `from` to its
// end, the state at `from`. Out: masks, blocks in text order, the state at `commit`. Holds: no construct looks further than kReach characters, so a window
// with that much text behind `commit` gives the same result as the whole text; time is linear.
#pragma once
#include "runtime/anchors/Prepare.h"
#include <string>

namespace tare::anchors {

/// The furthest that one construct (tag, inline code, heading, delimiter row) may reach. The fuzz target sets it low, so that windows change often.
#ifndef TARE_ANCHORS_REACH
#define TARE_ANCHORS_REACH 4096
#endif
inline constexpr size_t kReach = TARE_ANCHORS_REACH;

struct Block {
  enum Kind : uint8_t { Atx, Setext, Html, Delimiter } kind;
  size_t begin, end;           ///< the span, spaces outside
  size_t titleBegin, titleEnd; ///< of headings
};

/// What goes on from one window to the next.
struct MarkupState {
  enum Raw : uint8_t { None, Pre, Code, Script, Style, Comment } raw = None;
  char32_t fence = 0;       ///< the character of an open code fence
  size_t fenceLength = 0;
  bool midLine = false;     ///< the window begins inside a line
  bool blankBefore = true;  ///< the line before is blank, or there is none
  size_t maskedUntil = 0;   ///< index up to which the last window has already masked
};

/// Finds masks and blocks in [from, end) and returns the state at the first token at or behind `commit`, whose index is `maskedUntil` or `commit`.
MarkupState scanMarkup(Text &text, size_t from, size_t commit, size_t end, const MarkupState &state, std::vector<Block> &blocks, uint64_t &steps);

/// The value of a heading: marks, tags and emphasis gone, white space runs as one space. UTF-8.
std::string headingValue(const Text &text, size_t begin, size_t end);
/// Where the visible title begins: behind spaces, emphasis, `[` and tags.
size_t titleStart(const Text &text, size_t begin, size_t end);

} // namespace tare::anchors
