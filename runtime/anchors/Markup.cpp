// See Markup.h. Lines first (fences, headings, delimiter rows), then what stands inside a line or runs over lines, by one special character at a time.
#include "runtime/anchors/Markup.h"
#include "runtime/anchors/View.h"
#include <algorithm>
#include <array>

namespace tare::anchors {
namespace {

constexpr size_t kHeading = 1024; ///< the longest element <h1>..<h6>

/// Characters that can begin or end markup.
constexpr std::array<bool, 128> special = [] {
  std::array<bool, 128> set{};
  for (char c : {'\n', '`', '<', ']', '@', ':', 'w', 'W'}) set[static_cast<size_t>(c)] = true;
  return set;
}();

bool breaksValue(char32_t c) { return c == '"' || c == '\'' || c == '=' || c == '<' || c == '>' || c == '`'; }

class Scan {
public:
  Scan(Text &text, size_t from, size_t commit, size_t end, const MarkupState &state, std::vector<Block> &blocks, uint64_t &steps)
      : text(text), from(from), commit(commit), end(end), state(state), blocks(blocks), steps(steps) {}

  MarkupState run() {
    size_t i = std::max(from, state.maskedUntil);
    std::fill(text.mask.get() + std::min(i, end), text.mask.get() + end, Mask::None);
    bool atLine = !state.midLine;
    while (i < end) {
      snapshot(i, !atLine);
      if (state.raw != MarkupState::None) {
        i = rawText(i), atLine = i > 0 && text.cp[i - 1] == '\n';
        continue;
      }
      if (atLine) {
        atLine = false;
        if (size_t next = line(i)) {
          i = next, atLine = true;
          continue;
        }
      }
      // Most characters begin nothing.
      const size_t stop = i < commit ? std::min(commit, end) : end, begin = i;
      while (i < stop && (text.cp[i] >= 128 || !special[text.cp[i]])) ++i;
      steps += i - begin;
      if (i == stop) continue;
      const char32_t c = text.cp[i];
      ++steps;
      if (c == '\n') state.blankBefore = blank(i), atLine = true, ++i;
      else i = inLine(i);
      if (i > 0 && i <= end && text.cp[i - 1] == '\n') atLine = true;
    }
    snapshot(end, !atLine);
    return taken;
  }

private:
  char32_t raw(size_t i) const { return i < end && (text.flags[i] & Ascii) ? text.cp[i] : 0; }
  char32_t at(size_t i) const { return i < end ? text.cp[i] : 0; }
  void mask(size_t a, size_t b, Mask kind) { std::fill(text.mask.get() + a, text.mask.get() + std::min(b, end), kind); }

  /// Keeps the state of the first token at or behind `commit`.
  void snapshot(size_t i, bool midLine) {
    if (snapped || i < commit) return;
    snapped = true;
    taken = state, taken.midLine = midLine, taken.maskedUntil = i;
  }

  /// The line that ends with the break at `i` has no visible character.
  bool blank(size_t i) const {
    while (i > 0 && text.cp[i - 1] == ' ') --i;
    return i == 0 || text.cp[i - 1] == '\n';
  }

  /// The end of the line that begins at `i`, without its break; end + 1 when it is longer than kReach.
  size_t lineEnd(size_t i) {
    const size_t limit = std::min(end, i + kReach);
    while (i < limit && text.cp[i] != '\n') ++i, ++steps;
    return i < limit || i == end ? i : end + 1;
  }

  /// Structure of the line that begins at `i`: the begin of the next line when this one is done with, else 0.
  size_t line(size_t i) {
    size_t k = i;
    while (at(k) == ' ' && k < i + 64) ++k;
    const char32_t c = at(k);
    if (state.fence) return fenced(i, k);
    // Fences may stand in lists and quotes.
    size_t f = k;
    while ((at(f) == '>' || ((at(f) == '-' || at(f) == '*' || at(f) == '+') && at(f + 1) == ' ')) && f < k + 32)
      for (++f; at(f) == ' ';) ++f;
    if (raw(f) == '`' || raw(f) == '~')
      if (size_t next = opening(i, f)) return next;
    if (c == '#' && k - i <= 3) return atx(i, k);
    if (c == '|' || c == '-' || c == ':')
      if (size_t next = delimiter(i, k)) return next;
    if (state.blankBefore && c != 0 && c != '\n') return setext(i, k);
    return 0;
  }

