// Scalar helpers of generated kernels: integer arithmetic that never traps, conversions as ONNX's Cast has them, checked gathers, sizes. In and out: single values.
// Must hold: the same results as the CPU back end (compiler/codegen/cpu/EmitScalar.cpp): x / 0 = 0, INT_MIN / -1 wraps, float to integer saturates, NaN becomes 0.
#pragma once
#include "kernels/cuda/math.cuh"

namespace tare {

// ---- sizes: kernels compute them from the symbols of a run -----------------------------------------------------------------------------------
TARE_DEVICE i64 floor_mod(i64 a, i64 b) {
  const i64 d = b > 1 ? b : 1, r = a % d;
  return r < 0 ? r + d : r;
}
TARE_DEVICE i64 floor_div(i64 a, i64 b) { return (a - floor_mod(a, b)) / (b > 1 ? b : 1); }

// ---- integers --------------------------------------------------------------------------------------------------------------------------------
template <class T> TARE_DEVICE T divide(T x, T y) {
  if (y == 0) return 0;
  if (static_cast<T>(-1) < 0 && y == static_cast<T>(-1)) return static_cast<T>(0 - x);
  return static_cast<T>(x / y);
}
template <class T> TARE_DEVICE T remainder_of(T x, T y) { return y == 0 || (static_cast<T>(-1) < 0 && y == static_cast<T>(-1)) ? 0 : static_cast<T>(x % y); }
template <class T> TARE_DEVICE T modulo(T x, T y) { // the divisor's sign
  const T r = remainder_of(x, y);
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}
template <> TARE_DEVICE float modulo<float>(float x, float y) {
  const float r = tare_fmodf(x, y);
  return r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r;
}
template <> TARE_DEVICE double modulo<double>(double x, double y) {
  const double r = tare_fmod(x, y);
  return r != 0.0 && (r < 0.0) != (y < 0.0) ? r + y : r;
}
template <class T> TARE_DEVICE T integer_power(T x, T y) {
  if (y < 0) return x == 1 ? T(1) : static_cast<T>(-1) < 0 && x == static_cast<T>(-1) ? static_cast<T>(y % 2 ? -1 : 1) : T(0);
  T result = 1;
  for (u64 n = static_cast<u64>(y); n; n >>= 1, x = static_cast<T>(x * x))
    if (n & 1) result = static_cast<T>(result * x);
  return result;
}
template <class T> TARE_DEVICE T absolute(T x) { return x < 0 ? static_cast<T>(0 - x) : x; }
TARE_DEVICE float absolute(float x) { return abs32(x); }
TARE_DEVICE double absolute(double x) { return abs64(x); }
template <class T> TARE_DEVICE T sign_of(T x) { return x > 0 ? T(1) : x < 0 ? static_cast<T>(-1) : x; } // 0 and NaN stay as they are
template <class T> TARE_DEVICE T relu(T x) { return x != x ? x : x > 0 ? x : T(0); }
TARE_DEVICE float fmod_of(float x, float y) { return tare_fmodf(x, y); }
TARE_DEVICE double fmod_of(double x, double y) { return tare_fmod(x, y); }

// ---- conversions ------------------------------------------------------------------------------------------------------------------------------
/// Float to an integer of `bits` bits, saturating; narrower than 32 bits goes through 32 and keeps the low part.
template <class T, class F> TARE_DEVICE T to_integer(F x, bool isUnsigned, int bits) {
  if (x != x) return 0;
  const F limit = bits <= 32 && !(isUnsigned && bits == 32) ? static_cast<F>(2147483648.0) : static_cast<F>(9223372036854775808.0);
  if (isUnsigned && bits == 64) {
    if (x <= F(0)) return 0;
    if (x >= F(2) * limit) return static_cast<T>(~0ull);
    return static_cast<T>(x >= limit ? static_cast<u64>(static_cast<i64>(x - limit)) | 0x8000000000000000ull : static_cast<u64>(static_cast<i64>(x)));
  }
  const bool narrow = limit == static_cast<F>(2147483648.0);
  if (x >= limit) return static_cast<T>(narrow ? 2147483647ll : 9223372036854775807ll);
  if (x < -limit) return static_cast<T>(narrow ? -2147483648ll : -9223372036854775807ll - 1);
  return static_cast<T>(static_cast<i64>(x));
}
/// A double as a float rounded to odd: rounding that once more to f16 or bf16 is then right (Boldo and Melquiond 2008).
TARE_DEVICE float to_odd(double x) {
  const float f = static_cast<float>(x);
  if (f != f || static_cast<double>(f) == x || x - x != 0.0) return f;
  const float toward = abs64(static_cast<double>(f)) > abs64(x) ? float_of(bits_of(f) - 1) : f;
  return float_of(bits_of(toward) | 1);
}
template <class T> TARE_DEVICE float rounded(float x) { return to_float(from_float<T>(x)); }
/// Element i of 4-bit integers, two to a byte, low half first.
TARE_DEVICE int nibble(u8 byte, i64 i) { return i % 2 ? byte >> 4 : byte & 15; }
TARE_DEVICE int signed_nibble(u8 byte, i64 i) {
  const int v = nibble(byte, i);
  return v > 7 ? v - 16 : v;
}

// ---- gathers ----------------------------------------------------------------------------------------------------------------------------------
/// A legal index, negative ones counted from the end; an illegal one is reported (1 + step in the run's fault word) and becomes 0.
TARE_DEVICE i64 checked_index(i64 index, i64 size, global<i64> fault, i64 step) {
  const i64 wrapped = index < 0 ? index + size : index;
  if (wrapped >= 0 && wrapped < size) return wrapped;
  if (fault) fault.write(0, 1 + step);
  return 0;
}

} // namespace tare
