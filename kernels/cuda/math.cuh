// Scalar math of the kernels: the same text as on the CPU (kernels/cpu/math_f32.c, math_f64.c, trigonometry.c), compiled for the GPU or the emulator. In: any
// number. Out: within 2 ulp in f32 (those files say more). Must hold: no library function is called, so that nvcc, NVRTC, clang and the emulator give the same.
#pragma once
#include "kernels/cuda/simt.cuh"

#define TARE_OWN_SCALARS
#define TARE_INLINE TARE_DEVICE
#define TARE_EXPORT TARE_DEVICE

#if defined(__CUDACC__) || defined(__CUDA__)
namespace tare {
using int32_t = int; // NVRTC has no <stdint.h>
using int64_t = long long;
using uint32_t = unsigned;
using uint64_t = unsigned long long;

TARE_DEVICE int32_t bits_of(float x) { return __float_as_int(x); }
TARE_DEVICE float float_of(int32_t i) { return __int_as_float(i); }
TARE_DEVICE int64_t bits_of64(double x) { return __double_as_longlong(x); }
TARE_DEVICE double double_of(int64_t i) { return __longlong_as_double(i); }
TARE_DEVICE float fma32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TARE_DEVICE double fma64(double a, double b, double c) { return __fma_rn(a, b, c); }
TARE_DEVICE float multiply32(float a, float b) { return __fmul_rn(a, b); } // never part of an fma
TARE_DEVICE float sqrt32(float x) { return __fsqrt_rn(x); }
TARE_DEVICE double sqrt64(double x) { return __dsqrt_rn(x); }
#define TARE_INF __int_as_float(0x7f800000)
#define TARE_NAN __int_as_float(0x7fc00000)
#define __builtin_sqrt sqrt64
#define __builtin_floor tare::floor64
#else
#include <stdint.h>
namespace tare {
TARE_DEVICE int32_t bits_of(float x) { return emu::bitsOf<int32_t>(x); }
TARE_DEVICE float float_of(int32_t i) { return emu::bitsOf<float>(i); }
TARE_DEVICE int64_t bits_of64(double x) { return emu::bitsOf<int64_t>(x); }
TARE_DEVICE double double_of(int64_t i) { return emu::bitsOf<double>(i); }
TARE_DEVICE float fma32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TARE_DEVICE double fma64(double a, double b, double c) { return __builtin_fma(a, b, c); }
TARE_DEVICE float multiply32(float a, float b) { return a * b; }
TARE_DEVICE float sqrt32(float x) { return __builtin_sqrtf(x); }
TARE_DEVICE double sqrt64(double x) { return __builtin_sqrt(x); }
#define TARE_INF __builtin_inff()
#define TARE_NAN __builtin_nanf("")
#endif
TARE_DEVICE float abs32(float x) { return float_of(bits_of(x) & 0x7fffffff); }
TARE_DEVICE double abs64(double x) { return double_of(bits_of64(x) & 0x7fffffffffffffffll); }
TARE_DEVICE float sign32(float magnitude, float sign) { return float_of((bits_of(magnitude) & 0x7fffffff) | (bits_of(sign) & static_cast<int32_t>(0x80000000u))); }
TARE_DEVICE double sign64(double magnitude, double sign) { return double_of((bits_of64(magnitude) & 0x7fffffffffffffffll) | (bits_of64(sign) & static_cast<int64_t>(0x8000000000000000ull))); }

/// Rounding to whole numbers, by adding what pushes the fraction out: exact, halves to even, the sign of zero kept.
TARE_DEVICE float round_even(float x) { return abs32(x) < 8388608.0f ? sign32(abs32(x) + 8388608.0f - 8388608.0f, x) : x; }
TARE_DEVICE double round_even(double x) { return abs64(x) < 4503599627370496.0 ? sign64(abs64(x) + 4503599627370496.0 - 4503599627370496.0, x) : x; }
TARE_DEVICE float floor32(float x) {
  const float r = round_even(x);
  return r > x ? sign32(r - 1.0f, x) : r;
}
TARE_DEVICE double floor64(double x) {
  const double r = round_even(x);
  return r > x ? sign64(r - 1.0, x) : r;
}
TARE_DEVICE float ceil32(float x) { return -floor32(-x); }
TARE_DEVICE double ceil64(double x) { return -floor64(-x); }

/// Nearest integer n of x as a float, see kernels/cpu/scalar.h.
TARE_DEVICE float round32(float x, int32_t *n) {
  const float magic = 12582912.0f, t = x + magic;
  *n = bits_of(t) - bits_of(magic);
  return t - magic;
}
TARE_DEVICE double round64(double x, int64_t *n) {
  const double magic = 6755399441055744.0, t = x + magic;
  *n = bits_of64(t) - bits_of64(magic);
  return t - magic;
}
TARE_DEVICE float scale32(float p, int32_t n) {
  const int32_t half = n >> 1;
  return p * float_of(static_cast<int32_t>(static_cast<uint32_t>(half + 127) << 23)) * float_of(static_cast<int32_t>(static_cast<uint32_t>(n - half + 127) << 23));
}
TARE_DEVICE double scale64(double p, int64_t n) {
  const int64_t half = n >> 1;
  return p * double_of(static_cast<int64_t>(static_cast<uint64_t>(half + 1023) << 52)) * double_of(static_cast<int64_t>(static_cast<uint64_t>(n - half + 1023) << 52));
}
/// The exact remainder of x / y with the sign of x, by subtracting y times powers of two.
TARE_DEVICE double fmod(double x, double y) {
  double a = abs64(x);
  const double b = abs64(y), inf = static_cast<double>(TARE_INF);
  if (!(a < inf) || !(b > 0.0)) return static_cast<double>(TARE_NAN);
  double t = b;
  while (t <= a * 0.5) t += t;
  for (; t >= b; t *= 0.5)
    if (a >= t) a -= t;
  return sign64(a, x);
}

#include "kernels/cpu/math_f64.c"
#include "kernels/cpu/math_f32.c"
#include "kernels/cpu/trigonometry.c"

// One spelling for both widths, as the generated kernels use it.
#define TARE_BOTH(NAME) TARE_DEVICE float NAME(float x) { return tare_##NAME##f(x); } TARE_DEVICE double NAME(double x) { return tare_##NAME(x); }
TARE_BOTH(exp) TARE_BOTH(log) TARE_BOTH(erf) TARE_BOTH(tanh) TARE_BOTH(sigmoid) TARE_BOTH(softplus) TARE_BOTH(sin) TARE_BOTH(cos) TARE_BOTH(tan) TARE_BOTH(asin)
TARE_BOTH(acos) TARE_BOTH(atan) TARE_BOTH(sinh) TARE_BOTH(cosh)
#undef TARE_BOTH
TARE_DEVICE float silu(float x) { return tare_siluf(x); }
TARE_DEVICE double silu(double x) { return x * tare_sigmoid(x); }
TARE_DEVICE float gelu_erf(float x) { return tare_gelu_erff(x); }
TARE_DEVICE double gelu_erf(double x) { return 0.5 * x * (1.0 + tare_erf(x * 0.70710678118654752440)); }
TARE_DEVICE float gelu_tanh(float x) { return tare_gelu_tanhf(x); }
TARE_DEVICE double gelu_tanh(double x) { return 0.5 * x * (1.0 + tare_tanh((x + x * x * x * 0.044715) * 0.79788456080286535588)); }
TARE_DEVICE float square_root(float x) { return sqrt32(x); }
TARE_DEVICE double square_root(double x) { return sqrt64(x); }
TARE_DEVICE float power(float x, float y) { return tare_powf(x, y); }
TARE_DEVICE double power(double x, double y) { return tare_pow(x, y); }
/// Maximum and minimum in which a NaN wins (ONNX Max, Min).
template <class T> TARE_DEVICE T max_of(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <class T> TARE_DEVICE T min_of(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }

} // namespace tare
#undef TARE_INLINE
#undef TARE_EXPORT
