// SHA-256: the plain rounds and the rounds with x86's SHA instructions. Constants and round functions are FIPS 180-4's.
#include "runtime/Sha256.h"
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tare {
namespace {

alignas(64) constexpr uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

void plainBlocks(uint32_t state[8], const uint8_t *data, size_t count) {
  for (; count; --count, data += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      memcpy(&w[i], data + 4 * i, 4);
      w[i] = __builtin_bswap32(w[i]);
    }
    for (int i = 16; i < 64; ++i) {
      uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
      uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; ++i) {
      uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
      uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#if defined(__x86_64__)
bool hasInstructions() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

[[gnu::target("sha,ssse3,sse4.1")]] void fastBlocks(uint32_t state[8], const uint8_t *data, size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(state)), 0xb1);      // c d a b
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(state + 4)), 0x1b); // e f g h
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  for (; count; --count, data += 64) {
    __m128i abefBefore = abef, cdghBefore = cdgh, w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(data) + i), swap);
    for (int i = 0; i < 16; ++i) { // four rounds each
      __m128i sum = _mm_add_epi32(w[i & 3], _mm_load_si128(reinterpret_cast<const __m128i *>(K) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i < 12) { // w of the rounds 16 further on takes the place of the one just used
        __m128i next = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
        next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
        w[i & 3] = _mm_sha256msg2_epu32(next, w[(i + 3) & 3]);
      }
    }
    abef = _mm_add_epi32(abef, abefBefore), cdgh = _mm_add_epi32(cdgh, cdghBefore);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#else
bool hasInstructions() { return false; }
void fastBlocks(uint32_t *state, const uint8_t *data, size_t count) { plainBlocks(state, data, count); }
#endif

} // namespace

Sha256::Sha256(bool allowInstructions)
    : state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      instructions(allowInstructions && hasInstructions()) {}

void Sha256::blocks(const uint8_t *data, size_t count) {
  instructions ? fastBlocks(state, data, count) : plainBlocks(state, data, count);
}

void Sha256::update(const void *data, size_t bytes) {
  auto *from = static_cast<const uint8_t *>(data);
  total += bytes;
  if (held) {
    size_t take = bytes < 64 - held ? bytes : 64 - held;
    memcpy(block + held, from, take);
    held += take, from += take, bytes -= take;
    if (held < 64) return;
    blocks(block, 1);
    held = 0;
  }
  blocks(from, bytes / 64);
  held = bytes % 64;
  if (held) memcpy(block, from + bytes - held, held);
}

void Sha256::finish(uint8_t digest[32]) {
  uint64_t bits = __builtin_bswap64(total * 8);
  uint8_t padding[72] = {0x80};
  size_t zeros = (held < 56 ? 56 : 120) - held;
  memcpy(padding + zeros, &bits, 8);
  update(padding, zeros + 8);
  for (int i = 0; i < 8; ++i) {
    uint32_t word = __builtin_bswap32(state[i]);
    memcpy(digest + 4 * i, &word, 4);
  }
}

void Sha256::of(const void *data, size_t bytes, uint8_t digest[32]) {
  Sha256 hash;
  hash.update(data, bytes);
  hash.finish(digest);
}

} // namespace tare
