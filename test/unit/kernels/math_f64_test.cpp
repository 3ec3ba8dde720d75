// f64 math against long double (64-bit mantissa: 0.0005 ulp of a double): bit patterns over all doubles and a dense middle. Limits are kernels.h's.
#include "kernels/cpu/kernels.h"
#include "ulp.h"
#include <cstring>
#include <gtest/gtest.h>

namespace {

void sweep(const char *name, double (*f)(double), long double (*exact)(long double), double limit, double largest = INFINITY) {
  double worst = 0, at = 0;
  auto look = [&](double x) {
    if (std::abs(x) > largest && !std::isnan(x)) return;
    const double e = ulpError(f(x), exact((long double)x));
    if (e > worst) worst = e, at = x;
  };
  for (uint64_t i = 0; i < 60000; ++i) {
    const uint64_t u = i * 0x9e3779b97f4a7c15ull;
    double x;
    memcpy(&x, &u, 8);
    look(x);
  }
  for (double x : {0.0, -0.0, 1.0, -1.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 5e-324, 709.78, -745.1}) look(x);
  for (int i = -40000; i <= 40000; ++i) look(i * 5.03e-4);
  EXPECT_LE(worst, limit) << name << " at " << at << ": " << f(at) << " exact " << double(exact(at));
}
#define EXACT(expression) [](long double x) -> long double { return expression; }

TEST(MathF64, ExponentialsAndLogarithms) {
  sweep("exp", tare_exp, EXACT(expl(x)), 2);
  sweep("expm1", tare_expm1, EXACT(expm1l(x)), 3);
  sweep("log", tare_log, EXACT(x < 0 ? (long double)NAN : logl(x)), 2);
  sweep("log1p", tare_log1p, EXACT(x < -1 ? (long double)NAN : log1pl(x)), 3);
}
TEST(MathF64, Saturating) {
  sweep("erf", tare_erf, EXACT(erfl(x)), 6);
  sweep("tanh", tare_tanh, EXACT(tanhl(x)), 4);
  sweep("sigmoid", tare_sigmoid, EXACT(x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x))), 4);
  sweep("softplus", tare_softplus, EXACT(x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x))), 4);
}
TEST(MathF64, Trigonometry) {
  for (double x = -1e6; x < 1e6; x += 171.3) {
    ASSERT_NEAR(tare_sin(x), double(sinl(x)), 3e-16) << x;
    ASSERT_NEAR(tare_cos(x), double(cosl(x)), 3e-16) << x;
  }
  sweep("tan", tare_tan, EXACT(tanl(x)), 4, 1.5);
  sweep("asin", tare_asin, EXACT(asinl(x)), 4);
  sweep("acos", tare_acos, EXACT(acosl(x)), 4);
  sweep("atan", tare_atan, EXACT(atanl(x)), 2);
  sweep("sinh", tare_sinh, EXACT(sinhl(x)), 4, 700);
  sweep("cosh", tare_cosh, EXACT(coshl(x)), 4, 700);
  sweep("asinh", tare_asinh, EXACT(asinhl(x)), 4);
  sweep("acosh", tare_acosh, EXACT(x < 1 ? (long double)NAN : acoshl(x)), 4);
  sweep("atanh", tare_atanh, EXACT(fabsl(x) > 1 ? (long double)NAN : atanhl(x)), 4);
}
TEST(MathF64, Pow) {
  for (int i = 0; i < 300; ++i)
    for (int j = -60; j < 60; ++j) {
      const double x = std::exp((i - 150) * 0.1), y = j * 0.73;
      ASSERT_LE(ulpError(tare_pow(x, y), powl(x, y)), 64) << x << " ^ " << y;
    }
  EXPECT_EQ(tare_pow(-2.0, 3.0), -8.0);
  EXPECT_EQ(tare_pow(3.0, 2.0), 9.0);
}

} // namespace
