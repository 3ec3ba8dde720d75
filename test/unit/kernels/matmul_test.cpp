// Batched strided matmul against double sums: every combination of plain and transposed operands, broadcast batches, odd sizes, long k, 1 to 3 threads.
#include "kernels/cpu/kernels.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

struct Result {
  int64_t m, n;
  std::vector<float> values;
  std::vector<int> seen;
};
void store(void *env, const float *tile, int64_t batch, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  auto &r = *static_cast<Result *>(env);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t at = (batch * r.m + row + i) * r.n + col + j;
      r.values[at] = tile[i * 32 + j];
      ++r.seen[at];
    }
}

// Batch dims 2 x 3; a is broadcast over the second, b over the first.
void check(int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB, int64_t spread, int64_t threads) {
  std::mt19937 random(uint32_t(m * 31 + n * 17 + k * 7 + threads));
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> a(2 * m * k * spread), b(3 * k * n * spread);
  for (float &x : a) x = uniform(random);
  for (float &x : b) x = uniform(random);
  tare_matmul args = {a.data(), b.data(), {1, 1, 2, 3}, {0, 0, m * k * spread, 0}, {0, 0, 0, k * n * spread}, m, n, k, 0, 0, 0, 0};
  args.a_row = transposeA ? spread : k * spread, args.a_col = transposeA ? m * spread : spread;
  args.b_row = transposeB ? spread : n * spread, args.b_col = transposeB ? k * spread : spread;
  Result result = {m, n, std::vector<float>(6 * m * n), std::vector<int>(6 * m * n)};
  std::vector<char> scratch(TARE_MATMUL_SCRATCH + 64);
  void *aligned = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  for (int64_t t = 0; t < threads; ++t) tare_matmul_f32(&args, t, threads, aligned, store, &result);
  for (int64_t batch = 0; batch < 6; ++batch)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, magnitude = 0;
        for (int64_t x = 0; x < k; ++x) {
          const double p = double(a[batch / 3 * args.a_batch[2] + i * args.a_row + x * args.a_col]) * b[batch % 3 * args.b_batch[3] + x * args.b_row + j * args.b_col];
          sum += p;
          magnitude += std::abs(p);
        }
        const int64_t at = (batch * m + i) * n + j;
        ASSERT_EQ(result.seen[at], 1);
        ASSERT_NEAR(result.values[at], sum, 1e-6 * magnitude + 1e-30) << m << "x" << n << "x" << k << " " << transposeA << transposeB << " batch " << batch << " at " << i << "," << j;
      }
}

TEST(Matmul, ShapesAndTransposes) {
  for (int64_t m : {1, 5, 14, 15, 30, 113})
    for (int64_t n : {1, 31, 32, 50})
      for (int64_t k : {1, 9, 32})
        for (int flags = 0; flags < 4; ++flags) check(m, n, k, flags & 1, flags & 2, 1, 1 + (m + n) % 3);
}
TEST(Matmul, LongDepth) {
  for (int flags = 0; flags < 4; ++flags) check(17, 33, 1300, flags & 1, flags & 2, 1, 2);
}
TEST(Matmul, NoContiguousStride) {
  for (int flags = 0; flags < 4; ++flags) check(6, 40, 20, flags & 1, flags & 2, 3, 1);
}
TEST(Matmul, EmptyDepthGivesZero) { check(3, 5, 0, false, false, 1, 1); }

} // namespace
