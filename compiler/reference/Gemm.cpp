// The one hot loop of the reference. In: matrices of doubles. Out: C += A * B, bit for bit the plain triple loop (see Gemm.h), a few times faster:
// a 4 x 8 tile of C stays in registers while k runs, and B is walked in panels of k that fit the cache.
#include "compiler/reference/Gemm.h"
#include <algorithm>

namespace tare::reference {
namespace {

constexpr int64_t kRows = 4, kColumns = 8, kDepth = 256;

/// A full tile: c[4][8] += a[4][depth] * b[depth][8].
#if defined(__x86_64__) && !__has_feature(address_sanitizer) // function versions need an ifunc, which runs before ASan is ready
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void fullTile(int64_t depth, const double *a, int64_t rowStride, int64_t columnStride, const double *b, int64_t ldb, double *c, int64_t ldc) {
  double sum[kRows][kColumns];
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) sum[i][j] = c[i * ldc + j];
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t i = 0; i < kRows; ++i) {
      double factor = a[i * rowStride + k * columnStride];
      for (int64_t j = 0; j < kColumns; ++j) sum[i][j] += factor * b[k * ldb + j];
    }
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) c[i * ldc + j] = sum[i][j];
}

void edgeTile(int64_t rows, int64_t columns, int64_t depth, const double *a, int64_t rowStride, int64_t columnStride, const double *b, int64_t ldb,
              double *c, int64_t ldc) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k) {
      double factor = a[i * rowStride + k * columnStride];
      for (int64_t j = 0; j < columns; ++j) c[i * ldc + j] += factor * b[k * ldb + j];
    }
}

} // namespace

void gemmAccumulate(int64_t m, int64_t n, int64_t k, const double *a, int64_t rowStride, int64_t columnStride, const double *b, int64_t ldb,
                    double *c, int64_t ldc) {
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    int64_t depth = std::min(kDepth, k - k0);
    for (int64_t j = 0; j < n; j += kColumns)
      for (int64_t i = 0; i < m; i += kRows) {
        const double *tileA = a + i * rowStride + k0 * columnStride, *tileB = b + k0 * ldb + j;
        int64_t rows = std::min(kRows, m - i), columns = std::min(kColumns, n - j);
        if (rows == kRows && columns == kColumns)
          fullTile(depth, tileA, rowStride, columnStride, tileB, ldb, c + i * ldc + j, ldc);
        else
          edgeTile(rows, columns, depth, tileA, rowStride, columnStride, tileB, ldb, c + i * ldc + j, ldc);
      }
  }
}

} // namespace tare::reference
