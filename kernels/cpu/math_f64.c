/* Scalar f64 math without branches: exponentials, logarithms, erf, tanh, pow. In: any double; out: within 4 ulp (pow: relative error below 1e-13 of the
 * exponent's size), NaN in gives NaN out, infinities give the limits. exp: Taylor on |r| <= ln2/2; log: fdlibm's polynomial; erf: its series and fraction. */
#include "kernels/cpu/scalar.h"

static const double LN2_HI = 6.93147180369123816490e-01, LN2_LO = 1.90821492927058770002e-10;

/* e^r - 1 - r over r^2 by Taylor, |r| <= 0.35: the first term left out is r^14/14!, 4e-18. */
TARE_INLINE double exp_tail(double r) {
  double p = 1.0 / 6227020800.0;
  p = fma64(p, r, 1.0 / 479001600.0);
  p = fma64(p, r, 1.0 / 39916800.0);
  p = fma64(p, r, 1.0 / 3628800.0);
  p = fma64(p, r, 1.0 / 362880.0);
  p = fma64(p, r, 1.0 / 40320.0);
  p = fma64(p, r, 1.0 / 5040.0);
  p = fma64(p, r, 1.0 / 720.0);
  p = fma64(p, r, 1.0 / 120.0);
  p = fma64(p, r, 1.0 / 24.0);
  p = fma64(p, r, 1.0 / 6.0);
  return fma64(p, r, 0.5);
}
TARE_INLINE double exp_reduce(double x, int64_t *n) {
  x = x > 711.0 ? 711.0 : x;
  x = x < -746.0 ? -746.0 : x;
  const double k = round64(x * 1.44269504088896338700, n);
  return fma64(k, -LN2_LO, fma64(k, -LN2_HI, x));
}
TARE_EXPORT double tare_exp(double x) {
  int64_t n;
  const double r = exp_reduce(x, &n);
  return scale64(fma64(exp_tail(r) * r, r, r) + 1.0, n);
}
TARE_EXPORT double tare_expm1(double x) {
  int64_t n;
  const double r = exp_reduce(x > 709.9 ? 709.9 : x, &n),  t = fma64(exp_tail(r) * r, r, r);
  const double half = double_of((int64_t)((uint64_t)((n < -1000 ? -1000 : n) - 1 + 1023) << 52));
  const double y = 2.0 * fma64(half, t, half - 0.5);
  return x == 0.0 ? x : y;
}

/* x = 2^k (1 + f); returns log(1 + f) - f in *tail (fdlibm e_log.c). */
TARE_INLINE double log_parts(double x, double *k, double *tail) {
  const int small = x < 2.2250738585072014e-308;
  const int64_t u = bits_of64(small ? x * 18014398509481984.0 : x), n = (int64_t)(u - 0x3fe6a09e667f3bcdll) >> 52;
  *k = (double)(n - (small ? 54 : 0));
  const double f = double_of(u - (int64_t)((uint64_t)n << 52)) - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  double p = 1.479819860511658591e-01;
  p = fma64(p, z, 1.531383769920937332e-01);
  p = fma64(p, z, 1.818357216161805012e-01);
  p = fma64(p, z, 2.222219843214978396e-01);
  p = fma64(p, z, 2.857142874366239149e-01);
  p = fma64(p, z, 3.999999999940941908e-01);
  p = fma64(p, z, 6.666666666666735130e-01);
  *tail = s * fma64(p, z, half) - half;
  return f;
}
TARE_INLINE double log_special(double y, double x) {
  y = x == (double)TARE_INF ? x : y;
  y = x == 0.0 ? -(double)TARE_INF : y;
  return x < 0.0 || x != x ? (double)TARE_NAN : y;
}
TARE_EXPORT double tare_log(double x) {
  double k, tail;
  const double f = log_parts(x, &k, &tail);
  return log_special(fma64(k, LN2_HI, f + fma64(k, LN2_LO, tail)), x);
}
TARE_EXPORT double tare_log1p(double x) {
  const double u = 1.0 + x, lost = x > 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
  double k, tail;
  const double f = log_parts(u, &k, &tail);
  double y = fma64(k, LN2_HI, f + (fma64(k, LN2_LO, tail) + lost / u));
  y = abs64(x) < 1e-9 ? fma64(-0.5 * x, x, x) : y;
  y = x == (double)TARE_INF ? x : y;
  y = x == -1.0 ? -(double)TARE_INF : y;
  return x < -1.0 || x != x ? (double)TARE_NAN : y;
}

