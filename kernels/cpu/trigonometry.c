/* Scalar trigonometric and hyperbolic functions without branches, f32 through f64. In: any number; out: f32 correctly rounded but for rare ties, f64 within
 * 4 ulp away from the zeros of sin and cos. Must hold: sin and cos reduce with pi/2 in three parts, right for |x| < 2^30 (rotary angles are far below). */
#include "kernels/cpu/scalar.h"

#ifndef TARE_OWN_SCALARS
double fmod(double, double); /* support.c */
#endif

/* r = x - n pi/2 in [-pi/4, pi/4]. */
TARE_INLINE double reduce(double x, int64_t *n) {
  const double k = round64(x * 0.63661977236758134308, n);
  double r = fma64(k, -1.57079632673412561417e+00, x); /* exact: 33 bits of pi/2 times 31 bits of k */
  r = fma64(k, -6.07710050630396597660e-11, r);
  return fma64(k, -2.02226624879595063154e-21, r);
}
/* fdlibm k_sin.c, k_cos.c */
TARE_INLINE double sine(double r) {
  const double z = r * r;
  double p = 1.58969099521155010221e-10;
  p = fma64(p, z, -2.50507602534068634195e-08);
  p = fma64(p, z, 2.75573137070700676789e-06);
  p = fma64(p, z, -1.98412698298579493134e-04);
  p = fma64(p, z, 8.33333333332248946124e-03);
  p = fma64(p, z, -1.66666666666666324348e-01);
  return fma64(p * z, r, r);
}
TARE_INLINE double cosine(double r) {
  const double z = r * r;
  double p = -1.13596475577881948265e-11;
  p = fma64(p, z, 2.08757232129817482790e-09);
  p = fma64(p, z, -2.75573143513906633035e-07);
  p = fma64(p, z, 2.48015872894767294178e-05);
  p = fma64(p, z, -1.38888888888741095749e-03);
  p = fma64(p, z, 4.16666666666666019037e-02);
  return fma64(z * z, p, fma64(-0.5, z, 1.0));
}
TARE_INLINE double quadrant(double r, int64_t n) { /* sin(r + n pi/2) */
  const double y = n & 1 ? cosine(r) : sine(r);
  return n & 2 ? -y : y;
}
TARE_EXPORT double tare_sin(double x) {
  int64_t n;
  const double r = reduce(x, &n);
  return x == 0.0 ? x : quadrant(r, n);
}
TARE_EXPORT double tare_cos(double x) {
  int64_t n;
  const double r = reduce(x, &n);
  return quadrant(r, n + 1);
}
TARE_EXPORT double tare_tan(double x) {
  int64_t n;
  const double r = reduce(x, &n), s = sine(r), c = cosine(r);
  return x == 0.0 ? x : n & 1 ? -c / s : s / c;
}

