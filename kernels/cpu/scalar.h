/* Small helpers of the scalar math: bit casts, powers of two, selects. In and out: plain floats. Must hold: no branches and no conversions that are
 * undefined out of range (rounding adds a large constant instead), so that loops over these functions vectorise and NaN or infinity stays defined. */
#pragma once
#ifndef TARE_OWN_SCALARS /* kernels/cuda/math.cuh brings its own helpers of the same names */
#include "kernels/cpu/vector.h"

#define TARE_INF __builtin_inff()
#define TARE_NAN __builtin_nanf("")

TARE_INLINE int32_t bits_of(float x) { union { float f; int32_t i; } v = {x}; return v.i; }
TARE_INLINE float float_of(int32_t i) { union { int32_t i; float f; } v = {i}; return v.f; }
TARE_INLINE int64_t bits_of64(double x) { union { double f; int64_t i; } v = {x}; return v.i; }
TARE_INLINE double double_of(int64_t i) { union { int64_t i; double f; } v = {i}; return v.f; }
TARE_INLINE float fma32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TARE_INLINE double fma64(double a, double b, double c) { return __builtin_fma(a, b, c); }
TARE_INLINE float abs32(float x) { return __builtin_fabsf(x); }
TARE_INLINE double abs64(double x) { return __builtin_fabs(x); }
TARE_INLINE float sign32(float magnitude, float sign) { return __builtin_copysignf(magnitude, sign); }
TARE_INLINE double sign64(double magnitude, double sign) { return __builtin_copysign(magnitude, sign); }

/* Nearest integer n of x (|x| < 2^22) as a float, and 2^n bit patterns built from the same sum: the low bits of x + 1.5*2^23 are n. */
TARE_INLINE float round32(float x, int32_t *n) {
  const float magic = 12582912.0f, t = x + magic;
  *n = bits_of(t) - bits_of(magic);
  return t - magic;
}
TARE_INLINE double round64(double x, int64_t *n) { /* |x| < 2^51 */
  const double magic = 6755399441055744.0, t = x + magic;
  *n = bits_of64(t) - bits_of64(magic);
  return t - magic;
}
/* p * 2^n in two steps: results may be subnormal or overflow. Integer arithmetic wraps by intent (n is garbage when x was NaN). */
TARE_INLINE float scale32(float p, int32_t n) {
  const int32_t half = n >> 1;
  return p * float_of((int32_t)((uint32_t)(half + 127) << 23)) * float_of((int32_t)((uint32_t)(n - half + 127) << 23));
}
TARE_INLINE double scale64(double p, int64_t n) {
  const int64_t half = n >> 1;
  return p * double_of((int64_t)((uint64_t)(half + 1023) << 52)) * double_of((int64_t)((uint64_t)(n - half + 1023) << 52));
}
#endif