  size_t run(size_t i, char32_t c) const {
    size_t k = i;
    while (k < end && raw(k) == c) ++k;
    return k - i;
  }

  size_t past(size_t lineEnd) const { return std::min(end, lineEnd + 1); }

  size_t opening(size_t i, size_t k) {
    const size_t length = run(k, raw(k));
    if (length < 3) return 0;
    const size_t stop = lineEnd(i);
    if (stop > end) return 0;
    if (raw(k) == '`')
      for (size_t j = k + length; j < stop; ++j)
        if (raw(j) == '`') return 0;
    state.fence = raw(k), state.fenceLength = length, state.blankBefore = false;
    mask(i, past(stop), Mask::Hidden);
    return past(stop);
  }

  size_t fenced(size_t i, size_t k) {
    while (at(k) == '>') for (++k; at(k) == ' ';) ++k;
    size_t stop = i;
    while (stop < end && text.cp[stop] != '\n') ++stop, ++steps;
    const size_t length = run(k, state.fence);
    if (length >= state.fenceLength) {
      size_t rest = k + length;
      while (at(rest) == ' ') ++rest;
      if (rest >= stop) state.fence = 0;
    }
    mask(i, past(stop), Mask::Hidden);
    state.blankBefore = false;
    return past(stop);
  }

  size_t atx(size_t i, size_t k) {
    size_t title = k;
    while (at(title) == '#') ++title;
    if (title - k > 6 || at(title) != ' ') return 0;
    const size_t stop = lineEnd(i);
    if (stop > end) return 0;
    size_t last = stop;
    while (last > title && text.cp[last - 1] == ' ') --last;
    while (title < last && text.cp[title] == ' ') ++title;
    size_t titleEnd = last;
    while (titleEnd > title && text.cp[titleEnd - 1] == '#') --titleEnd;
    if (titleEnd != last && titleEnd > title && text.cp[titleEnd - 1] != ' ') titleEnd = last; // `# C#`
    while (titleEnd > title && text.cp[titleEnd - 1] == ' ') --titleEnd;
    if (titleEnd > title) blocks.push_back({Block::Atx, k, last, title, titleEnd});
    return 0;
  }

  size_t delimiter(size_t i, size_t k) {
    const size_t stop = lineEnd(i);
    if (stop > end) return 0;
    size_t last = stop, j = k, bars = 0;
    while (last > k && text.cp[last - 1] == ' ') --last;
    if (at(j) == '|') ++bars, ++j;
    bool any = false;
    while (j < last) {
      while (j < last && text.cp[j] == ' ') ++j;
      if (j == last && any) break;
      if (at(j) == ':') ++j;
      size_t dashes = 0;
      while (j < last && text.cp[j] == '-') ++j, ++dashes;
      if (dashes < 3) return 0;
      if (j < last && text.cp[j] == ':') ++j;
      while (j < last && text.cp[j] == ' ') ++j;
      any = true;
      if (j == last) break;
      if (text.cp[j] != '|') return 0;
      ++bars, ++j;
    }
    if (!any || !bars) return 0;
    blocks.push_back({Block::Delimiter, k, last, k, k});
    state.blankBefore = false;
    return past(stop);
  }

  size_t setext(size_t i, size_t k) {
    const size_t stop = lineEnd(i);
    if (stop >= end) return 0;
    size_t u = stop + 1;
    while (at(u) == ' ' && u < stop + 5) ++u;
    if (u - stop > 4 || at(u) != '=') return 0;
    size_t under = u;
    while (at(under) == '=' && under < u + kReach) ++under;
    size_t rest = under;
    while (at(rest) == ' ' && rest < under + kReach) ++rest;
    if (under - u < 3 || (rest < end && text.cp[rest] != '\n')) return 0;
    size_t last = stop;
    while (last > k && text.cp[last - 1] == ' ') --last;
    if (last > k) blocks.push_back({Block::Setext, k, under, k, last});
    return 0;
  }

