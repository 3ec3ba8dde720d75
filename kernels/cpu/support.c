/* What LLVM may call on its own: memory functions, float remainders, and conversions that a level has no instruction
 * for. In and out as in libc and compiler-rt. The back end keeps these, the linker drops the unused ones. Must hold: no
 * builtin is recognised here (memcpy must not become a call to memcpy). */
#include "kernels/cpu/kernels.h"
#include <stddef.h>

#define TARE_SUPPORT __attribute__((noinline, no_builtin))

typedef uint64_t Block __attribute__((ext_vector_type(4), aligned(1)));

TARE_SUPPORT void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
  unsigned char *d = to;
  const unsigned char *s = from;
  size_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    Block x = *(const Block *)(s + i), y = *(const Block *)(s + i + 32);
    *(Block *)(d + i) = x;
    *(Block *)(d + i + 32) = y;
  }
  if (bytes >= 64) { /* the last 64 bytes again: overlapping beats a byte loop */
    *(Block *)(d + bytes - 64) = *(const Block *)(s + bytes - 64);
    *(Block *)(d + bytes - 32) = *(const Block *)(s + bytes - 32);
    return to;
  }
  for (; i < bytes; ++i) d[i] = s[i];
  return to;
}
TARE_SUPPORT void *memset(void *to, int value, size_t bytes) {
  unsigned char *d = to;
  const Block fill = (Block)(0x0101010101010101ull * (unsigned char)value);
  size_t i = 0;
  for (; i + 32 <= bytes; i += 32) *(Block *)(d + i) = fill;
  for (; i < bytes; ++i) d[i] = (unsigned char)value;
  return to;
}
TARE_SUPPORT void *memmove(void *to, const void *from, size_t bytes) {
  unsigned char *d = to;
  const unsigned char *s = from;
  size_t i = 0;
  /* Upwards is safe: each block is read before anything above it is written. */
  if ((uintptr_t)to - (uintptr_t)from >= bytes) {
    for (; i + 32 <= bytes; i += 32) *(Block *)(d + i) = *(const Block *)(s + i);
    for (; i < bytes; ++i) d[i] = s[i];
  } else {
    for (i = bytes; i >= 32; i -= 32) *(Block *)(d + i - 32) = *(const Block *)(s + i - 32);
    while (i--) d[i] = s[i];
  }
  return to;
}
TARE_SUPPORT int memcmp(const void *a, const void *b, size_t bytes) {
  const unsigned char *p = a, *q = b;
  for (size_t i = 0; i < bytes; ++i)
    if (p[i] != q[i]) return p[i] - q[i];
  return 0;
}

/* x - y * trunc(x / y), exact: long division on the mantissas, one bit per exponent step. */
TARE_SUPPORT double fmod(double x, double y) {
  union { double f; uint64_t u; } a = {x}, b = {y};
  const uint64_t sign = a.u >> 63 << 63, inf = 0x7ffull << 52;
  a.u ^= sign;
  b.u &= ~(1ull << 63);
  if (a.u >= inf || b.u > inf || b.u == 0) return (x * y) / (x * y);
  if (b.u == inf || a.u < b.u) return x;
  int64_t ea = (int64_t)(a.u >> 52), eb = (int64_t)(b.u >> 52);
  uint64_t ma = a.u & ((1ull << 52) - 1), mb = b.u & ((1ull << 52) - 1);
  if (ea) ma |= 1ull << 52; else ea = 1;
  if (eb) mb |= 1ull << 52; else eb = 1;
  for (; ma < 1ull << 52; --ea) ma <<= 1; /* subnormals: exponents go below 1 */
  for (; mb < 1ull << 52; --eb) mb <<= 1;
  for (; ea > eb && ma; --ea) {
    if (ma >= mb) ma -= mb;
    ma <<= 1;
  }
  if (ma >= mb) ma -= mb;
  if (ma == 0) { a.u = sign; return a.f; }
  for (; ma < 1ull << 52; --eb) ma <<= 1;
  a.u = sign | (eb > 0 ? (ma & ((1ull << 52) - 1)) | (uint64_t)eb << 52 : ma >> (1 - eb));
  return a.f;
}
/* Exact: the remainder of two floats is a float. */
TARE_SUPPORT float fmodf(float x, float y) { return (float)fmod(x, y); }

/* Round to nearest, ties to even; NaN stays NaN. The result is the 16 bits, returned as compiler-rt does: in the low
 * half of an SSE register. */
static uint16_t bf16_bits(float x) {
  union { float f; uint32_t u; } v = {x};
  if (x != x) return (uint16_t)(v.u >> 16 | 0x40);
  return (uint16_t)((v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}
TARE_SUPPORT __bf16 __truncsfbf2(float x) {
  union { uint16_t u; __bf16 b; } v = {bf16_bits(x)};
  return v.b;
}
/* A double as the float next to it whose last bit is 1, unless it is a float itself: a second rounding, to 16 bits,
 * then gives what rounding once would. A finite double beyond f32 becomes the largest float, which is odd and rounds to
 * infinity. */
static float round_to_odd(double x) {
  union { float f; uint32_t u; } v = {(float)x};
  const double back = v.f, magnitude = x < 0 ? -x : x, rounded = back < 0 ? -back : back;
  if (back == x || x != x || magnitude - magnitude != 0) return v.f;
  if (rounded > magnitude) v.u -= 1; /* towards zero, infinity included */
  v.u |= 1;
  return v.f;
}
TARE_SUPPORT __bf16 __truncdfbf2(double x) { return __truncsfbf2(round_to_odd(x)); }
TARE_SUPPORT _Float16 __truncdfhf2(double x) { return (_Float16)round_to_odd(x); }
TARE_SUPPORT _Float16 __truncsfhf2(float x) { return (_Float16)x; } /* one instruction at every level (F16C) */
TARE_SUPPORT float __extendhfsf2(_Float16 x) { return (float)x; }
