// See Vector.h. Each target ("clause 4.2", "annex 3", "table 3-1", "chapter 2", a heading's title) sets four signed places that its hash chooses; what the
// text is (its own label, the first anchor) counts more than what it cites; the parts above a number ("4" of "4.2") count a little.
#include "runtime/anchors/Vector.h"
#include "runtime/anchors/Scanner.h"
#include <algorithm>
#include <cmath>

namespace tare::anchors {

/// FNV-1a with a final mix (64-bit, the published constants of FNV and of MurmurHash3's finaliser).
static uint64_t hashOf(std::string_view text) {
  uint64_t h = 14695981039346656037ull;
  for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  h ^= h >> 33, h *= 0xff51afd7ed558ccdull, h ^= h >> 33, h *= 0xc4ceb9fe1a85ec53ull;
  return h ^ h >> 33;
}

static void add(float *vector, std::string_view key, float weight) {
  uint64_t h = hashOf(key);
  for (int k = 0; k < 4; ++k, h >>= 8) vector[h % kVector] += (h & 128 ? weight : -weight);
}

static bool startsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

/// "clause 4.2" of a clause or a reference to one; the other kinds carry their word already.
static std::string keyOf(const Anchor &anchor) {
  if (anchor.type == Type::Annex) return "annex " + anchor.value;
  if (anchor.type == Type::Table) return "table " + anchor.value;
  for (std::string_view word : {"annex ", "table ", "chapter ", "part ", "section "})
    if (startsWith(anchor.value, word)) return anchor.value;
  return (anchor.type == Type::Heading ? "heading " : "clause ") + anchor.value;
}

static void addWords(const char *text, size_t size, float *vector) {
  Text matched;
  Preparer preparer(matched);
  preparer.feed(reinterpret_cast<const uint8_t *>(text), size);
  preparer.finish();
  std::string word;
  char32_t previous = 0;
  for (size_t i = 0; i <= matched.size(); ++i) {
    const char32_t c = i < matched.size() ? matched.cp[i] : 0;
    if (isLatin(c) || isDigit(c)) {
      word += static_cast<char>(lower(c));
    } else {
      if (!word.empty()) add(vector, word, 1);
      word.clear();
    }
    if (isIdeograph(c) && isIdeograph(previous)) add(vector, "pair " + std::to_string(static_cast<uint32_t>(previous)) + " " + std::to_string(static_cast<uint32_t>(c)), 1);
    previous = c;
  }
}

float anchorVector(const char *text, size_t size, float *vector) {
  std::fill(vector, vector + kVector, 0.0f);
  bool first = true;
  Scanner scanner(Options{}, [&](const Anchor &anchor) {
    if (anchor.value == "separator") return;
    const std::string key = keyOf(anchor);
    const float weight = first ? 1.0f : anchor.type == Type::CrossReference ? 0.2f : 0.4f;
    first = false;
    add(vector, key, weight);
    const size_t cut = key.find_last_of(".(-");
    if (cut != key.npos && cut > 0 && key[cut - 1] != ' ' && anchor.type != Type::Heading) add(vector, key.substr(0, cut), 0.3f * weight);
  });
  scanner.feed(text, size);
  scanner.finish();
  if (first) addWords(text, size, vector);
  double square = 0;
  for (size_t i = 0; i < kVector; ++i) square += static_cast<double>(vector[i]) * vector[i];
  if (square == 0) return 0;
  const float weight = first ? kUnnamed : kNamed;
  for (size_t i = 0; i < kVector; ++i) vector[i] = static_cast<float>(vector[i] * (static_cast<double>(weight) / std::sqrt(square)));
  return weight;
}

} // namespace tare::anchors
