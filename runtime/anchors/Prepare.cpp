// See Prepare.h. The common characters (ASCII, unified ideographs, full-width forms) never reach utf8proc; the others do, one cluster at a time, as UAX 15
// composes a mark only with the starter before it.
#include "runtime/anchors/Prepare.h"
#include <algorithm>
#include <utf8proc.h>

namespace tare::anchors {

static constexpr size_t kClusterLimit = 32;

template <typename T> static void regrow(std::unique_ptr<T[]> &column, size_t count, size_t capacity) {
  std::unique_ptr<T[]> bigger(new T[capacity]);
  std::copy(column.get(), column.get() + count, bigger.get());
  column = std::move(bigger);
}

void Text::grow() {
  const size_t more = capacity ? 2 * capacity : 1024;
  regrow(cp, count, more), regrow(flags, count, more), regrow(mask, count, more), regrow(byte, count, more), regrow(chr, count, more), regrow(bytes, count, more), regrow(chars, count, more);
  capacity = more;
}

void Text::dropFront(size_t drop) {
  if (drop == 0) return;
  const uint32_t byteShift = drop < count ? byte[drop] : byte[count - 1] + bytes[count - 1], charShift = drop < count ? chr[drop] : chr[count - 1] + chars[count - 1];
  auto cut = [&](auto &column) { std::copy(column.get() + drop, column.get() + count, column.get()); };
  cut(cp), cut(flags), cut(mask), cut(bytes), cut(chars);
  for (size_t i = drop; i < count; ++i) byte[i - drop] = byte[i] - byteShift, chr[i - drop] = chr[i] - charShift;
  byteBase += byteShift, charBase += charShift;
  count -= drop;
}

static bool in(char32_t c, char32_t low, char32_t high) { return c >= low && c <= high; }

/// White space, dropped and dashes (section "Matching form"): 0 drops the character.
static char32_t unify(char32_t c) {
  switch (c) {
  case '\t': case '\f': case 0xA0: case 0x202F: case 0x205F: case 0x3000: return ' ';
  case 0xAD: case 0x2060: case 0xFEFF: return 0;
  case 0x2212: return '-';
  // Decorative bullets.
  case 0x25A0: case 0x25A1: case 0x25AA: case 0x25AB: case 0x25FC: case 0x25FB: case 0x25CF: case 0x25CB: case 0x25E6: case 0x2022: case 0x2023: case 0x25C6:
  case 0x25C7: case 0x2605: case 0x2606: case 0x25BA: case 0x25B6: case 0x25B8: case 0x27A2: case 0x27A4: case 0x2756: case 0x2713: case 0x2714: case 0x203B:
    return 0;
  default:
    if (in(c, 0x2000, 0x200A)) return ' ';
    if (in(c, 0x200B, 0x200D) || in(c, 0xF000, 0xF0FF)) return 0;
    if (in(c, 0x2010, 0x2014)) return '-';
    return c;
  }
}

/// What kind of compatibility digit the original is; `digit`: its NFKC holds a digit.
static uint8_t flagOf(char32_t c, bool digit) {
  if (in(c, 0x2460, 0x2473) || in(c, 0x24B6, 0x24EA) || in(c, 0x3251, 0x325F) || in(c, 0x3280, 0x32B0) || in(c, 0x32B1, 0x32BF)) return Circled;
  if (in(c, 0x2474, 0x2487) || in(c, 0x249C, 0x24B5) || in(c, 0x3200, 0x3243) || in(c, 0x1F110, 0x1F129)) return Enclosed;
  if (in(c, 0x3192, 0x319F) || in(c, 0x2070, 0x209F)) return Superscript;
  const bool ordinary = in(c, 0xFF10, 0xFF19) || in(c, 0x1D7CE, 0x1D7FF) || in(c, 0x1FBF0, 0x1FBF9);
  return digit && !ordinary ? Superscript : 0;
}

/// Joins the character before it: a combining mark, a Hangul vowel or final, a half-width voicing mark.
static bool joins(char32_t c) {
  if (c < 0x300) return false;
  if (in(c, 0x4E00, 0x9FFF) || in(c, 0x2000, 0x206F) || in(c, 0xFF01, 0xFF5E)) return false;
  if (in(c, 0x1160, 0x11FF) || c == 0xFF9E || c == 0xFF9F) return true;
  const utf8proc_property_t *property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  return property->combining_class != 0 || property->category == UTF8PROC_CATEGORY_MN || property->category == UTF8PROC_CATEGORY_MC;
}

void Preparer::emit(char32_t c, uint8_t flag, uint64_t byteStart, uint64_t charStart, size_t byteLength, size_t charLength) {
  c = unify(c);
  if (c == 0) return;
  if (c == '\n' && text.size() && text.cp[text.size() - 1] == '\r' && text.byteEnd(text.size() - 1) == byteStart) {
    text.cp[text.size() - 1] = '\n', text.bytes[text.size() - 1] = 2, text.chars[text.size() - 1] = 2;
    return;
  }
  text.push(c, flag, byteStart, charStart, byteLength, charLength);
}

void Preparer::appendMapped(char32_t c, unsigned length) {
  Mapped &entry = cache[(c ^ c >> 8) & 255];
  if (entry.from != c) {
    utf8proc_int32_t out[32];
    utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), out, 32, static_cast<utf8proc_option_t>(UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), nullptr);
    if (n < 0 || n > 32) n = 1, out[0] = static_cast<utf8proc_int32_t>(c);
    n = utf8proc_normalize_utf32(out, n, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    bool digit = false;
    for (utf8proc_ssize_t i = 0; i < n; ++i) digit |= in(static_cast<char32_t>(out[i]), '0', '9');
    const uint8_t flag = flagOf(c, digit);
    if (n > 4) { // rare, not kept
      for (utf8proc_ssize_t i = 0; i < n; ++i) emit(static_cast<char32_t>(out[i]), flag, byteAt, charAt, length, 1);
      return;
    }
    entry.from = c, entry.flag = flag, entry.count = static_cast<uint8_t>(n);
    for (utf8proc_ssize_t i = 0; i < n; ++i) entry.to[static_cast<size_t>(i)] = static_cast<char32_t>(out[i]);
  }
  for (size_t i = 0; i < entry.count; ++i) emit(entry.to[i], entry.flag, byteAt, charAt, length, 1);
}