  /// One special character: behind what it begins.
  size_t inLine(size_t i) {
    switch (raw(i)) {
    case '`': return code(i);
    case '<': return angle(i);
    case ']': return raw(i + 1) == '(' ? target(i) : i + 1;
    case '@': return mail(i);
    case ':': return address(i);
    case 'w': case 'W':
      if ((raw(i + 1) | 0x20) != 'w' || (raw(i + 2) | 0x20) != 'w' || raw(i + 3) != '.') return i + 1;
      if (i > 0 && (isLatin(text.cp[i - 1]) || isDigit(text.cp[i - 1]))) return i + 1;
      return url(i, i);
    default: return i + 1;
    }
  }

  /// Inline code: to the next run of the same length in this paragraph. Unpaired runs of one length lie kReach apart, so the search stays linear.
  size_t code(size_t i) {
    if (i > 0 && text.cp[i - 1] == '\\') return i + 1;
    const size_t length = run(i, '`');
    const size_t limit = std::min(end, i + kReach);
    for (size_t k = i + length; k < limit;) {
      ++steps;
      if (text.cp[k] == '\n' && k + 1 < end && paragraphEnds(k + 1)) break;
      if (raw(k) != '`') {
        ++k;
        continue;
      }
      const size_t other = run(k, '`');
      if (other == length) {
        mask(i, k + other, Mask::Hidden);
        return k + other;
      }
      k += other;
    }
    return i + length;
  }

  bool paragraphEnds(size_t k) const {
    while (k < end && text.cp[k] == ' ') ++k;
    return k >= end || text.cp[k] == '\n';
  }

  bool named(size_t i, std::string_view name) const {
    for (size_t k = 0; k < name.size(); ++k)
      if (lower(raw(i + k)) != static_cast<char32_t>(name[k])) return false;
    const char32_t after = raw(i + name.size());
    return !isLatin(after) && !isDigit(after) && after != '-';
  }

  size_t angle(size_t i) {
    if (raw(i + 1) == '!' && raw(i + 2) == '-' && raw(i + 3) == '-') {
      mask(i, i + 4, Mask::Tag);
      state.raw = MarkupState::Comment;
      return std::min(end, i + 4);
    }
    const size_t stop = tagEnd(i);
    if (!stop) return i + 1;
    mask(i, stop, Mask::Tag);
    const bool closing = raw(i + 1) == '/', empty = raw(stop - 2) == '/';
    const size_t name = i + 1 + closing;
    if (lower(raw(name)) == 'h' && raw(name + 1) >= '1' && raw(name + 1) <= '6' && named(name, std::string{'h', static_cast<char>(raw(name + 1))})) {
      if (!closing) openHeading = i, openTitle = stop, openLevel = raw(name + 1);
      else if (openLevel == raw(name + 1) && stop - openHeading <= kHeading && titleStart(text, openTitle, i) < i) {
        // Blocks come in text order: a heading inside another block is part of it.
        while (!blocks.empty() && blocks.back().begin > openHeading) blocks.pop_back();
        if (blocks.empty() || blocks.back().end <= openHeading) blocks.push_back({Block::Html, openHeading, stop, openTitle, i});
        openLevel = 0;
      }
    }
    if (!closing && !empty) {
      if (named(name, "pre")) state.raw = MarkupState::Pre;
      if (named(name, "code")) state.raw = MarkupState::Code;
      if (named(name, "script")) state.raw = MarkupState::Script;
      if (named(name, "style")) state.raw = MarkupState::Style;
    }
    return stop;
  }

