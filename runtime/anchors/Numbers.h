// Numbers of designators. In: a View and a position. Out: an Item with its normalised text and end, or nothing. Holds: compatibility digits never continue
// an ordinary number (docs/anchors.md); leading zeros go; letters and Roman numbers in parentheses stay as written.
#pragma once
#include "runtime/anchors/View.h"
#include <string>

namespace tare::anchors {

struct Item {
  std::string base;      ///< "4", "4.2", "12A", "12-1", "B", "A.1"; empty when levels stand alone
  std::string levels;    ///< "(b)(iv)"
  bool inParens = false; ///< the whole number stood in parentheses
  bool letter = false;   ///< the base is one letter
  bool dotted = false;   ///< the base has a dot
  bool roman = false;
  int64_t integer = -1;  ///< the base as a plain integer
  int64_t low = -1, high = -1; ///< the base is `low-high` of two plain integers that rise
  size_t end = 0;

  std::string text() const { return base + levels; }
};

/// A Chinese numeral (positional or digit by digit), with gaps between its characters where allowed. Nothing when it is not well formed.
struct Numeral { int64_t value; size_t end; };
std::optional<Numeral> chineseNumeral(const View &view, size_t i, bool gaps);
/// The value of Roman capitals in canonical form, or 0.
int64_t romanValue(std::string_view capitals);

/// A level `(b)`, `(2)`, `(iv)`, with `chinese` also `(三)`: its text with ASCII parentheses. The parentheses and digits must be ordinary, except that a whole
/// parenthesised ideograph is a level where `enclosed` says so.
struct Level { std::string text; size_t end; };
std::optional<Level> level(const View &view, size_t i, bool chinese, bool enclosed);

/// A number inside a frame: gaps between any two characters.
std::optional<Item> frameNumber(const View &view, size_t i);
/// A contiguous number after a Chinese annex or table noun: digits, dotted, hyphenated, Chinese numeral, one letter (any case for annexes).
std::optional<Item> nounNumber(const View &view, size_t i, bool lowerLetters);
/// Contiguous digits with dots, hyphens and letters, as English nouns have them: `4.2`, `12A`, `2-1`.
std::optional<Item> digitNumber(const View &view, size_t i, bool gaps, bool letters);

} // namespace tare::anchors
