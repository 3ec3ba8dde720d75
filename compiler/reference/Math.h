// Elementary functions in double that do not depend on the libm version or the CPU: exp, log, erf, tanh, sin, cos, sigmoid.
// In: any double. Out: within about 1 ulp (2 for tanh), NaN and infinities as IEEE and ONNX have them. Only +, *, / and bit operations are used,
// in a fixed order, so the numbers of the checks are the same on every machine (spec 3, "Arithmetic of the checks").
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tare::reference::math {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// 1/n! for n = 0..20, for the Taylor polynomials below.
inline constexpr std::array<double, 21> kInverseFactorial = [] {
  std::array<double, 21> table{};
  long double f = 1;
  for (int n = 0; n <= 20; ++n) table[n] = static_cast<double>(1 / (f *= (n ? n : 1)));
  return table;
}();

/// 2^k for k in [-1022, 1023].
inline double powerOfTwo(int k) { return std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52); }

inline double exp(double x) {
  if (x != x) return x;
  if (x > 709.79) return kInfinity;
  if (x < -745.2) return 0;
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33, kInverseLn2 = 0x1.71547652b82fep0;
  double k = std::floor(x * kInverseLn2 + 0.5);
  double high = x - k * kLn2High, low = k * kLn2Low, r = high - low;
  double tail = (high - r) - low; // what the subtraction lost
  double p = kInverseFactorial[13];
  for (int n = 12; n >= 2; --n) p = p * r + kInverseFactorial[n];
  double value = 1 + (r + (tail + r * r * p));
  int e = static_cast<int>(k);
  if (e > 1023) return value * 2 * powerOfTwo(e - 1);
  if (e < -1021) return value * powerOfTwo(e + 60) * powerOfTwo(-60);
  return value * powerOfTwo(e);
}

inline double log(double x) {
  if (x != x || x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  int e;
  double m = std::frexp(x, &e);
  if (m < 0.70710678118654752) m *= 2, --e;
  // log(m) = 2 atanh(s), s = (m-1)/(m+1), |s| < 0.172
  double f = m - 1, s = f / (2 + f), z = s * s, p = 0;
  for (int n = 25; n >= 3; n -= 2) p = p * z + 2.0 / n;
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  // 2s = f - s*f keeps the leading term exact.
  return e * kLn2High + (f - (s * f - (s * z * p + e * kLn2Low)));
}

namespace detail {
/// Taylor coefficients of erf around i/8 for i in [0, 48]: erf(c + d) = sum_n table[i][n] d^n, |d| <= 1/16.
inline constexpr int kErfTerms = 16;
constexpr long double longExp(long double x) { // x >= 0
  long double sum = 1, term = 1;
  for (int n = 1; n < 200; ++n) sum += term *= x / n;
  return sum;
}
constexpr std::array<std::array<double, kErfTerms>, 49> erfTable() {
  std::array<std::array<double, kErfTerms>, 49> table{};
  constexpr long double kTwoOverSqrtPi = 1.12837916709551257389615890312154517L;
  for (int i = 0; i <= 48; ++i) {
    long double c = i / 8.0L, gauss = kTwoOverSqrtPi / longExp(c * c);
    long double sum = 0, term = c; // erf(c) = 2/sqrt(pi) e^(-c^2) sum 2^n c^(2n+1) / (2n+1)!!
    for (int n = 0; n < 250; ++n) sum += term, term *= 2 * c * c / (2 * n + 3);
    table[i][0] = static_cast<double>(gauss * sum);
    long double previous = 0, hermite = 1, factorial = 1; // d^n/dx^n e^(-x^2) = (-1)^n H_n(x) e^(-x^2)
    for (int n = 0; n + 1 < kErfTerms; ++n) {
      factorial *= n + 1;
      table[i][n + 1] = static_cast<double>((n % 2 ? -1 : 1) * hermite * gauss / factorial);
      long double next = 2 * c * hermite - 2 * n * previous;
      previous = hermite, hermite = next;
    }
  }
  return table;
}
inline constexpr auto kErfTable = erfTable();
} // namespace detail

inline double erf(double x) {
  if (x != x) return x;
  double a = std::fabs(x);
  if (a >= 6) return std::copysign(1.0, x);
  int i = static_cast<int>(a * 8 + 0.5);
  double d = a - i * 0.125, p = 0;
  const auto &row = detail::kErfTable[i];
  for (int n = detail::kErfTerms - 1; n >= 1; --n) p = (p + row[n]) * d;
  return std::copysign(row[0] + p, x);
}

/// e^x - 1 for |x| <= 0.7, without cancellation.
inline double smallExpm1(double x) {
  double p = kInverseFactorial[20];
  for (int n = 19; n >= 2; --n) p = p * x + kInverseFactorial[n];
  return x + x * x * p;
}

inline double tanh(double x) {
  if (x != x) return x;
  double a = std::fabs(x), t;
  if (a > 22) return std::copysign(1.0, x);
  if (a <= 0.35) {
    t = smallExpm1(2 * a);
    t = t / (t + 2);
  } else {
    t = 1 - 2 / (exp(2 * a) + 1);
  }
  return std::copysign(t, x);
}

inline double sigmoid(double x) {
  double e = exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : x < 0 ? e / (1 + e) : x + 0.5; // the last: NaN stays NaN
}

inline double softplus(double x) { // log(1 + e^x) without overflow
  double e = exp(-std::fabs(x));
  double u = 1 + e, tail = log(u) - ((u - 1) - e) / u; // the correction is what 1 + e lost
  return x != x ? x : (x > 0 ? x : 0) + tail;
}

namespace detail {
/// x = n * pi/2 + r, |r| <= pi/4 (+ rounding); exact products for |n| < 2^20.
inline int reduceQuarter(double x, double &r) {
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kPart1 = 0x1.921fb54400000p0, kPart2 = 0x1.0b4611a600000p-34, kPart3 = 0x1.3198a2e037073p-69;
  double n = std::floor(x * kTwoOverPi + 0.5);
  r = ((x - n * kPart1) - n * kPart2) - n * kPart3;
  return static_cast<int>(static_cast<int64_t>(n) & 3);
}
inline double sinPolynomial(double r) {
  if (std::fabs(r) < 1e-8) return r; // keeps -0
  double z = r * r, p = 0;
  for (int n = 19; n >= 3; n -= 2) p = (p * z) + ((n / 2) % 2 ? -kInverseFactorial[n] : kInverseFactorial[n]);
  return r + r * z * p;
}
inline double cosPolynomial(double r) {
  double z = r * r, p = 0;
  for (int n = 20; n >= 4; n -= 2) p = (p * z) + ((n / 2) % 2 ? -kInverseFactorial[n] : kInverseFactorial[n]);
  return (1 - z / 2) + z * z * p;
}
} // namespace detail

inline double sin(double x) {
  if (!(std::fabs(x) < 1.5e6)) return std::sin(x);
  double r;
  switch (detail::reduceQuarter(x, r)) {
  case 0: return detail::sinPolynomial(r);
  case 1: return detail::cosPolynomial(r);
  case 2: return -detail::sinPolynomial(r);
  default: return -detail::cosPolynomial(r);
  }
}

inline double cos(double x) {
  if (!(std::fabs(x) < 1.5e6)) return std::cos(x);
  double r;
  switch (detail::reduceQuarter(x, r)) {
  case 0: return detail::cosPolynomial(r);
  case 1: return -detail::sinPolynomial(r);
  case 2: return -detail::cosPolynomial(r);
  default: return detail::sinPolynomial(r);
  }
}

} // namespace tare::reference::math