  /// Behind a tag (name, attributes, `>`) that begins at `i`, or 0.
  size_t tagEnd(size_t i) {
    size_t k = i + 1;
    if (raw(k) == '!' || raw(k) == '?') { // declarations
      if (!isLatin(raw(k + 1))) return 0;
      for (size_t limit = std::min(end, i + 512); k < limit && raw(k) != '<' && text.cp[k] != '\n'; ++k)
        if (raw(k) == '>') return k + 1;
      return 0;
    }
    const bool closing = raw(k) == '/';
    k += closing;
    const size_t name = k;
    if (!isLatin(raw(k))) return 0;
    while (isLatin(raw(k)) || isDigit(raw(k)) || raw(k) == '-' || raw(k) == ':') ++k, ++steps;
    const size_t limit = std::min(end, i + kReach);
    bool values = false, attributes = false;
    for (;;) {
      const size_t space = k;
      while (k < limit && (text.cp[k] == ' ' || (text.cp[k] == '\n' && !paragraphEnds(k + 1)))) ++k, ++steps;
      if (raw(k) == '/' && raw(k + 1) == '>') return k + 2;
      // <Annex B> is text in angle brackets.
      if (raw(k) == '>') return attributes && !values && nounName(name) ? 0 : k + 1;
      if (k == space || closing || k >= limit) return 0;
      if (!isLatin(raw(k)) && raw(k) != '_' && raw(k) != ':' && raw(k) != '@') return 0;
      while (isLatin(raw(k)) || isDigit(raw(k)) || raw(k) == '-' || raw(k) == ':' || raw(k) == '_' || raw(k) == '.' || raw(k) == '@') ++k, ++steps;
      attributes = true;
      size_t value = k;
      while (value < limit && text.cp[value] == ' ') ++value;
      if (raw(value) != '=') continue;
      values = true;
      for (++value; value < limit && text.cp[value] == ' ';) ++value;
      const char32_t quote = raw(value);
      if (quote == '"' || quote == '\'') {
        size_t close = value + 1, &none = noQuote[quote == '"'];
        if (close < none) return 0;
        while (close < limit && raw(close) != quote && !(text.cp[close] == '\n' && paragraphEnds(close + 1))) ++close, ++steps;
        if (raw(close) != quote) {
          none = close;
          return 0;
        }
        k = close + 1;
      } else {
        k = value;
        while (k < limit && text.cp[k] != ' ' && text.cp[k] != '\n' && !breaksValue(raw(k))) ++k, ++steps;
        if (k == value) return 0;
      }
    }
  }

  bool nounName(size_t i) const {
    static constexpr std::string_view nouns[] = {"section", "article", "clause", "paragraph", "chapter", "part", "table", "annex", "appendix", "exhibit", "schedule", "attachment"};
    return std::any_of(std::begin(nouns), std::end(nouns), [&](std::string_view noun) { return named(i, noun); });
  }

  /// `](...)`: the target in parentheses that match, on one line.
  size_t target(size_t i) {
    const size_t limit = std::min(end, i + kHeading);
    int depth = 0;
    for (size_t k = i + 1; k < limit && text.cp[k] != '\n'; ++k) {
      ++steps;
      if (raw(k) == ']' && raw(k + 1) == '(') break; // a target holds no other
      if (raw(k) == '(') ++depth;
      if (raw(k) == ')' && --depth == 0) {
        mask(i + 1, k + 1, Mask::Target);
        return k + 1;
      }
    }
    return i + 1;
  }

  size_t mail(size_t i) {
    auto local = [](char32_t c) { return isLatin(c) || isDigit(c) || c == '.' || c == '_' || c == '%' || c == '+' || c == '-'; };
    size_t begin = i, stop = i + 1, dot = 0;
    while (begin > 0 && i - begin < 64 && (text.flags[begin - 1] & Ascii) && local(text.cp[begin - 1])) --begin, ++steps;
    while (stop < end && stop - i < 128 && (isLatin(raw(stop)) || isDigit(raw(stop)) || raw(stop) == '-' || (raw(stop) == '.' && (isLatin(raw(stop + 1)) || isDigit(raw(stop + 1)))))) {
      if (raw(stop) == '.') dot = stop;
      ++stop, ++steps;
    }
    if (begin == i || !dot) return i + 1;
    mask(begin, stop, Mask::Hidden);
    return stop;
  }

  size_t address(size_t i) {
    if (raw(i + 1) != '/' || raw(i + 2) != '/') return i + 1;
    for (std::string_view scheme : {"https", "http", "ftp"}) {
      if (i < scheme.size()) continue;
      bool same = true;
      for (size_t k = 0; k < scheme.size(); ++k) same &= lower(raw(i - scheme.size() + k)) == static_cast<char32_t>(scheme[k]);
      if (same) return url(i - scheme.size(), i);
    }
    return i + 1;
  }

