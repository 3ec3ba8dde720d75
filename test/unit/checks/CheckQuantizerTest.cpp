// The quantiser of fidelity checks against brute force and plain rounding on seeded data: ranges, determinism, and the error that it is there to lower.
#include "compiler/checks/CheckQuantizer.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace tare::checks;

namespace {

struct Problem {
  CheckWeights weights;
  std::vector<double> states; // [tokens, width]
  int64_t tokens;
};

/// States with a mean and a few strong directions, as the ones behind a normalisation are.
Problem problem(int64_t heads, int64_t rank, int64_t width, int64_t tokens, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Problem p{{heads, rank, width, 0, {}, {}, {}, {}}, {}, tokens};
  for (int64_t i = 0; i < heads * rank * width; ++i) p.weights.w.push_back(static_cast<float>(normal(random) / std::sqrt(double(width))));
  std::vector<double> directions(4 * width), mean(width);
  for (double &d : directions) d = normal(random);
  for (double &m : mean) m = normal(random);
  for (int64_t t = 0; t < tokens; ++t) {
    double a[4];
    for (double &x : a) x = normal(random);
    for (int64_t j = 0; j < width; ++j) {
      double h = mean[j] + 0.3 * normal(random);
      for (int k = 0; k < 4; ++k) h += a[k] * directions[k * width + j];
      p.states.push_back(h);
    }
  }
  return p;
}

/// sum over tokens and rows of ((W - Wq) h)^2.
double errorOf(const Problem &p, const QuantizedCheck &q) {
  std::vector<double> d = dequantized(q, p.weights.width);
  double sum = 0;
  int64_t width = p.weights.width, rows = static_cast<int64_t>(d.size()) / width;
  for (int64_t t = 0; t < p.tokens; ++t)
    for (int64_t r = 0; r < rows; ++r) {
      double z = 0;
      for (int64_t j = 0; j < width; ++j) z += (p.weights.w[r * width + j] - d[r * width + j]) * p.states[t * width + j];
      sum += z * z;
    }
  return sum;
}

QuantizedCheck plain(const CheckWeights &weights, int64_t bits) {
  int64_t width = weights.width, groups = (width + 31) / 32, rows = weights.heads * weights.rank;
  double most = bits == 4 ? 7 : 127;
  QuantizedCheck q{bits, 32, {}, {}};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t g = 0; g < groups; ++g) {
      double largest = 0;
      for (int64_t j = g * 32; j < std::min(width, g * 32 + 32); ++j) largest = std::max(largest, std::abs(double(weights.w[r * width + j])));
      q.scale.push_back(static_cast<float>(largest / most));
      for (int64_t j = g * 32; j < std::min(width, g * 32 + 32); ++j) q.q.push_back(static_cast<int8_t>(std::lround(weights.w[r * width + j] / (largest / most))));
    }
  return q;
}

QuantizedCheck searched(const Problem &p, int64_t bits, unsigned threads = 1) {
  StateMoments moments(p.weights.width);
  moments.add(p.states.data(), p.tokens);
  return quantizeCheck(p.weights, moments, bits, threads);
}

} // namespace

TEST(CheckQuantizer, HalvesTheErrorOfPlainRounding) {
  for (int64_t bits : {4, 8})
    for (unsigned seed = 1; seed <= 3; ++seed) {
      Problem p = problem(3, 8, 128, 400, seed);
      double found = errorOf(p, searched(p, bits)), rounded = errorOf(p, plain(p.weights, bits));
      EXPECT_LT(found, 0.25 * rounded) << "seed " << seed << ", int" << bits; // squares: half the distance error
    }
}

/// One row of four columns: every code of every scale in a fine grid is tried.
TEST(CheckQuantizer, ComesCloseToBruteForce) {
  double ratio = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    Problem p = problem(1, 1, 4, 50, seed);
    double best = std::numeric_limits<double>::infinity(), largest = 0;
    for (float w : p.weights.w) largest = std::max(largest, std::abs(double(w)));
    double moment[4][4] = {};
    for (int64_t t = 0; t < p.tokens; ++t)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) moment[i][j] += p.states[t * 4 + i] * p.states[t * 4 + j];
    for (int s = 20; s <= 100; ++s)
      for (int code = 0; code < 1 << 16; ++code) {
        double scale = largest / 7 * s / 80, e[4], sum = 0;
        for (int j = 0; j < 4; ++j) e[j] = p.weights.w[j] - ((code >> 4 * j & 15) - 8) * scale;
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sum += e[i] * e[j] * moment[i][j];
        best = std::min(best, sum);
      }
    ratio += std::sqrt(errorOf(p, searched(p, 4)) / best) / 8;
  }
  EXPECT_LT(ratio, 3) << "mean ratio of distance errors";
}

TEST(CheckQuantizer, CodesAndScalesAreInRangeForAnyWidth) {
  for (int64_t width : {1, 31, 32, 33, 130}) {
    Problem p = problem(2, 3, width, 40, 7);
    for (int64_t bits : {4, 8}) {
      QuantizedCheck q = searched(p, bits);
      EXPECT_EQ(q.group, 32);
      EXPECT_EQ(q.q.size(), p.weights.w.size());
      EXPECT_EQ(q.scale.size(), size_t(6 * ((width + 31) / 32)));
      for (int8_t c : q.q) EXPECT_TRUE(bits == 4 ? c >= -8 && c <= 7 : c >= -127) << int(c);
      for (float s : q.scale) EXPECT_TRUE(std::isfinite(s) && s != 0) << s;
    }
  }
}

TEST(CheckQuantizer, EqualBytesWithAnyNumberOfThreads) {
  Problem p = problem(5, 30, 70, 100, 11);
  QuantizedCheck one = searched(p, 4, 1);
  for (unsigned threads : {2, 3, 16}) {
    QuantizedCheck many = searched(p, 4, threads);
    EXPECT_EQ(many.q, one.q) << threads;
    EXPECT_EQ(many.scale, one.scale) << threads;
  }
}

TEST(CheckQuantizer, NoStatesZeroWeightsAndStatesThatAreNotFinite) {
  Problem p = problem(1, 4, 64, 20, 3);
  Problem none = p;
  none.tokens = 0, none.states.clear();
  EXPECT_LE(errorOf(p, searched(none, 8)), errorOf(p, plain(p.weights, 8)) * 1.5);

  Problem zero = p;
  std::fill(zero.weights.w.begin(), zero.weights.w.end(), 0.f);
  for (int8_t c : searched(zero, 4).q) EXPECT_EQ(c, 0);

  Problem poisoned = p;
  poisoned.states[64 * 5 + 3] = std::numeric_limits<double>::quiet_NaN();
  Problem without = p;
  without.states.erase(without.states.begin() + 64 * 5, without.states.begin() + 64 * 6);
  without.tokens = 19;
  EXPECT_EQ(searched(poisoned, 4).q, searched(without, 4).q);
}

TEST(CheckQuantizer, MomentsAreSumsInTheOrderOfTokens) {
  Problem p = problem(1, 1, 9, 13, 5);
  StateMoments moments(9), parts(9);
  moments.add(p.states.data(), 13);
  parts.add(p.states.data(), 6), parts.add(p.states.data() + 54, 7);
  std::vector<double> second = moments.second();
  EXPECT_EQ(second, parts.second());
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 9; ++j) {
      double sum = 0;
      for (int t = 0; t < 13; ++t) sum += p.states[t * 9 + i] * p.states[t * 9 + j];
      EXPECT_DOUBLE_EQ(second[i * 9 + j], sum / 13);
    }
}
