// See Network.h. Layers as in train_anchors.py (class Integers): three table rows per position, ReLU, maximum of two, convolution over three, ReLU, shift, one
// linear unit. int16 activations and weights keep every sum inside int32 and let the compiler use 16-bit multiply-adds.
#include "runtime/anchors/Network.h"
#include <algorithm>
#include <cstddef>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tare::anchors {
namespace {

struct Weights {
  char magic[8];
  uint32_t left, right, classes, width, shift, seed;
  int32_t threshold;
  uint32_t zero;
  uint8_t hash[32];
  int8_t table[3][Network::kClasses][Network::kWidth];
  int8_t second[3][Network::kWidth][Network::kWidth]; ///< [tap][in][out]
  int8_t last[Network::kSecond][Network::kWidth];
  int16_t bias1[Network::kWidth];
  int32_t bias2[Network::kWidth];
  int32_t bias3;
};
static_assert(sizeof(Weights) == 72 + 3 * 1024 * 16 + 768 + 17 * 16 + 32 + 64 + 4);

alignas(16) constexpr uint8_t bytes[] = {
#include "runtime/anchors/network.inc"
};
static_assert(sizeof bytes == sizeof(Weights), "network.bin is of another form; train again");

const Weights &weights() { return *reinterpret_cast<const Weights *>(bytes); }

/// Weights of the second layer as pairs of inputs, [tap][pair][out][2], for 16-bit multiply-adds of pairs.
struct Pairs {
  alignas(16) int16_t w[3][Network::kWidth / 2][Network::kWidth][2];
};
constexpr Pairs pairs = [] {
  Pairs out{};
  for (size_t t = 0; t < 3; ++t)
    for (size_t in = 0; in < Network::kWidth; ++in)
      for (size_t c = 0; c < Network::kWidth; ++c)
        out.w[t][in / 2][c][in % 2] = static_cast<int8_t>(bytes[72 + 3 * Network::kClasses * Network::kWidth + (t * Network::kWidth + in) * Network::kWidth + c]);
  return out;
}();
static_assert(offsetof(Weights, second) == 72 + 3 * Network::kClasses * Network::kWidth);

/// sum[c] += sum over the inputs of one tap.
inline void tap(const int16_t *x, const int16_t (*w)[Network::kWidth][2], int32_t *sum) {
#ifdef __SSE2__
  __m128i acc[4];
  for (size_t k = 0; k < 4; ++k) acc[k] = _mm_load_si128(reinterpret_cast<const __m128i *>(sum) + k);
  for (size_t pair = 0; pair < Network::kWidth / 2; ++pair) {
    int32_t both;
    std::memcpy(&both, x + 2 * pair, 4);
    if (both == 0) continue;
    const __m128i xs = _mm_set1_epi32(both);
    for (size_t k = 0; k < 4; ++k) acc[k] = _mm_add_epi32(acc[k], _mm_madd_epi16(xs, _mm_load_si128(reinterpret_cast<const __m128i *>(w[pair]) + k)));
  }
  for (size_t k = 0; k < 4; ++k) _mm_store_si128(reinterpret_cast<__m128i *>(sum) + k, acc[k]);
#else
  for (size_t pair = 0; pair < Network::kWidth / 2; ++pair)
    for (size_t c = 0; c < Network::kWidth; ++c) sum[c] += x[2 * pair] * w[pair][c][0] + x[2 * pair + 1] * w[pair][c][1];
#endif
}

} // namespace

uint16_t Network::classOf(char32_t c) {
  if (c >= '0' && c <= '9') return '0';
  if (c < 128) return static_cast<uint16_t>(c);
  switch (c) {
  case U'〇': case U'零': case U'一': case U'二': case U'两': case U'三': case U'四': case U'五': case U'六': case U'七': case U'八': case U'九': case U'十': case U'百':
  case U'千': case U'廿': case U'卅': case U'壹': case U'贰': case U'叁': case U'肆': case U'伍': case U'陆': case U'柒': case U'捌': case U'玖': case U'拾': case U'佰': case U'仟':
    return 128;
  default: return static_cast<uint16_t>(129 + (static_cast<uint32_t>(c) * 2654435761u >> 16) % (kClasses - 129));
  }
}

int32_t Network::logit(const Text &text, size_t i, size_t end) {
  const Weights &w = weights();
  uint16_t classes[kSpan];
  for (size_t k = 0; k < kSpan; ++k) {
    const size_t at = i + k - kLeft; // wraps around before the text
    classes[k] = at < end ? classOf(text.cp[at]) : '\n';
  }
  alignas(16) int16_t first[kFirst][kWidth], pooled[kPooled][kWidth];
  for (size_t p = 0; p < kFirst; ++p)
    for (size_t c = 0; c < kWidth; ++c)
      first[p][c] = static_cast<int16_t>(w.table[0][classes[p]][c] + w.table[1][classes[p + 1]][c] + w.table[2][classes[p + 2]][c] + w.bias1[c]);
  for (size_t q = 0; q < kPooled; ++q)
    for (size_t c = 0; c < kWidth; ++c) pooled[q][c] = std::max<int16_t>(0, std::max(first[2 * q][c], first[2 * q + 1][c]));
  int32_t logit = w.bias3;
  for (size_t q = 0; q < kSecond; ++q) {
    alignas(16) int32_t sum[kWidth];
    std::copy(w.bias2, w.bias2 + kWidth, sum);
    for (size_t t = 0; t < 3; ++t) tap(pooled[q + t], pairs.w[t], sum);
    for (size_t c = 0; c < kWidth; ++c) logit += std::min(std::max(sum[c], 0) >> w.shift, 32767) * w.last[q][c];
  }
  return logit;
}

int32_t Network::threshold() { return weights().threshold; }
uint32_t Network::seed() { return weights().seed; }
const uint8_t *Network::scriptHash() { return weights().hash; }

} // namespace tare::anchors