void Preparer::append(char32_t c, unsigned length) {
  if (in(c, 0x4E00, 0x9FFF)) text.push(c, 0, byteAt, charAt, 3, 1);
  else if (c < 0x80) emit(c, Ascii, byteAt, charAt, 1, 1);
  else if (in(c, 0xFF01, 0xFF5E)) emit(c - 0xFEE0, 0, byteAt, charAt, length, 1);
  else if (in(c, 0x3001, 0x3029) || in(c, 0x2010, 0x2010) || in(c, 0x2012, 0x2016) || in(c, 0x2018, 0x2023) || in(c, 0x25A0, 0x25FF)) emit(c, 0, byteAt, charAt, length, 1);
  else appendMapped(c, length);
}

/// After marks: takes the matched characters of their base back and puts NFKC of the whole cluster in their place.
void Preparer::settle() {
  text.pop(lastSize);
  // Each code point decomposes to at most 18; the buffer is grown once for all.
  utf8proc_int32_t out[kClusterLimit * 20];
  utf8proc_ssize_t n = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  marks.insert(marks.begin(), base);
  for (char32_t part : marks) {
    utf8proc_ssize_t room = static_cast<utf8proc_ssize_t>(sizeof out / sizeof *out) - n, got = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(part), out + n, room, options, nullptr);
    if (got < 0 || got > room) got = 1, out[n] = static_cast<utf8proc_int32_t>(part);
    n += got;
  }
  // Canonical order (a stable sort by class between starters), then composition.
  auto classOf = [](utf8proc_int32_t x) { return utf8proc_get_property(x)->combining_class; };
  for (utf8proc_ssize_t i = 1; i < n; ++i)
    for (utf8proc_ssize_t j = i; j > 0 && classOf(out[j]) != 0 && classOf(out[j - 1]) > classOf(out[j]); --j) std::swap(out[j], out[j - 1]);
  n = utf8proc_normalize_utf32(out, n, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  const uint8_t flag = flagOf(base, false);
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    emit(static_cast<char32_t>(out[i]), flag, lastByte, lastChar, static_cast<size_t>(byteAt - lastByte), static_cast<size_t>(charAt - lastChar));
  marks.clear(), base = 0;
}

