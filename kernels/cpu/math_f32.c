/* Scalar f32 math without branches: exponentials, logarithms, erf, tanh and the activations built on them. In: any float; out: within 2 ulp (test/unit/kernels
 * sweeps them), NaN in gives NaN out, infinities give the limits, subnormals are honoured. Polynomials: exp and log from Cephes, erf and tanh after N. Juffa. */
#include "kernels/cpu/scalar.h"

/* e^r - 1 - r for |r| <= ln2/2, divided by r^2. */
TARE_INLINE float exp_tail(float r) {
  float p = 1.9875691500e-4f;
  p = fma32(p, r, 1.3981999507e-3f);
  p = fma32(p, r, 8.3334519073e-3f);
  p = fma32(p, r, 4.1665795894e-2f);
  p = fma32(p, r, 1.6666665459e-1f);
  return fma32(p, r, 5.0000001201e-1f);
}
/* Limits x to where e^x is not yet 0 or infinity; NaN passes. Returns the reduced argument and the power of two. */
TARE_INLINE float exp_reduce(float x, int32_t *n) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.5f ? -104.5f : x;
  const float k = round32(x * 1.44269504088896341f, n);
  return fma32(k, 2.12194440e-4f, fma32(k, -0.693359375f, x));
}

TARE_EXPORT float tare_expf(float x) {
  int32_t n;
  const float r = exp_reduce(x, &n);
  return scale32(fma32(exp_tail(r) * r, r, r) + 1.0f, n);
}
TARE_EXPORT float tare_exp2f(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  int32_t n;
  const float r = (x - round32(x, &n)) * 0.693147180559945309f;
  return scale32(fma32(exp_tail(r) * r, r, r) + 1.0f, n);
}
TARE_EXPORT float tare_expm1f(float x) {
  int32_t n;
  const float r = exp_reduce(x, &n), t = fma32(exp_tail(r) * r, r, r);
  const float half = float_of((int32_t)((uint32_t)((n < -125 ? -125 : n) - 1 + 127) << 23));
  const float y = 2.0f * fma32(half, t, half - 0.5f);
  return x == 0.0f ? x : y;
}

/* log(1 + f) + f^2/2 - f for 1 + f in [sqrt(1/2), sqrt(2)]. */
TARE_INLINE float log_tail(float f) {
  float p = 7.0376836292e-2f;
  p = fma32(p, f, -1.1514610310e-1f);
  p = fma32(p, f, 1.1676998740e-1f);
  p = fma32(p, f, -1.2420140846e-1f);
  p = fma32(p, f, 1.4249322787e-1f);
  p = fma32(p, f, -1.6668057665e-1f);
  p = fma32(p, f, 2.0000714765e-1f);
  p = fma32(p, f, -2.4999993993e-1f);
  p = fma32(p, f, 3.3333331174e-1f);
  return p * f * (f * f);
}
/* x = 2^e (1 + f); subnormals are scaled up first. */
TARE_INLINE float log_reduce(float x, float *e) {
  const int small = x < 1.17549435e-38f;
  const int32_t u = bits_of(small ? x * 8388608.0f : x), n = (int32_t)(u - 0x3f3504f3) >> 23;
  *e = (float)(n - (small ? 23 : 0));
  return float_of(u - (int32_t)((uint32_t)n << 23)) - 1.0f;
}
TARE_INLINE float log_special(float y, float x) {
  y = x == TARE_INF ? x : y;
  y = x == 0.0f ? -TARE_INF : y;
  return x < 0.0f || x != x ? TARE_NAN : y;
}
TARE_EXPORT float tare_logf(float x) {
  float e;
  const float f = log_reduce(x, &e);
  float y = fma32(e, -2.12194440e-4f, log_tail(f));
  y = fma32(-0.5f * f, f, y) + f;
  return log_special(fma32(e, 0.693359375f, y), x);
}
TARE_EXPORT float tare_log1pf(float x) {
  /* log(u) with u = 1 + x rounded, plus what the rounding lost, to first order. */
  const float u = 1.0f + x, lost = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  float e;
  const float f = log_reduce(u, &e);
  float y = fma32(e, -2.12194440e-4f, log_tail(f)) + lost / u;
  y = fma32(-0.5f * f, f, y) + f;
  y = fma32(e, 0.693359375f, y);
  y = abs32(x) < 1e-5f ? fma32(-0.5f * x, x, x) : y;
  y = x == TARE_INF ? x : y;
  y = x == -1.0f ? -TARE_INF : y;
  return x < -1.0f || x != x ? TARE_NAN : y;
}
TARE_EXPORT float tare_log2f(float x) { return (float)(tare_log((double)x) * 1.44269504088896340736); }
TARE_EXPORT float tare_powf(float x, float y) { return (float)tare_pow((double)x, (double)y); }