/* fdlibm s_atan.c: four reductions as one select each. */
TARE_EXPORT double tare_atan(double x) {
  const double a = abs64(x);
  const int r0 = a >= 0.4375, r1 = a >= 0.6875, r2 = a >= 1.1875, r3 = a >= 2.4375;
  const double top = r3 ? -1.0 : r2 ? a - 1.5 : r1 ? a - 1.0 : r0 ? 2.0 * a - 1.0 : a;
  const double bottom = r3 ? a : r2 ? 1.0 + 1.5 * a : r1 ? a + 1.0 : r0 ? 2.0 + a : 1.0;
  const double hi = r3 ? 1.57079632679489655800e+00 : r2 ? 9.82793723247329054082e-01 : r1 ? 7.85398163397448278999e-01 : r0 ? 4.63647609000806093515e-01 : 0.0;
  const double lo = r3 ? 6.12323399573676603587e-17 : r2 ? 1.39033110312309984516e-17 : r1 ? 3.06161699786838301793e-17 : r0 ? 2.26987774529616870924e-17 : 0.0;
  const double t = top / bottom, z = t * t;
  double p = 1.62858201153657823623e-02;
  p = fma64(p, z, -3.65315727442169155270e-02);
  p = fma64(p, z, 4.97687799461593236017e-02);
  p = fma64(p, z, -5.83357013379057348645e-02);
  p = fma64(p, z, 6.66107313738753120669e-02);
  p = fma64(p, z, -7.69187620504482999495e-02);
  p = fma64(p, z, 9.09088713343650656196e-02);
  p = fma64(p, z, -1.11111104054623557880e-01);
  p = fma64(p, z, 1.42857142725034663711e-01);
  p = fma64(p, z, -1.99999999998764832476e-01);
  p = fma64(p, z, 3.33333333333329318027e-01);
  const double y = hi - ((t * (z * p) - lo) - t);
  return x == 0.0 ? x : sign64(a == (double)TARE_INF ? 1.57079632679489655800e+00 : y, x);
}
TARE_EXPORT double tare_asin(double x) {
  const double a = abs64(x);
  return a > 1.0 ? (double)TARE_NAN : a == 1.0 ? x * 1.57079632679489655800e+00 : tare_atan(x / __builtin_sqrt((1.0 - a) * (1.0 + a)));
}
TARE_EXPORT double tare_acos(double x) { return abs64(x) > 1.0 ? (double)TARE_NAN : 2.0 * tare_atan(__builtin_sqrt((1.0 - x) / (1.0 + x))); }

TARE_EXPORT double tare_sinh(double x) {
  const double a = abs64(x), e = tare_expm1(a), h = tare_exp(0.5 * a);
  return sign64(a > 20.0 ? 0.5 * h * h : 0.5 * (e + e / (e + 1.0)), x) + (x != x ? x : 0.0);
}
TARE_EXPORT double tare_cosh(double x) {
  const double a = abs64(x), e = tare_exp(a), h = tare_exp(0.5 * a);
  return a > 20.0 ? 0.5 * h * h : 0.5 * (e + 1.0 / e);
}
TARE_EXPORT double tare_asinh(double x) {
  const double a = abs64(x), s = a * a;
  return sign64(a > 1e8 ? tare_log(a) + 0.69314718055994530942 : tare_log1p(a + s / (1.0 + __builtin_sqrt(s + 1.0))), x);
}
TARE_EXPORT double tare_acosh(double x) {
  const double t = x - 1.0;
  return x < 1.0 ? (double)TARE_NAN : x > 1e8 ? tare_log(x) + 0.69314718055994530942 : tare_log1p(t + __builtin_sqrt(2.0 * t + t * t));
}
TARE_EXPORT double tare_atanh(double x) {
  const double a = abs64(x);
  return sign64(0.5 * tare_log1p(2.0 * a / (1.0 - a)), x) + (a > 1.0 || x != x ? (double)TARE_NAN : 0.0);
}
TARE_EXPORT double tare_fmod(double x, double y) { return fmod(x, y); }

#define TARE_THROUGH_DOUBLE(NAME) TARE_EXPORT float NAME##f(float x) { return (float)NAME((double)x); }
TARE_THROUGH_DOUBLE(tare_sin) TARE_THROUGH_DOUBLE(tare_cos) TARE_THROUGH_DOUBLE(tare_tan) TARE_THROUGH_DOUBLE(tare_atan) TARE_THROUGH_DOUBLE(tare_asin)
TARE_THROUGH_DOUBLE(tare_acos) TARE_THROUGH_DOUBLE(tare_sinh) TARE_THROUGH_DOUBLE(tare_cosh) TARE_THROUGH_DOUBLE(tare_asinh) TARE_THROUGH_DOUBLE(tare_acosh)
TARE_THROUGH_DOUBLE(tare_atanh)
TARE_EXPORT float tare_fmodf(float x, float y) { return (float)fmod((double)x, (double)y); } /* exact */
