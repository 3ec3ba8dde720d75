// Fidelity checks in the GEMM driver against double distances: every storage type of W, ranks and widths beside the panel and group borders, dense and listed rows,
// bits carried in and over chunks, batch elements and threads. Random thresholds lie far from every distance. A row's bits may not depend on its neighbours.
#include "kernels/cpu/kernels.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {
constexpr int64_t kGroup = 32;

struct Case {
  int64_t heads, rank, width, tokens, batch, columns;
};

/// W in natural order and as the kernel reads it.
struct Weights {
  std::vector<double> value;
  std::vector<char> packed;
  std::vector<float> scale, p;
};
int64_t panelsOf(const Case &c) { return (c.rank + 31) / 32; }

Weights weightsOf(const Case &c, int kind, const std::vector<float> &w, const std::vector<float> &p) {
  int64_t panels = panelsOf(c), groups = (c.width + kGroup - 1) / kGroup;
  const int64_t bytes = kind == TARE_F32 ? 128 : kind == TARE_I8 ? 32 : kind == TARE_I4 ? 16 : 64;
  Weights out;
  out.value.resize(w.size());
  out.packed.resize(c.heads * panels * c.width * bytes);
  out.scale.assign(c.heads * panels * groups * 32, 0);
  out.p.assign(c.heads * panels * 32, 0);
  if (kind == TARE_I4) std::memset(out.packed.data(), 0x88, out.packed.size());
  for (int64_t k = 0; k < c.heads; ++k)
    for (int64_t r = 0; r < c.rank; ++r) {
      int64_t panel = k * panels + r / 32, column = r % 32;
      out.p[panel * 32 + column] = p[k * c.rank + r];
      for (int64_t d = 0; d < c.width; ++d) {
        float x = w[(k * c.rank + r) * c.width + d];
        char *step = out.packed.data() + (panel * c.width + d) * bytes;
        double &value = out.value[(k * c.rank + r) * c.width + d];
        if (kind == TARE_F32) std::memcpy(step + column * 4, &x, 4), value = x;
        if (kind == TARE_F16) {
          _Float16 h = static_cast<_Float16>(x);
          std::memcpy(step + column * 2, &h, 2), value = static_cast<double>(h);
        }
        if (kind == TARE_BF16) {
          uint32_t bits;
          std::memcpy(&bits, &x, 4);
          bits &= 0xffff0000;
          uint16_t half = static_cast<uint16_t>(bits >> 16);
          std::memcpy(step + column * 2, &half, 2), std::memcpy(&x, &bits, 4), value = x;
        }
        if (kind < TARE_I8) continue;
        float scale = 0.01f * static_cast<float>(1 + (r + d / kGroup) % 5);
        out.scale[(panel * groups + d / kGroup) * 32 + column] = scale;
        int most = kind == TARE_I8 ? 127 : 7, q = static_cast<int>(std::lround(std::max(-1.0f, std::min(1.0f, x)) * static_cast<float>(most)));
        value = static_cast<double>(q) * scale;
        if (kind == TARE_I8) step[column] = static_cast<char>(q);
        else step[column % 16] = static_cast<char>(column < 16 ? (step[column % 16] & 0xf0) | (q + 8) : (step[column % 16] & 0x0f) | (q + 8) << 4);
      }
    }
  return out;
}

struct Seen {
  std::vector<uint32_t> bits;
  std::vector<float> product;
  int64_t columns;
};
void store(void *env, const float *tile, int64_t row, int64_t col, int64_t rows, int64_t cols, const uint32_t *bits) {
  auto &seen = *static_cast<Seen *>(env);
  for (int64_t r = 0; r < rows; ++r) {
    if (col > 0) EXPECT_EQ(seen.bits[row + r], bits[r]); // every tile of a row gets the same word
    seen.bits[row + r] = bits[r];
    for (int64_t c = 0; c < cols; ++c) seen.product[(row + r) * seen.columns + col + c] = tile[r * 32 + c];
  }
}