TARE_EXPORT float tare_erff(float x) {
  const float s = x * x;
  float t = abs32(x);
  t = t > 4.0f ? 4.0f : t;
  float near = -5.96761703e-4f;
  near = fma32(near, s, 4.99119423e-3f);
  near = fma32(near, s, -2.67681349e-2f);
  near = fma32(near, s, 1.12819925e-1f);
  near = fma32(near, s, -3.76125336e-1f);
  near = fma32(near, s, 1.28379166e-1f);
  near = fma32(near, x, x);
  float far = fma32(-1.72853470e-5f, t, 3.83197126e-4f);
  far = fma32(far, t * t, fma32(-3.88396438e-3f, t, 2.42546219e-2f));
  far = fma32(far, t, -1.06777877e-1f);
  far = fma32(far, t, -6.34846687e-1f);
  far = fma32(far, t, -1.28717512e-1f);
  far = fma32(far, t, -t);
  far = sign32(1.0f - tare_expf(far), x);
  return t > 0.927734375f ? far : near;
}
TARE_EXPORT float tare_tanhf(float x) {
  const float s = x * x, t = abs32(x);
  float near = 1.57394409e-2f;
  near = fma32(near, s, -5.23025580e-2f);
  near = fma32(near, s, 1.33152470e-1f);
  near = fma32(near, s, -3.33327681e-1f);
  near = fma32(near * s, x, x);
  const float far = 1.0f - 2.0f / (tare_expf(2.0f * t) + 1.0f);
  return t > 0.55f ? sign32(far, x) : near;
}
TARE_EXPORT float tare_sigmoidf(float x) {
  const float e = tare_expf(-abs32(x)), d = 1.0f + e;
  return (x < 0.0f ? e : 1.0f) / d + (x != x ? x : 0.0f);
}
TARE_EXPORT float tare_softplusf(float x) { return (x > 0.0f ? x : 0.0f) + tare_log1pf(tare_expf(-abs32(x))); }
TARE_EXPORT float tare_siluf(float x) { return x < -104.0f ? x * 0.0f - 0.0f : x * tare_sigmoidf(x); }
/* erf by a rational function (odd 13 over even 8, |error| < 4e-7), 2.5 times as fast as tare_erff: in gelu the absolute error counts. Saturates exactly. */
TARE_INLINE float erf_rational(float x) {
  const float t = abs32(x) > 4.0f ? sign32(4.0f, x) : x, s = t * t;
  float p = -2.72614225801306e-10f;
  p = fma32(p, s, 2.77068142495902e-08f);
  p = fma32(p, s, -2.10102402082508e-06f);
  p = fma32(p, s, -5.69250639462346e-05f);
  p = fma32(p, s, -7.34990630326855e-04f);
  p = fma32(p, s, -2.95459980854025e-03f);
  p = fma32(p, s, -1.60960333262415e-02f);
  float q = -1.45660718464996e-05f;
  q = fma32(q, s, -2.13374055278905e-04f);
  q = fma32(q, s, -1.68282697438203e-03f);
  q = fma32(q, s, -7.37332916720468e-03f);
  q = fma32(q, s, -1.42647390514189e-02f);
  const float y = t * p / q;
  return abs32(x) >= 4.0f ? sign32(1.0f, x) : y;
}
TARE_EXPORT float tare_gelu_erff(float x) {
  const float h = 0.5f * x;
  return fma32(h, erf_rational(x * 0.707106781186547524f), h);
}
TARE_EXPORT float tare_gelu_tanhf(float x) { /* (1 + tanh u) / 2 = 1 / (1 + e^-2u) */
  const float twice = 1.595769121605730711f * fma32(0.044715f * x * x, x, x);
  return x / (1.0f + tare_expf(-twice));
}
