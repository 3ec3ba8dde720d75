// GEMM kernels against double sums: every row count 1..30 and chunk borders, odd N, K from 0 to beyond the k-blocks, 1 to 3 threads, three storage types.
// Checks the hook's contract too: each element exactly once, tiles in bounds, padding never read as data.
#include "kernels/cpu/kernels.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

struct Result {
  int64_t m, n;
  std::vector<float> values;
  std::vector<int> seen;
  Result(int64_t m, int64_t n) : m(m), n(n), values(m * n), seen(m * n) {}
};
void store(void *env, const float *tile, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  auto &r = *static_cast<Result *>(env);
  ASSERT_TRUE(rows >= 1 && rows <= 14 && cols >= 1 && cols <= 32 && col % 32 == 0 && row >= 0 && row + rows <= r.m && col + cols <= r.n);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      r.values[(row + i) * r.n + col + j] = tile[i * 32 + j];
      ++r.seen[(row + i) * r.n + col + j];
    }
}

uint16_t toHalf(float x) { _Float16 h = (_Float16)x; uint16_t u; memcpy(&u, &h, 2); return u; }
uint16_t toBf16(float x) { uint32_t u; memcpy(&u, &x, 4); return uint16_t(u >> 16); }
float ofBf16(uint16_t b) { uint32_t u = uint32_t(b) << 16; float x; memcpy(&x, &u, 4); return x; }

enum Storage { F32, F16, BF16 };
void check(Storage storage, int64_t m, int64_t n, int64_t k, int64_t threads) {
  std::mt19937 random(uint32_t(m * 73856093 ^ n * 19349663 ^ k * 83492791 ^ threads));
  std::uniform_real_distribution<float> uniform(-1, 1);
  const int64_t lda = k + 3, panels = (n + 31) / 32;
  std::vector<float> a(m * lda + 1, NAN), b(k * n + 1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j) a[i * lda + j] = uniform(random);
  std::vector<char> packed(panels * k * 32 * 4 + 64);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float w = uniform(random);
      const int64_t at = (j / 32 * k + i) * 32 + j % 32;
      uint16_t u = storage == F16 ? toHalf(w) : toBf16(w);
      if (storage == F16) { _Float16 h; memcpy(&h, &u, 2); w = float(h); }
      if (storage == BF16) w = ofBf16(u);
      if (storage == F32) memcpy(&packed[at * 4], &w, 4);
      else memcpy(&packed[at * 2], &u, 2);
      b[i * n + j] = w;
    }
  Result result(m, n);
  for (int64_t t = 0; t < threads; ++t)
    (storage == F32 ? tare_gemm_f32 : storage == F16 ? tare_gemm_f16 : tare_gemm_bf16)(a.data(), lda, packed.data(), m, n, k, t, threads, store, &result);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t x = 0; x < k; ++x) {
        sum += double(a[i * lda + x]) * b[x * n + j];
        magnitude += std::abs(double(a[i * lda + x]) * b[x * n + j]);
      }
      ASSERT_EQ(result.seen[i * n + j], 1) << m << "x" << n << "x" << k << " element " << i << "," << j;
      ASSERT_NEAR(result.values[i * n + j], sum, 1e-6 * magnitude + 1e-30) << m << "x" << n << "x" << k << " threads " << threads << " element " << i << "," << j;
    }
}

TEST(Gemm, EveryRowCount) {
  for (int64_t m = 1; m <= 30; ++m)
    for (int64_t n : {1, 33, 64, 95})
      for (int64_t k : {1, 7, 66}) check(F32, m, n, k, 1 + (m + n + k) % 3);
}
TEST(Gemm, Depths) {
  for (int64_t k : {0, 1, 2, 3, 4, 5, 8, 384, 1023, 1024, 1025, 1537, 2100})
    for (int64_t m : {1, 3, 14, 29}) check(F32, m, 40, k, 1);
}
TEST(Gemm, ChunkBorders) {
  for (int64_t m : {84, 113, 139, 140, 141, 283})
    for (int64_t k : {5, 1000, 1100}) check(F32, m, 34, k, 2);
}
TEST(Gemm, HalfStorage) {
  for (Storage s : {F16, BF16})
    for (int64_t m = 1; m <= 15; ++m)
      for (int64_t k : {1, 33, 1100}) check(s, m, 45, k, 1 + m % 2);
}
TEST(Gemm, MoreThreadsThanWork) {
  for (int64_t threads : {2, 3, 7}) {
    check(F32, 1, 20, 9, threads);
    check(F32, 100, 20, 9, threads);
    check(F32, 5, 260, 9, threads);
  }
}

} // namespace