void check(const Case &c, int kind, bool dense, int64_t threads) {
  SCOPED_TRACE(testing::Message() << "kind " << kind << " dense " << dense << " threads " << threads << " K " << c.heads << " R " << c.rank << " D " << c.width << " tokens " << c.tokens);
  std::mt19937 random(uint32_t(kind + 7 * dense + 31 * c.rank + 101 * c.width));
  std::uniform_real_distribution<float> uniform(-1, 1);
  auto draw = [&](int64_t count) {
    std::vector<float> v(count);
    for (float &x : v) x = uniform(random);
    return v;
  };
  int64_t rows = c.tokens * c.batch, panels = (c.columns + 31) / 32;
  std::vector<float> h = draw(rows * c.width), w = draw(c.heads * c.rank * c.width), p = draw(c.heads * c.rank), up = draw(panels * c.width * 32), tau(c.heads);
  Weights weights = weightsOf(c, kind, w, p);
  std::vector<double> distance(rows * c.heads);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < c.heads; ++k) {
      double sum = 0;
      for (int64_t r = 0; r < c.rank; ++r) {
        double z = -p[k * c.rank + r];
        for (int64_t d = 0; d < c.width; ++d) z += double(h[i * c.width + d]) * weights.value[(k * c.rank + r) * c.width + d];
        sum += z * z;
      }
      distance[i * c.heads + k] = std::sqrt(sum);
    }
  for (int64_t k = 0; k < c.heads; ++k) { // the middle of the widest gap around the median
    std::vector<double> sorted;
    for (int64_t i = 0; i < rows; ++i) sorted.push_back(distance[i * c.heads + k]);
    std::sort(sorted.begin(), sorted.end());
    size_t best = sorted.size() / 2;
    for (size_t i = std::max<size_t>(1, sorted.size() / 4); i < sorted.size() * 3 / 4 + 1 && i < sorted.size(); ++i)
      if (sorted[i] - sorted[i - 1] > sorted[best] - sorted[best ? best - 1 : 0]) best = i;
    tau[k] = static_cast<float>(best ? (sorted[best] + sorted[best - 1]) / 2 : sorted[0] + 1);
  }
  std::vector<int64_t> listed;
  for (int64_t b = 0; b < c.batch; ++b) // some elements begin with a listed row, others with a carried word
    for (int64_t t = b % 2; t < c.tokens; t += 1 + static_cast<int64_t>(random() % 90))
      for (int64_t i = t; i < std::min(t + 3, c.tokens); ++i)
        if (listed.empty() || listed.back() < b * c.tokens + i) listed.push_back(b * c.tokens + i);
  std::vector<uint32_t> carried(c.batch), last(c.batch, ~0u), expected(rows);
  for (uint32_t &word : carried) word = random() & ((1u << c.heads) - 1);
  for (int64_t i = 0, n = 0; i < rows; ++i) {
    uint32_t word = i % c.tokens ? expected[i - 1] : carried[i / c.tokens];
    bool evaluated = dense || (n < static_cast<int64_t>(listed.size()) && listed[n] == i);
    if (evaluated) {
      word = 0, ++n;
      for (int64_t k = 0; k < c.heads; ++k) word |= uint32_t(distance[i * c.heads + k] < tau[k]) << k;
    }
    expected[i] = word;
  }
  tare_check_rows run{listed.data(), dense ? -1 : static_cast<int64_t>(listed.size()), c.tokens, carried.data(), last.data()};
  tare_check args{&run, weights.packed.data(), kind, weights.packed.data(), kind, weights.scale.data(), kGroup, weights.p.data(), tau.data(), c.heads, c.rank, c.width};
  Seen seen{std::vector<uint32_t>(rows, ~0u), std::vector<float>(rows * c.columns, NAN), c.columns};
  for (int64_t t = 0; t < threads; ++t) tare_gemm_checked_f32(h.data(), c.width, up.data(), rows, c.columns, c.width, &args, t, threads, store, &seen);
  EXPECT_EQ(seen.bits, expected);
  for (int64_t b = 0; b < c.batch; ++b) EXPECT_EQ(last[b], expected[(b + 1) * c.tokens - 1]) << "element " << b;
  for (int64_t i = 0; i < rows; i += 7)
    for (int64_t j = 0; j < c.columns; j += 5) {
      double sum = 0;
      for (int64_t d = 0; d < c.width; ++d) sum += double(h[i * c.width + d]) * up[(j / 32 * c.width + d) * 32 + j % 32];
      EXPECT_NEAR(seen.product[i * c.columns + j], sum, 1e-4);
    }
}

