// GEMM on tensor cores (mma.sync m16n8k16): out[m,n] = f(m, n, sum_k a[m,k] b[k,n]) with a in f32, f16 or bf16 (f32 is rounded on its way to shared memory) and b in
// panels of 32 columns of T = f16 or bf16; sums are f32. Tile 64x64x32, four warps of 32x32, two cp.async stages for b and for a where it needs no rounding.
// Must hold: blocks are (ceil(n/64), ceil(m/64)) and share nothing; rows of a are aligned to 16 bytes or a is read element by element.
#pragma once
#include "kernels/cuda/gemm_f32.cuh"

namespace tare {

struct GemmMma {
  static constexpr int kRows = 64, kColumns = 64, kDepth = 32, kThreads = 128;
  static constexpr int kPitchA = kDepth + 8, kPitchB = kColumns + 8; // 16-byte rows of ldmatrix fall into different banks
  static constexpr u32 kA = kRows * kPitchA, kB = kDepth * kPitchB;
  static constexpr u32 kSharedBytes = 2 * 2 * (kA + kB);
};

template <class T, class A> TARE_DEVICE void gemm_mma_load(global<const A> a, i64 lda, global<const T> b, i64 m, i64 n, i64 k, i64 row, i64 column, i64 depth, shared<T> as, shared<T> bs) {
  const u32 t = thread_index();
  for (u32 i = t; i < GemmMma::kRows * GemmMma::kDepth / 8; i += GemmMma::kThreads) { // eight elements at a time
    const u32 r = i / 4, c = i % 4 * 8;
    const i64 left = row + r < m ? k - depth - c : 0;
    const int valid = static_cast<int>(left < 0 ? 0 : left > 8 ? 8 : left);
    const i64 from = valid ? (row + r) * lda + depth + c : 0;
    if constexpr (sizeof(A) == 2) {
      if (lda % 8 == 0) {
        cp_async16(as, r * GemmMma::kPitchA + c, a, from, valid);
        continue;
      }
    }
    vec<T, 8> w;
#pragma unroll
    for (int e = 0; e < 8; ++e) w[e] = from_float<T>(e < valid ? to_float(a.read(from + e)) : 0.0f);
    as.template writeVector<8>(r * GemmMma::kPitchA + c, w);
  }
  for (u32 i = t; i < GemmMma::kDepth * GemmMma::kColumns / 8; i += GemmMma::kThreads) {
    const u32 panel = i / (GemmMma::kDepth * 4), r = i / 4 % GemmMma::kDepth, c = i % 4 * 8;
    const i64 first = column + panel * 32;
    const bool inside = first < n && depth + r < k;
    cp_async16(bs, r * GemmMma::kPitchB + panel * 32 + c, b, inside ? (first / 32 * k + depth + r) * 32 + c : 0, inside ? 8 : 0);
  }
}

/// The tile at (row, column). `epilogue(row, column, sum)` gives the result of each element inside the matrix. Ends with a barrier behind all reads of shared memory.
template <class T, class A, class Out, class Epilogue>
TARE_DEVICE void gemm_mma_tile(global<const A> a, i64 lda, global<const T> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column, Epilogue epilogue) {
  constexpr u32 kA = GemmMma::kA, kB = GemmMma::kB;
  const auto as = [](i64 slice) { return shared_at<T>(slice % 2 ? 2 * kA : 0, kA); };
  const auto bs = [](i64 slice) { return shared_at<T>(4 * kA + (slice % 2 ? 2 * kB : 0), kB); };
  const u32 lane = lane_index(), warp = thread_index() / 32, rowOfWarp = warp / 2 * 32, columnOfWarp = warp % 2 * 32;
  float sum[2][4][4] = {}; // [16 rows][8 columns][fragment]
  const i64 slices = (k + GemmMma::kDepth - 1) / GemmMma::kDepth;
  if (slices > 0) gemm_mma_load(a, lda, b, m, n, k, row, column, 0, as(0), bs(0));
  cp_async_commit();
  for (i64 s = 0; s < slices; ++s) {
    if (s + 1 < slices) gemm_mma_load(a, lda, b, m, n, k, row, column, (s + 1) * GemmMma::kDepth, as(s + 1), bs(s + 1));
    cp_async_commit();
    cp_async_wait<1>();
    sync_threads();
    const shared<T> at = as(s), bt = bs(s);
#pragma unroll
    for (u32 d = 0; d < GemmMma::kDepth; d += 16) {
      u32 fa[2][4], fb[4][2];
#pragma unroll
      for (u32 i = 0; i < 2; ++i) ldmatrix(fa[i], at, (rowOfWarp + 16 * i + lane % 16) * GemmMma::kPitchA + d + lane / 16 * 8);
#pragma unroll
      for (u32 j = 0; j < 4; j += 2) { // two 8-column fragments at once
        u32 both[4];
        ldmatrix_transposed(both, bt, (d + lane % 16) * GemmMma::kPitchB + columnOfWarp + 8 * j + lane / 16 * 8);
        fb[j][0] = both[0], fb[j][1] = both[1], fb[j + 1][0] = both[2], fb[j + 1][1] = both[3];
      }
#pragma unroll
      for (u32 i = 0; i < 2; ++i)
#pragma unroll
        for (u32 j = 0; j < 4; ++j) mma_m16n8k16<T>(sum[i][j], fa[i], fb[j]);
    }
    sync_threads();
  }
#pragma unroll
  for (u32 i = 0; i < 2; ++i)
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const i64 r = row + rowOfWarp + 16 * i + 8 * half + lane / 4;
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
        const i64 c = column + columnOfWarp + 8 * j + lane % 4 * 2;
        if (r >= m || c >= n) continue;
        const float low = epilogue(r, c, sum[i][j][2 * half]);
        if (c + 1 < n && n % 2 == 0) {
          vec<Out, 2> w;
          w[0] = from_float<Out>(low), w[1] = from_float<Out>(epilogue(r, c + 1, sum[i][j][2 * half + 1]));
          out.template writeVector<2>(r * n + c, w);
        } else {
          out.write(r * n + c, from_float<Out>(low));
          if (c + 1 < n) out.write(r * n + c + 1, from_float<Out>(epilogue(r, c + 1, sum[i][j][2 * half + 1])));
        }
      }
    }
}

template <class T, class A, class Out, class Epilogue>
TARE_DEVICE void gemm_mma(global<const A> a, i64 lda, global<const T> b, global<Out> out, i64 m, i64 n, i64 k, Epilogue epilogue) {
  gemm_mma_tile(a, lda, b, out, m, n, k, static_cast<i64>(block_index_y()) * GemmMma::kRows, static_cast<i64>(block_index_x()) * GemmMma::kColumns, epilogue);
}

} // namespace tare
