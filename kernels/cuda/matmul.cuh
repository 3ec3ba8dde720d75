// Products of two activations in f32, batched: store(batch, row, column, sum_k a(batch, row, k) b(batch, k, column)). In:
// functions that give any element of a and b, so that transposes, slices and what else precedes the product cost no pass of
// their own. Out: through `store`. Tile 64x64x16, 128 threads, the inner product of gemm_f32.cuh. Must hold: there are
// batch * ceil(m/64) * ceil(n/64) blocks along x (matmul_blocks in the printer); they share nothing.
#pragma once
#include "kernels/cuda/gemm_f32.cuh"

namespace tare {

struct MatmulF32 {
  static constexpr u32 kA = GemmF32::kRows * GemmF32::kDepth, kB = GemmF32::kDepth * GemmF32::kColumns;
  static constexpr u32 kSharedBytes = 4 * (kA + kB);
};

template <class A, class B, class Store> TARE_DEVICE void matmul_f32(i64 m, i64 n, i64 k, A a, B b, Store store) {
  const shared<float> as = shared_at<float>(0, MatmulF32::kA), bs = shared_at<float>(4 * MatmulF32::kA, MatmulF32::kB);
  const i64 across = (n + GemmF32::kColumns - 1) / GemmF32::kColumns, down = (m + GemmF32::kRows - 1) / GemmF32::kRows;
  const i64 block = block_index_x(), batch = block / across / down;
  const i64 row = block / across % down * GemmF32::kRows, column = block % across * GemmF32::kColumns;
  const u32 t = thread_index(), tx = t % 16, ty = t / 16;
  float sum[8][4] = {};
  for (i64 depth = 0; depth < k; depth += GemmF32::kDepth) {
#pragma unroll
    for (u32 i = t; i < MatmulF32::kA; i += GemmF32::kThreads) { // neighbours along k
      const i64 r = row + i / GemmF32::kDepth, c = depth + i % GemmF32::kDepth;
      as.write(i, r < m && c < k ? a(batch, r, c) : 0.0f);
    }
#pragma unroll
    for (u32 i = t; i < MatmulF32::kB; i += GemmF32::kThreads) { // neighbours along the columns
      const i64 r = depth + i / GemmF32::kColumns, c = column + i % GemmF32::kColumns;
      bs.write(i, r < k && c < n ? b(batch, r, c) : 0.0f);
    }
    sync_threads();
    gemm_f32_slice(as, bs, ty, tx, sum);
    sync_threads();
  }
#pragma unroll
  for (u32 i = 0; i < 8; ++i)
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      const i64 r = row + ty + 8 * i, c = column + 4 * tx + j;
      if (r < m && c < n) store(batch, r, c, sum[i][j]);
    }
}

} // namespace tare