const Case kCases[] = {{3, 64, 128, 50, 2, 96}, {1, 5, 33, 1, 3, 40}, {2, 33, 31, 130, 1, 32}, {8, 16, 64, 9, 5, 33}, {3, 32, 130, 1100, 2, 70}};
} // namespace

TEST(Check, ListedRows) {
  for (const Case &c : kCases)
    for (int kind : {TARE_F32, TARE_F16, TARE_BF16, TARE_I8, TARE_I4})
      for (int64_t threads : {1, 2, 5}) check(c, kind, false, threads);
}
TEST(Check, EveryRow) {
  for (const Case &c : kCases)
    for (int kind : {TARE_F32, TARE_F16, TARE_BF16})
      for (int64_t threads : {1, 2}) check(c, kind, true, threads);
}

namespace {
/// The distance as the kernel has it, to the last bit: the largest threshold that it does not lie below.
float distanceOf(const Case &c, int kind, const Weights &weights, const std::vector<float> &row) {
  std::vector<uint32_t> carried(1), last(1), bits(1);
  std::vector<int64_t> one{0};
  auto below = [&](float tau) {
    tare_check_rows run{one.data(), 1, 1, carried.data(), last.data()};
    tare_check args{&run,  weights.packed.data(), kind, weights.packed.data(), kind, weights.scale.data(), kGroup,
                    weights.p.data(), &tau, 1, c.rank, c.width};
    tare_check_bits(&args, row.data(), c.width, 0, 1, bits.data(), nullptr, 0);
    return bits[0] == 1;
  };
  float low = 0, high = 1e30f;
  while (std::nextafter(low, high) < high) {
    float middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) middle = std::nextafter(low, high);
    (below(middle) ? high : low) = middle;
  }
  return low;
}
} // namespace

TEST(Check, Distances) { // values of very different sizes in one group of the scales
  for (const Case &c : {Case{1, 37, 69, 1, 1, 32}, Case{1, 5, 30017, 1, 1, 32}}) { // the wide one has a path of its own in int4
    std::mt19937 random(11);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int kind : {TARE_F32, TARE_F16, TARE_BF16, TARE_I8, TARE_I4})
      for (float outlier : {1.0f, 100.0f, 1e5f}) {
        std::vector<float> h(c.width), w(c.rank * c.width), p(c.rank);
        for (auto *v : {&h, &w, &p})
          for (float &x : *v) x = uniform(random);
        h[40] *= outlier;
        Weights weights = weightsOf(c, kind, w, p);
        double sum = 0, size = 0; // of all products without their signs: what rounding may cost is a share of it
        for (int64_t r = 0; r < c.rank; ++r) {
          double z = -p[r], most = std::abs(z);
          for (int64_t d = 0; d < c.width; ++d) {
            double product = double(h[d]) * weights.value[r * c.width + d];
            z += product, most += std::abs(product);
          }
          sum += z * z, size += most * most;
        }
        EXPECT_NEAR(distanceOf(c, kind, weights, h), std::sqrt(sum), 1e-5 * std::sqrt(size)) << "kind " << kind << " outlier " << outlier;
      }
  }
}

