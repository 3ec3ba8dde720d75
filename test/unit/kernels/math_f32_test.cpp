// f32 math against long double: every 16411th bit pattern of all floats (NaN, infinities, subnormals, both zeros come along), then dense where it matters.
// Limits are kernels.h's: 2 ulp; activations composed of two functions 3 ulp of their own scale.
#include "kernels/cpu/kernels.h"
#include "ulp.h"
#include <cstring>
#include <gtest/gtest.h>

namespace {

float fromBits(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }

void sweep(const char *name, float (*f)(float), long double (*exact)(long double), double limit, float largest = INFINITY) {
  double worst = 0;
  float at = 0;
  auto look = [&](float x) {
    if (std::abs(x) > largest && !std::isnan(x)) return;
    const double e = ulpError(f(x), exact((long double)x));
    if (e > worst) worst = e, at = x;
  };
  for (uint64_t u = 0; u <= 0xffffffffull; u += 16411) look(fromBits(uint32_t(u)));
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 88.72284f, -103.97f, -87.3365f, 3.4028235e38f}) look(x);
  for (int i = -40000; i <= 40000; ++i) look(float(i) * 5e-4f);
  EXPECT_LE(worst, limit) << name << " at " << at << ": " << f(at) << " exact " << double(exact(at));
}

#define EXACT(expression) [](long double x) -> long double { return expression; }

TEST(MathF32, Exponentials) {
  sweep("exp", tare_expf, EXACT(expl(x)), 2);
  sweep("exp2", tare_exp2f, EXACT(exp2l(x)), 2);
  sweep("expm1", tare_expm1f, EXACT(expm1l(x)), 2);
}
TEST(MathF32, Logarithms) {
  sweep("log", tare_logf, EXACT(x < 0 ? (long double)NAN : logl(x)), 2);
  sweep("log1p", tare_log1pf, EXACT(x < -1 ? (long double)NAN : log1pl(x)), 2);
  sweep("log2", tare_log2f, EXACT(x < 0 ? (long double)NAN : log2l(x)), 1);
}
TEST(MathF32, Saturating) {
  sweep("erf", tare_erff, EXACT(erfl(x)), 2);
  sweep("tanh", tare_tanhf, EXACT(tanhl(x)), 2);
  sweep("sigmoid", tare_sigmoidf, EXACT(x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x))), 2.5);
  sweep("softplus", tare_softplusf, EXACT(x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x))), 2.5);
}
TEST(MathF32, Activations) {
  // Absolute error against the scale of the result where the exact value cancels: x = -3 has gelu(x) = -0.004 from 1 + erf near 0.
  for (int i = -120000; i <= 120000; ++i) {
    const float x = float(i) * 1e-4f;
    const long double e = x, gelu = 0.5L * e * (1 + erfl(e / sqrtl(2.0L))), inner = sqrtl(2 / acosl(-1.0L)) * (e + 0.044715L * e * e * e);
    ASSERT_NEAR(tare_gelu_erff(x), double(gelu), 2.5e-7 * std::max(1.0f, std::abs(x))) << x;
    ASSERT_NEAR(tare_gelu_tanhf(x), double(0.5L * e * (1 + tanhl(inner))), 2.5e-7 * std::max(1.0f, std::abs(x))) << x;
    ASSERT_LE(ulpError(tare_siluf(x), e / (1 + expl(-e))), 3.5) << x;
  }
  for (float (*f)(float) : {tare_gelu_erff, tare_gelu_tanhf, tare_siluf}) {
    EXPECT_EQ(f(INFINITY), INFINITY);
    EXPECT_EQ(f(500.0f), 500.0f);
    EXPECT_EQ(f(-500.0f), 0.0f);
    EXPECT_TRUE(std::isnan(f(NAN)));
  }
}
TEST(MathF32, Trigonometry) {
  sweep("sin", tare_sinf, EXACT(sinl(x)), 0.51, 1.07e9f);
  sweep("cos", tare_cosf, EXACT(cosl(x)), 0.51, 1.07e9f);
  sweep("tan", tare_tanf, EXACT(tanl(x)), 0.51, 1.07e9f);
  for (float x = 99000; x < 101000; x += 0.37f) ASSERT_LE(ulpError(tare_sinf(x), sinl(x)), 0.51) << x;
  sweep("asin", tare_asinf, EXACT(asinl(x)), 0.51);
  sweep("acos", tare_acosf, EXACT(acosl(x)), 0.51);
  sweep("atan", tare_atanf, EXACT(atanl(x)), 0.51);
  sweep("sinh", tare_sinhf, EXACT(sinhl(x)), 0.51);
  sweep("cosh", tare_coshf, EXACT(coshl(x)), 0.51);
  sweep("asinh", tare_asinhf, EXACT(asinhl(x)), 0.51);
  sweep("acosh", tare_acoshf, EXACT(x < 1 ? (long double)NAN : acoshl(x)), 0.51);
  sweep("atanh", tare_atanhf, EXACT(fabsl(x) > 1 ? (long double)NAN : atanhl(x)), 0.51);
}
TEST(MathF32, Pow) {
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 0.5f, -0.5f, 3.0f, -3.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, 16777217.0f, 1e10f};
  for (float x : special)
    for (float y : special) EXPECT_LE(ulpError(tare_powf(x, y), powl(x, y)), 0.51) << x << " ^ " << y << " = " << tare_powf(x, y);
  for (int i = 0; i < 400; ++i)
    for (int j = -100; j < 100; ++j) {
      const float x = std::exp(float(i - 200) * 0.05f), y = float(j) * 0.37f;
      ASSERT_LE(ulpError(tare_powf(x, y), powl(x, y)), 0.51) << x << " ^ " << y;
    }
}
TEST(MathF32, Fmod) {
  for (float x : {5.3f, -5.3f, 1e30f, 3e-39f, 0.0f, -0.0f, INFINITY, NAN})
    for (float y : {2.0f, -0.7f, 1e-40f, 3e10f, INFINITY, 0.0f}) EXPECT_EQ(ulpError(tare_fmodf(x, y), fmodl(x, y)), 0) << x << " " << y;
}

} // namespace