  /// From `begin` to the first white space, quote, < or > or character that is not ASCII; the search starts at `k`.
  size_t url(size_t begin, size_t k) {
    while (k < end && (raw(k) > ' ') && raw(k) != '"' && raw(k) != '\'' && raw(k) != '<' && raw(k) != '>') ++k, ++steps;
    mask(begin, k, Mask::Hidden);
    return k;
  }

  /// Inside <pre> and its like or a comment: masks one line or up to its end.
  size_t rawText(size_t i) {
    static constexpr std::string_view names[] = {"", "pre", "code", "script", "style"};
    for (size_t k = i; k < end; ++k) {
      ++steps;
      if (state.raw == MarkupState::Comment) {
        if (raw(k) == '-' && raw(k + 1) == '-' && raw(k + 2) == '>') {
          state.raw = MarkupState::None;
          mask(i, k + 3, Mask::Tag);
          return std::min(end, k + 3);
        }
      } else if (raw(k) == '<' && raw(k + 1) == '/' && named(k + 2, names[state.raw])) {
        if (size_t stop = tagEnd(k)) {
          state.raw = MarkupState::None;
          mask(i, k, Mask::Hidden), mask(k, stop, Mask::Tag);
          return stop;
        }
      }
      if (text.cp[k] == '\n' || k - i >= 256) {
        mask(i, k + 1, state.raw == MarkupState::Comment ? Mask::Tag : Mask::Hidden);
        return k + 1;
      }
    }
    mask(i, end, state.raw == MarkupState::Comment ? Mask::Tag : Mask::Hidden);
    return end;
  }

  Text &text;
  const size_t from, commit, end;
  MarkupState state, taken;
  std::vector<Block> &blocks;
  uint64_t &steps;
  bool snapped = false;
  std::array<size_t, 2> noQuote{}; ///< no " (or ') stands between a tag that was refused and here
  size_t openHeading = 0, openTitle = 0;
  char32_t openLevel = 0;
};

} // namespace

MarkupState scanMarkup(Text &text, size_t from, size_t commit, size_t end, const MarkupState &state, std::vector<Block> &blocks, uint64_t &steps) {
  return Scan(text, from, commit, end, state, blocks, steps).run();
}

size_t titleStart(const Text &text, size_t begin, size_t end) {
  while (begin < end) {
    const char32_t c = text.cp[begin];
    if (text.mask[begin] == Mask::Tag || c == ' ' || c == '\n' || c == '*' || c == '_' || c == '[') ++begin;
    else break;
  }
  return begin;
}

static void appendUtf8(std::string &out, char32_t c) {
  if (c < 0x80) out += static_cast<char>(c);
  else if (c < 0x800) out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  else if (c < 0x10000) out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
  else out += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)), static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
}

std::string headingValue(const Text &text, size_t begin, size_t end) {
  std::string out;
  bool space = false;
  for (size_t i = begin; i < end; ++i) {
    const char32_t c = text.cp[i];
    const bool ascii = text.flags[i] & Ascii;
    if (text.mask[i] == Mask::Tag || text.mask[i] == Mask::Target || (ascii && c == '`')) continue;
    if (c == ' ' || c == '\n') {
      space = !out.empty();
      continue;
    }
    auto word = [&](size_t k) { return k >= begin && k < end && text.cp[k] != ' ' && !(text.cp[k] < 0x80 && !isLatin(text.cp[k]) && !isDigit(text.cp[k])); };
    if (ascii && text.mask[i] == Mask::None) {
      if (c == '*' && (word(i - 1) || word(i + 1) || text.cp[i + 1] == '*' || (i > begin && text.cp[i - 1] == '*'))) continue; // emphasis
      if (c == '_' && !(word(i - 1) && word(i + 1))) continue;
      if (c == ']' && i + 1 < text.size() && text.mask[i + 1] == Mask::Target) continue;
      if (c == '[') { // of a link
        size_t k = i + 1;
        while (k < end && text.cp[k] != ']') ++k;
        if (k + 1 < text.size() && text.mask[k + 1] == Mask::Target) continue;
      }
    }
    if (space) out += ' ';
    space = false;
    appendUtf8(out, c);
  }
  return out;
}

} // namespace tare::anchors