TEST(Check, ValuesThatAreNotOrdinary) { // neither infinity nor NaN lies below a threshold; zeros and denormals have the distance of p
  const Case c{1, 33, 70, 8, 1, 32};
  const float rows[] = {0, 1e-40f, -1e-45f, INFINITY, -INFINITY, NAN, 3e38f, 1e-30f};
  const uint32_t expected[] = {1, 1, 1, 0, 0, 0, 0, 1};
  for (int kind : {TARE_F32, TARE_F16, TARE_BF16, TARE_I8, TARE_I4})
    for (int64_t at : {0, 31, 33, 69}) { // one such value in a row of zeros; 3e38 in the whole row
      std::vector<float> h(c.tokens * c.width), w(c.rank * c.width, 0.5f), p(c.rank, 0.25f);
      for (int64_t i = 0; i < c.tokens; ++i)
        for (int64_t d = 0; d < c.width; ++d)
          if (d == at || i == 6) h[i * c.width + d] = rows[i];
      Weights weights = weightsOf(c, kind, w, p);
      std::vector<uint32_t> carried(1), last(1), bits(c.tokens);
      std::vector<int64_t> all{0, 1, 2, 3, 4, 5, 6, 7};
      const float tau = 1.5f; // ||p|| is 1.44
      tare_check_rows run{all.data(), c.tokens, c.tokens, carried.data(), last.data()};
      tare_check args{&run,  weights.packed.data(), kind, weights.packed.data(), kind, weights.scale.data(), kGroup,
                      weights.p.data(), &tau, 1, c.rank, c.width};
      tare_check_bits(&args, h.data(), c.width, 0, c.tokens, bits.data(), nullptr, 0);
      for (int64_t i = 0; i < c.tokens; ++i) EXPECT_EQ(bits[i], expected[i]) << "kind " << kind << " value " << rows[i] << " at " << at;
    }
}

TEST(Check, RowsDoNotDependOnTheirNeighbours) { // a threshold that is the distance itself: the last bit decides
  const Case c{1, 37, 61, 40, 1, 32};
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> h(c.tokens * c.width), w(c.heads * c.rank * c.width), p(c.heads * c.rank);
  for (auto *v : {&h, &w, &p})
    for (float &x : *v) x = uniform(random);
  for (int kind : {TARE_F32, TARE_I4}) {
    Weights weights = weightsOf(c, kind, w, p);
    for (int64_t row = 0; row < c.tokens; ++row) {
      std::vector<uint32_t> carried(1), last(1), bits(c.tokens);
      std::vector<int64_t> all(c.tokens), one{row};
      for (int64_t i = 0; i < c.tokens; ++i) all[i] = i;
      float low = 0, high = 1e6f; // the smallest float above the row's distance, found with the row alone
      auto alone = [&](float tau) {
        tare_check_rows run{one.data(), 1, c.tokens, carried.data(), last.data()};
        tare_check args{&run, weights.packed.data(), kind, weights.packed.data(), kind, weights.scale.data(), kGroup, weights.p.data(), &tau, c.heads, c.rank, c.width};
        tare_check_bits(&args, h.data(), c.width, 0, c.tokens, bits.data(), nullptr, 0);
        return bits[row];
      };
      while (std::nextafter(low, high) < high) {
        float middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) middle = std::nextafter(low, high);
        (alone(middle) ? high : low) = middle;
      }
      for (float tau : {low, high}) {
        tare_check_rows run{all.data(), c.tokens, c.tokens, carried.data(), last.data()};
        tare_check args{&run, weights.packed.data(), kind, weights.packed.data(), kind, weights.scale.data(), kGroup, weights.p.data(), &tau, c.heads, c.rank, c.width};
        tare_check_bits(&args, h.data(), c.width, 0, c.tokens, bits.data(), nullptr, 0);
        ASSERT_EQ(bits[row], tau == high ? 1u : 0u) << "row " << row << " kind " << kind;
      }
    }
  }
}
