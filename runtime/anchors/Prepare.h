// The matching form of a text (docs/anchors.md, "Matching form"). In: UTF-8 bytes in pieces of any size. Out: NFKC code points without dropped characters,
// one kind of space, dash and line break, each with the range of the original character it came from. Holds: time linear in the bytes; a cluster of
// combining marks is cut after 32, so memory is bounded; ill-formed bytes become U+FFFD and are counted with their offsets.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tare::anchors {

/// Of a matched character.
enum Flag : uint8_t {
  Ascii = 1,       ///< the original is one ASCII character: markup counts only then
  Superscript = 2, ///< a digit that never belongs to a number
  Circled = 4,     ///< a digit, letter or numeral in a circle: may be a whole number
  Enclosed = 8,    ///< from a parenthesised character, brackets included
  Compatibility = Superscript | Circled | Enclosed
};

/// What hides a matched character from the grammar (Markup.cpp writes it).
enum class Mask : uint8_t { None, Hidden, Tag, Target };

/// Matched characters of the window at hand, column by column. Offsets are relative to byteBase and charBase.
class Text {
public:
  std::unique_ptr<char32_t[]> cp;
  std::unique_ptr<uint8_t[]> flags;
  std::unique_ptr<Mask[]> mask;
  std::unique_ptr<uint32_t[]> byte, chr;   ///< where the original character (or cluster) begins
  std::unique_ptr<uint8_t[]> bytes, chars; ///< how long it is
  uint64_t byteBase = 0, charBase = 0;

  size_t size() const { return count; }
  void push(char32_t c, uint8_t flag, uint64_t byteAt, uint64_t charAt, size_t byteLength, size_t charLength) {
    if (count == capacity) grow();
    cp[count] = c, flags[count] = flag, mask[count] = Mask::None;
    byte[count] = static_cast<uint32_t>(byteAt - byteBase), chr[count] = static_cast<uint32_t>(charAt - charBase);
    bytes[count] = static_cast<uint8_t>(byteLength), chars[count] = static_cast<uint8_t>(charLength);
    ++count;
  }
  void pop(size_t newSize) { count = newSize; }
  /// Forgets the first `drop` characters.
  void dropFront(size_t drop);
  uint64_t byteBegin(size_t i) const { return byteBase + byte[i]; }
  uint64_t byteEnd(size_t i) const { return byteBase + byte[i] + bytes[i]; }
  uint64_t charBegin(size_t i) const { return charBase + chr[i]; }
  uint64_t charEnd(size_t i) const { return charBase + chr[i] + chars[i]; }

private:
  void grow();
  size_t count = 0, capacity = 0;
};

/// Bad places of one kind: how many, and where the first ones are.
struct BadPlaces {
  uint64_t count = 0;
  std::array<uint64_t, 16> offsets{};
  void add(uint64_t offset) {
    if (count < offsets.size()) offsets[count] = offset;
    ++count;
  }
};

class Preparer {
public:
  explicit Preparer(Text &text) : text(text) {}
  void feed(const uint8_t *data, size_t size);
  /// The end: an incomplete sequence is ill-formed.
  void finish();
  uint64_t byteCount() const { return byteAt; }
  uint64_t charCount() const { return charAt; }
  /// Matched characters that no later byte can change; the window may be cut before here.
  size_t settled() const { return lastSize; }
  /// The text forgot its first `count` characters, at most settled().
  void dropped(size_t count) { lastSize -= count; }
  BadPlaces invalid, control;

private:
  /// NFKC of one code point, kept because full-width and ligature characters come in runs.
  struct Mapped {
    char32_t from = 0xFFFFFFFF;
    uint8_t count = 0, flag = 0;
    std::array<char32_t, 4> to{};
  };

  void take(char32_t c, unsigned length);
  void append(char32_t c, unsigned length);
  void appendMapped(char32_t c, unsigned length);
  void emit(char32_t c, uint8_t flag, uint64_t byteStart, uint64_t charStart, size_t byteLength, size_t charLength);
  void settle();
  void ill(size_t length);
  size_t decode(const uint8_t *p, size_t left, bool last);

  Text &text;
  uint64_t byteAt = 0, charAt = 0;
  std::array<uint8_t, 4> pending{};
  size_t pendingSize = 0;
  // The last original character, so that a combining mark can take it back.
  size_t lastSize = 0; ///< matched characters before it
  uint64_t lastByte = 0, lastChar = 0;
  char32_t base = 0;           ///< itself; 0 when nothing can join it
  std::vector<char32_t> marks; ///< what joined it; not yet in the text
  std::array<Mapped, 256> cache;
};

} // namespace tare::anchors
