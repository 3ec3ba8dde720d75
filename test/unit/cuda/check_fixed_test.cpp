// Integer prototypes on tensor cores (kernels/cuda/check_fixed.cuh) on the emulator: distances against double within a bound that follows from the arithmetic,
// against the CPU's kernel bit by bit, and a row's against its own with other neighbours. Groups, ranks and widths are odd; rows end inside of a tile of eight.
#include "kernels/cpu/kernels.h"
#include "kernels/cuda/check.cuh"
#include "test/unit/cuda/Launch.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace tare;
using test::Buffer;
using test::run;

namespace {

/// Prototypes in integers of +-most, in panels, and their origins.
template <class Shape, int Most> struct Prototypes {
  static constexpr int K = Shape::kHeads, R = Shape::kRank, D = Shape::kWidth, P = Shape::kPanels, G = (D + Shape::kGroup - 1) / Shape::kGroup;
  std::vector<int> q = std::vector<int>(K * R * D);
  std::vector<float> scale = std::vector<float>(K * P * G * 32), p = std::vector<float>(K * P * 32);
  std::vector<u8> nibbles = std::vector<u8>(static_cast<size_t>(K) * P * D * 16, 0x88);
  std::vector<signed char> bytes = std::vector<signed char>(static_cast<size_t>(K) * P * D * 32);

  explicit Prototypes(std::mt19937 &random) {
    std::normal_distribution<float> normal(0, 1);
    std::uniform_real_distribution<float> uniform(0.01f, 0.1f);
    for (int i = 0; i < K * R; ++i) {
      const int panel = i / R * P + i % R / 32, c = i % R % 32;
      p[panel * 32 + c] = normal(random);
      for (int g = 0; g < G; ++g) scale[(panel * G + g) * 32 + c] = uniform(random);
      for (int d = 0; d < D; ++d) {
        const int v = static_cast<int>(random() % (2 * Most + 2)) - Most - 1; // int4 has -8, int8 -128
        q[i * D + d] = v;
        u8 &byte = nibbles[(static_cast<size_t>(panel) * D + d) * 16 + c % 16];
        if (Most == 7) byte = static_cast<u8>(c < 16 ? (byte & 0xf0) | (v + 8) : (byte & 0x0f) | (v + 8) << 4);
        else bytes[(static_cast<size_t>(panel) * D + d) * 32 + c] = static_cast<signed char>(v);
      }
    }
  }
  double weight(int i, int d) const { return static_cast<double>(q[i * D + d]) * scale[((i / R * P + i % R / 32) * G + d / Shape::kGroup) * 32 + i % R % 32]; }
  /// The distance of x to one head, and how far an f32 result may be from it. A value is off by at most half a step of fixed point (largest of its group / 32512)
  /// and three roundings of that many steps; then per group three roundings of its sum, and one of all sums so far. Squares are added by 31 + 5 + panels roundings.
  void distance(const float *x, int head, double &exact, double &bound) const {
    constexpr double u = 0x1p-24;
    double sum = 0, off = 0;
    for (int r = 0; r < R; ++r) {
      const int i = head * R + r;
      double z = 0, absolute = 0, rounded = 0;
      for (int g = 0; g < G; ++g) {
        double most = 0, weights = 0;
        for (int d = g * Shape::kGroup; d < std::min(D, (g + 1) * Shape::kGroup); ++d) {
          z += weight(i, d) * x[d], absolute += std::fabs(weight(i, d) * x[d]);
          most = std::max(most, std::fabs(static_cast<double>(x[d]))), weights += std::fabs(weight(i, d));
        }
        rounded += most * weights * (0.5 / 32512 + 3 * u);
      }
      const double origin = p[(head * P + r / 32) * 32 + r % 32], error = rounded + (absolute + rounded) * (G + 3) * u + std::fabs(z - origin) * u;
      sum += (z - origin) * (z - origin), off += error * error;
    }
    exact = std::sqrt(sum);
    bound = std::sqrt(off) + (exact + std::sqrt(off)) * (36 + P + 2) * u;
  }
};

/// What the split form's launch leaves for the rows of `list`, in their order: [row][head][panel].
template <class Shape, int Most, class H>
std::vector<float> distancesOf(const Prototypes<Shape, Most> &model, const std::vector<H> &h, const std::vector<i64> &list) {
  const i64 count = static_cast<i64>(list.size()), rows = static_cast<i64>(h.size()) / Shape::kWidth;
  Buffer<H> dh(h, "h");
  Buffer<float> scale(model.scale, "scale"), p(model.p, "p"), distances(list.size() * Shape::kHeads * Shape::kPanels, "distances");
  Buffer<u8> nibbles(model.nibbles, "q");
  Buffer<signed char> bytes(model.bytes, "q");
  Buffer<i64> listed(list, "rows");
  Buffer<u32> words(1, "words");
  ListedRun request{listed, count, rows, words, words};
  auto o = run("distances", {{5, 1, 1}, {128, 1, 1}, Shape::Fixed::kBytes}, [&] {
    FloatPanels<Shape, float> dense{}; // of a run without anchors
    if constexpr (Most == 7) check_distances<Shape, H>(dh, rows, request, Int4Panels<Shape>{nibbles, scale}, dense, p, distances);
    else check_distances<Shape, H>(dh, rows, request, Int8Panels<Shape>{bytes, scale}, dense, p, distances);
  });
  EXPECT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  return {&distances[0], &distances[0] + distances.count};
}
template <class Shape> float distance(const std::vector<float> &squares, size_t row, int head) {
  float sum = 0;
  for (int panel = 0; panel < Shape::kPanels; ++panel) sum += squares[(row * Shape::kHeads + head) * Shape::kPanels + panel];
  return std::sqrt(sum);
}

template <class Shape, int Most, class H = float> void againstDouble() {
  static_assert(Int4Panels<Shape>::kFixed && Int8Panels<Shape>::kFixed);
  constexpr int D = Shape::kWidth;
  SCOPED_TRACE(testing::Message() << "K=" << Shape::kHeads << " R=" << Shape::kRank << " D=" << D << " group=" << Shape::kGroup << " most=" << Most << " seed=" << test::seed());
  std::mt19937 random(static_cast<unsigned>(test::seed() + D));
  Prototypes<Shape, Most> model(random);
  std::normal_distribution<float> normal(0, 1);
  constexpr int kRows = 33;
  std::vector<H> h(kRows * D);
  for (int i = 0; i < kRows * D; ++i) h[i] = from_float<H>(normal(random) * (i % 5 ? 1.0f : 20.0f)); // a few large values in every group
  std::vector<float> x(h.size());
  for (int d = 0; d < D; ++d) h[3 * D + d] = from_float<H>(0.0f);
  if (D > 2) h[5 * D + 2] = from_float<H>(1e-38f);
  for (size_t i = 0; i < h.size(); ++i) x[i] = to_float(h[i]);
  std::vector<i64> all(kRows);
  for (int i = 0; i < kRows; ++i) all[i] = i;
  const auto squares = distancesOf<Shape, Most>(model, h, all);
  double worst = 0;
  for (int row = 0; row < kRows; ++row)
    for (int head = 0; head < Shape::kHeads; ++head) {
      double exact, bound;
      model.distance(x.data() + row * D, head, exact, bound);
      const double off = std::fabs(distance<Shape>(squares, row, head) - exact);
      ASSERT_LE(off, bound) << "row " << row << " head " << head;
      worst = std::max(worst, off / bound);
    }
  printf("D=%d group=%d most=%d: at worst %.0f%% of the bound\n", D, Shape::kGroup, Most, 100 * worst);
  EXPECT_GT(worst, 0.001); // a bound that says something
  constexpr size_t kEach = Shape::kHeads * Shape::kPanels;
  for (size_t count : {1, 7, 8, 9, 15, 16, 17}) { // other neighbours, other places: the same bits
    std::vector<i64> some;
    for (size_t i = 0; i < count; ++i) some.push_back(static_cast<i64>(kRows - count + i - (i + 1 == count ? 0 : count % 2)));
    const auto again = distancesOf<Shape, Most>(model, h, some);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(std::memcmp(&again[i * kEach], &squares[some[i] * kEach], kEach * 4), 0) << count << " rows, row " << some[i];
  }
}

TEST(CudaCheckFixed, Int4AgainstDouble) {
  againstDouble<CheckShape<3, 64, 128>, 7>();
  againstDouble<CheckShape<5, 40, 72, 16>, 7>();
  againstDouble<CheckShape<2, 33, 77, 24>, 7>();       // rows at any address, groups that no vector divides
  againstDouble<CheckShape<1, 7, 130, 128>, 7>();      // a group of four steps, of which the last group has one begun
  againstDouble<CheckShape<2, 32, 650, 40>, 7>();      // chunks of eight groups of two steps
  againstDouble<CheckShape<1, 33, 1111, 32>, 7>();     // more groups than a chunk, and an odd rest
  againstDouble<CheckShape<1, 40, 7, 5>, 7>();
  againstDouble<CheckShape<7, 1, 33, 1>, 7>();         // a scale per value; one column of a panel
  againstDouble<CheckShape<3, 64, 128>, 7, f16>();
  againstDouble<CheckShape<1, 40, 75, 32>, 7, bf16>();
}
TEST(CudaCheckFixed, Int8AgainstDouble) {
  againstDouble<CheckShape<3, 64, 128>, 127>();
  againstDouble<CheckShape<5, 40, 72, 16>, 127>();
  againstDouble<CheckShape<2, 33, 77, 24>, 127>();
  againstDouble<CheckShape<1, 7, 260, 128>, 127>();
  againstDouble<CheckShape<1, 33, 1111, 32>, 127>();
  againstDouble<CheckShape<1, 40, 75, 32>, 127, f16>();
}
TEST(CudaCheckFixed, LargerGroupsAreDecodedToFloats) {
  static_assert(!Int4Panels<CheckShape<1, 32, 300, 129>>::kFixed && CheckShape<1, 32, 300, 129>::Fixed::kBytes == 0);
  using Shape = CheckShape<1, 32, 300, 150>;
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  Prototypes<Shape, 7> model(random);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> h(3 * 300);
  for (float &v : h) v = normal(random);
  const auto squares = distancesOf<Shape, 7>(model, h, {0, 2});
  for (int i = 0; i < 2; ++i) {
    double exact, bound;
    model.distance(h.data() + i * 2 * 300, 0, exact, bound);
    EXPECT_NEAR(distance<Shape>(squares, i, 0), exact, exact * 300 * 0x1p-24);
  }
}

/// The CPU's words for the rows of `list`, one per row.
template <class Shape> std::vector<u32> wordsOfCpu(const Prototypes<Shape, 7> &model, const std::vector<float> &h, const std::vector<float> &tau) {
  const i64 rows = static_cast<i64>(h.size()) / Shape::kWidth;
  std::vector<int64_t> listed(rows);
  for (i64 i = 0; i < rows; ++i) listed[i] = i;
  u32 nothing = 0, last = 0;
  tare_check_rows request{listed.data(), rows, rows, &nothing, &last, nullptr};
  tare_check check{&request, nullptr, TARE_F32, model.nibbles.data(), TARE_I4, model.scale.data(), Shape::kGroup, model.p.data(), tau.data(), Shape::kHeads, Shape::kRank, Shape::kWidth};
  std::vector<u32> words(rows);
  tare_check_bits(&check, h.data(), Shape::kWidth, 0, rows, words.data(), nullptr, 1);
  return words;
}

/// With one prototype per head a distance is |z|, which no order of squares can change. A threshold at the GPU's distance and the next one above it then say
/// whether the CPU's has the same bits: d < d does not hold, d < next does.
template <class Shape> void sameBitsAsTheCpu() {
  static_assert(Shape::kRank == 1);
  constexpr int D = Shape::kWidth, kRows = 17;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "needs AVX2";
  std::mt19937 random(static_cast<unsigned>(test::seed() + D));
  Prototypes<Shape, 7> model(random);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> h(kRows * D);
  for (float &v : h) v = normal(random) * 3;
  std::vector<i64> all(kRows);
  for (int i = 0; i < kRows; ++i) all[i] = i;
  const auto squares = distancesOf<Shape, 7>(model, h, all);
  for (int row = 0; row < kRows; ++row) {
    const std::vector<float> one(h.begin() + row * D, h.begin() + (row + 1) * D);
    std::vector<float> tau(Shape::kHeads), next(Shape::kHeads);
    for (int k = 0; k < Shape::kHeads; ++k) tau[k] = distance<Shape>(squares, row, k), next[k] = std::nextafter(tau[k], std::numeric_limits<float>::infinity());
    EXPECT_EQ(wordsOfCpu<Shape>(model, one, tau)[0], 0u) << "row " << row;
    EXPECT_EQ(wordsOfCpu<Shape>(model, one, next)[0], ~0u >> (32 - Shape::kHeads)) << "row " << row;
  }
}
TEST(CudaCheckFixed, SameBitsAsTheCpu) {
  sameBitsAsTheCpu<CheckShape<31, 1, 128>>();
  sameBitsAsTheCpu<CheckShape<17, 1, 77, 24>>();
  sameBitsAsTheCpu<CheckShape<17, 1, 260, 64>>(); // totals beyond 2^24 are rounded once
  sameBitsAsTheCpu<CheckShape<9, 1, 700, 128>>();
  sameBitsAsTheCpu<CheckShape<32, 1, 600, 32>>();
}

TEST(CudaCheckFixed, RowsThatAreNotFiniteGiveNaNAlone) {
  using Shape = CheckShape<2, 33, 77, 24>;
  constexpr int D = 77;
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  Prototypes<Shape, 7> model(random);
  std::vector<float> h(9 * D, 0.5f);
  const auto clean = distancesOf<Shape, 7>(model, h, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  h[1 * D + 76] = std::numeric_limits<float>::infinity(), h[4 * D] = -std::numeric_limits<float>::infinity(), h[8 * D + 30] = std::numeric_limits<float>::quiet_NaN();
  const auto squares = distancesOf<Shape, 7>(model, h, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  for (int row = 0; row < 9; ++row)
    for (int head = 0; head < 2; ++head)
      if (row == 1 || row == 4 || row == 8) EXPECT_TRUE(std::isnan(distance<Shape>(squares, row, head))) << row;
      else EXPECT_EQ(distance<Shape>(squares, row, head), distance<Shape>(clean, row, head)) << row;
}

} // namespace