/* |x|^y = e^(y log|x|) with the rounding of log(1+f)+k ln2 and of the product carried along; then C's special cases (ONNX follows them). */
TARE_EXPORT double tare_pow(double x, double y) {
  const double ax = abs64(x), inf = (double)TARE_INF;
  double k, tail;
  const double f = log_parts(ax, &k, &tail);
  const double big = k * LN2_HI, small = fma64(k, LN2_LO, tail); /* big is exact: LN2_HI has 33 bits */
  const double sum = big + f, sum_error = k != 0.0 ? f - (sum - big) : 0.0;
  const double hi = sum + (small + sum_error), lo = (sum - hi) + (small + sum_error);
  double product = y * hi;
  double rest = fma64(y, hi, -product) + y * lo;
  rest = product - product == 0.0 && rest - rest == 0.0 ? rest : 0.0;
  const double e = tare_exp(product);
  double r = e + (e < inf ? e * rest : 0.0);
  r = ax == 0.0 ? (y < 0.0 ? inf : 0.0) : r;
  r = ax == inf ? (y < 0.0 ? 0.0 : inf) : r;
  const double ay = abs64(y);
  r = ay == inf ? (ax == 1.0 ? 1.0 : (ax > 1.0) == (y > 0.0) ? inf : 0.0) : r;
  const double whole = __builtin_floor(ay), odd = whole - 2.0 * __builtin_floor(0.5 * whole);
  const int integer = whole == ay;
  r = x < 0.0 && ax < inf && !integer && ay < inf ? (double)TARE_NAN : r;
  r = bits_of64(x) < 0 && integer && odd == 1.0 && ay < 9007199254740992.0 ? -r : r;
  r = x != x || y != y ? (double)TARE_NAN : r;
  return x == 1.0 || y == 0.0 ? 1.0 : r;
}

/* |x| < 1.6: 2/sqrt(pi) e^(-x^2) x sum (2x^2)^n / (2n+1)!!, all terms positive; beyond: 1 - e^(-x^2)/sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + ..)))). */
TARE_EXPORT double tare_erf(double x) {
  const double s = x * x;
  double ax = abs64(x), series = 1.0, near_s = s < 2.56 ? s : 2.56;
#pragma clang loop unroll(full)
  for (int n = 34; n >= 1; --n) series = fma64(series, near_s * (2.0 / (2 * n + 1)), 1.0);
  const double e = tare_exp(-near_s), near = 1.12837916709551257390 * x * (series * fma64(-e, fma64(x, x, -s), e)); /* what rounding took from x^2 */
  ax = ax > 6.0 ? 6.0 : ax < 1.6 ? 1.6 : ax;
  double fraction = ax;
#pragma clang loop unroll(full)
  for (int n = 90; n >= 1; --n) fraction = ax + 0.5 * n / fraction;
  const double far = sign64(1.0 - tare_exp(-ax * ax) * 0.56418958354775628695 / fraction, x);
  return x != x ? x : abs64(x) < 1.6 ? near : far;
}
TARE_EXPORT double tare_tanh(double x) {
  double t = abs64(x);
  t = t > 22.0 ? 22.0 : t;
  const double e = tare_expm1(2.0 * t);
  return sign64(e / (e + 2.0), x);
}
TARE_EXPORT double tare_sigmoid(double x) {
  const double e = tare_exp(-abs64(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e) + (x != x ? x : 0.0);
}
TARE_EXPORT double tare_softplus(double x) { return (x > 0.0 ? x : 0.0) + tare_log1p(tare_exp(-abs64(x))); }