void Preparer::take(char32_t c, unsigned length) {
  if (c < 0x20 || in(c, 0x7F, 0x9F)) {
    if (c != '\t' && c != '\n' && c != '\f' && c != '\r') control.add(byteAt);
  }
  if (c >= 0x300 && base >= 0x20 && marks.size() + 1 < kClusterLimit && joins(c)) {
    marks.push_back(c);
  } else {
    if (!marks.empty()) settle();
    lastSize = text.size(), lastByte = byteAt, lastChar = charAt, base = c;
    append(c, length);
  }
  byteAt += length, ++charAt;
}

void Preparer::ill(size_t length) {
  invalid.add(byteAt);
  if (!marks.empty()) settle();
  base = 0, lastSize = text.size();
  text.push(0xFFFD, 0, byteAt, charAt, length, 1);
  byteAt += length, ++charAt;
}

/// Takes one sequence and returns its length; 0 when it may continue after the `left` bytes. Ill-formed: the maximal subpart (Unicode, table 3-7).
size_t Preparer::decode(const uint8_t *p, size_t left, bool last) {
  const uint8_t lead = p[0];
  if (lead < 0x80) return take(lead, 1), 1;
  const size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return ill(1), 1;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t c = lead & (0xFF >> (need + 1));
  for (size_t i = 1; i < need; ++i) {
    if (i == left) return last ? (ill(i), i) : 0;
    if (p[i] < (i == 1 ? low : 0x80) || p[i] > (i == 1 ? high : 0xBF)) return ill(i), i;
    c = c << 6 | (p[i] & 0x3F);
  }
  return take(c, static_cast<unsigned>(need)), need;
}

void Preparer::feed(const uint8_t *data, size_t size) {
  size_t at = 0;
  while (pendingSize && at < size) { // a sequence that was cut by the pieces
    pending[pendingSize++] = data[at++];
    const size_t used = decode(pending.data(), pendingSize, false);
    if (used == 0) continue;
    // The rest of an ill-formed sequence is read again.
    at -= pendingSize - used;
    pendingSize = 0;
  }
  while (at < size) {
    const uint8_t c = data[at];
    if (c >= 0x21 && c < 0x7F) { // printable ASCII
      if (!marks.empty()) settle();
      lastSize = text.size(), lastByte = byteAt, lastChar = charAt, base = c;
      text.push(c, Ascii, byteAt, charAt, 1, 1);
      ++byteAt, ++charAt, ++at;
      continue;
    }
    if (c >= 0xE4 && c <= 0xE9 && size - at > 2 && (data[at + 1] & 0xC0) == 0x80 && (data[at + 2] & 0xC0) == 0x80) { // unified ideographs
      const char32_t cp = char32_t(c & 15) << 12 | char32_t(data[at + 1] & 63) << 6 | (data[at + 2] & 63);
      if (in(cp, 0x4E00, 0x9FFF)) {
        if (!marks.empty()) settle();
        lastSize = text.size(), lastByte = byteAt, lastChar = charAt, base = cp;
        text.push(cp, 0, byteAt, charAt, 3, 1);
        byteAt += 3, ++charAt, at += 3;
        continue;
      }
    }
    const size_t used = decode(data + at, size - at, false);
    if (used == 0) {
      while (at < size) pending[pendingSize++] = data[at++];
      return;
    }
    at += used;
  }
}

void Preparer::finish() {
  for (size_t at = 0; at < pendingSize;) at += decode(pending.data() + at, pendingSize - at, true);
  pendingSize = 0;
  if (!marks.empty()) settle();
  lastSize = text.size();
}

} // namespace tare::anchors
