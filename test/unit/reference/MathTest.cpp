// Our elementary functions against long double ones of libm: at most 2.5 ulp, exact at special values.
#include "compiler/reference/Math.h"
#include <gtest/gtest.h>
#include <random>

using namespace tare::reference;

namespace {

struct Case {
  const char *name;
  double (*own)(double);
  long double (*exact)(long double);
  double low, high;
};
const Case kCases[] = {
    {"exp", math::exp, [](long double x) { return expl(x); }, -30, 30},      {"exp_wide", math::exp, [](long double x) { return expl(x); }, -700, 709},
    {"log", math::log, [](long double x) { return logl(x); }, 1e-3, 3},      {"log_wide", math::log, [](long double x) { return logl(x); }, 1, 1e12},
    {"erf", math::erf, [](long double x) { return erfl(x); }, -7, 7},        {"erf_small", math::erf, [](long double x) { return erfl(x); }, -0.1, 0.1},
    {"tanh", math::tanh, [](long double x) { return tanhl(x); }, -20, 20},   {"tanh_small", math::tanh, [](long double x) { return tanhl(x); }, -1, 1},
    {"sin", math::sin, [](long double x) { return sinl(x); }, -1e5, 1e5},    {"cos", math::cos, [](long double x) { return cosl(x); }, -1e5, 1e5},
    {"sigmoid", math::sigmoid, [](long double x) { return 1 / (1 + expl(-x)); }, -40, 40},
    {"softplus", math::softplus, [](long double x) { return log1pl(expl(x)); }, -40, 40},
};

TEST(Math, WithinTwoAndAHalfUlp) {
  for (const Case &c : kCases) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform(c.low, c.high);
    for (int i = 0; i < 100000; ++i) {
      double x = uniform(random);
      long double want = c.exact(x);
      double ulp = std::nextafter(std::fabs(static_cast<double>(want)), INFINITY) - std::fabs(static_cast<double>(want));
      ASSERT_LE(std::fabs(static_cast<double>(c.own(x) - want)), 2.5 * ulp) << c.name << " at " << x;
    }
  }
}

TEST(Math, SpecialValues) {
  EXPECT_EQ(math::exp(-INFINITY), 0);
  EXPECT_EQ(math::exp(INFINITY), INFINITY);
  EXPECT_EQ(math::exp(0), 1);
  EXPECT_TRUE(std::isnan(math::exp(NAN)));
  EXPECT_EQ(math::log(0), -INFINITY);
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_EQ(math::erf(INFINITY), 1);
  EXPECT_TRUE(std::signbit(math::erf(-0.0)));
  EXPECT_EQ(math::tanh(-INFINITY), -1);
  EXPECT_TRUE(std::isnan(math::tanh(NAN)));
  EXPECT_EQ(math::sigmoid(-INFINITY), 0);
  EXPECT_EQ(math::sigmoid(0), 0.5);
  EXPECT_TRUE(std::isnan(math::sigmoid(NAN)));
  EXPECT_EQ(math::softplus(-INFINITY), 0);
  EXPECT_TRUE(std::signbit(math::sin(-0.0)));
}

} // namespace
