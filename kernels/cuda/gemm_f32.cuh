// GEMM in f32 without tensor cores: out[m,n] = f(m, n, sum_k a[m,k] b[k,n]). In: a row-major f32; b in panels of 32 columns ([ceil(n/32)][k][32], zero padded, of
// f32, f16 or bf16: the layout that the CPU kernels use, so one engine carries weights once). Out: through the epilogue f. Tile 64x64x16, 128 threads, 8x4 results
// per thread in registers, two cp.async stages. Must hold: blocks are (ceil(n/64), ceil(m/64)) and share nothing.
#pragma once
#include "kernels/cuda/math.cuh"

namespace tare {

struct GemmF32 {
  static constexpr int kRows = 64, kColumns = 64, kDepth = 16, kThreads = 128, kStages = 2;
  // Of a row of A in shared memory. A warp reads two neighbouring rows (the other half of the banks each) and stores
  // eight 16-byte pieces at a time, two whole rows: neither meets a bank twice.
  static constexpr int kPitch = kDepth;
  template <class W> static constexpr u32 kSharedBytes = kStages * (kRows * kPitch * 4 + kDepth * kColumns * sizeof(W));
};

/// Four neighbouring results of a row, `count` of them inside the matrix, as one vector where that is aligned.
template <class Out> TARE_DEVICE void store4(global<Out> out, i64 at, const float (&v)[4], int count, bool vector) {
  if (vector && count == 4) {
    vec<Out, 4> w;
#pragma unroll
    for (int j = 0; j < 4; ++j) w[j] = from_float<Out>(v[j]);
    out.template writeVector<4>(at, w);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < count) out.write(at + j, from_float<Out>(v[j]));
}

/// One k-slice of a and b on its way to shared memory. Past the edges come zeros.
template <class W> TARE_DEVICE void gemm_f32_load(global<const float> a, i64 lda, global<const W> b, i64 m, i64 n, i64 k, i64 row, i64 column, i64 depth, shared<float> as, shared<W> bs) {
  constexpr int kChunk = 16 / sizeof(W), kPerRow = 32 / kChunk;
  const u32 t = thread_index();
  if (lda % 4 == 0) {
    for (u32 i = t; i < GemmF32::kRows * GemmF32::kDepth / 4; i += GemmF32::kThreads) {
      const i64 r = row + i / 4, c = depth + i % 4 * 4;
      const i64 left = r < m ? k - c : 0;
      cp_async16(as, i / 4 * GemmF32::kPitch + i % 4 * 4, a, left > 0 ? r * lda + c : 0, static_cast<int>(left < 0 ? 0 : left > 4 ? 4 : left));
    }
  } else { // rows of a are not aligned to 16 bytes
    for (u32 i = t; i < GemmF32::kRows * GemmF32::kDepth; i += GemmF32::kThreads) {
      const i64 r = row + i / GemmF32::kDepth, c = depth + i % GemmF32::kDepth;
      as.write(i / GemmF32::kDepth * GemmF32::kPitch + i % GemmF32::kDepth, r < m && c < k ? a.read(r * lda + c) : 0.0f);
    }
  }
  for (u32 i = t; i < 2 * GemmF32::kDepth * kPerRow; i += GemmF32::kThreads) { // a row of both panels by neighbouring threads
    const u32 r = i / (2 * kPerRow), c = i % (2 * kPerRow) * kChunk;
    const i64 first = column + c / 32 * 32;
    const bool inside = first < n && depth + r < k;
    cp_async16(bs, r * GemmF32::kColumns + c, b, inside ? (first / 32 * k + depth + r) * 32 + c % 32 : 0, inside ? kChunk : 0);
  }
}

/// sum += the product of one slice in shared memory: rows ty + 8 i, columns 4 tx .. 4 tx + 3 of the tile.
template <class W> TARE_DEVICE void gemm_f32_slice(shared<float> at, shared<W> bt, u32 ty, u32 tx, float (&sum)[8][4]) {
#pragma unroll
  for (u32 d = 0; d < GemmF32::kDepth; d += 4) {
    vec<float, 4> x[8];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) x[i] = at.template readVector<4>((ty + 8 * i) * GemmF32::kPitch + d);
#pragma unroll
    for (u32 e = 0; e < 4; ++e) {
      const vec<W, 4> y = bt.template readVector<4>((d + e) * GemmF32::kColumns + 4 * tx);
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
        const float w = to_float(y[j]);
#pragma unroll
        for (u32 i = 0; i < 8; ++i) sum[i][j] = fma32(x[i][e], w, sum[i][j]);
      }
    }
  }
}

/// The tile at (row, column). `epilogue(row, column, sum)` gives the result of each element inside the matrix. Ends with a barrier behind all reads of shared memory.
template <class W, class Out, class Epilogue>
TARE_DEVICE void gemm_f32_tile(global<const float> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column, Epilogue epilogue) {
  constexpr u32 kA = GemmF32::kRows * GemmF32::kPitch, kB = GemmF32::kDepth * GemmF32::kColumns;
  const auto as = [](i64 slice) { return shared_at<float>(slice % 2 ? 4 * kA : 0, kA); };
  const auto bs = [](i64 slice) { return shared_at<W>(8 * kA + (slice % 2 ? kB * sizeof(W) : 0), kB); };
  const u32 tx = thread_index() % 16, ty = thread_index() / 16; // columns 4 tx .. 4 tx + 3, rows ty + 8 i
  float sum[8][4] = {};
  const i64 slices = (k + GemmF32::kDepth - 1) / GemmF32::kDepth;
  if (slices > 0) gemm_f32_load(a, lda, b, m, n, k, row, column, 0, as(0), bs(0));
  cp_async_commit();
  for (i64 s = 0; s < slices; ++s) {
    cp_async_wait<0>(); // slice s is here
    sync_threads();     // for all threads, and nobody reads slice s - 1 any more, whose place slice s + 1 takes
    if (s + 1 < slices) gemm_f32_load(a, lda, b, m, n, k, row, column, (s + 1) * GemmF32::kDepth, as(s + 1), bs(s + 1));
    cp_async_commit();
    const shared<float> at = as(s);
    const shared<W> bt = bs(s);
    gemm_f32_slice(at, bt, ty, tx, sum);
  }
  sync_threads(); // before the next tile is loaded
  const i64 c = column + 4 * tx;
  const int count = c < n ? static_cast<int>(n - c < 4 ? n - c : 4) : 0;
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const i64 r = row + ty + 8 * i;
    if (r >= m || count == 0) continue;
    float v[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (j < count) v[j] = epilogue(r, c + j, sum[i][j]);
    store4(out, r * n + c, v, count, n % 4 == 0);
  }
}

template <class W, class Out, class Epilogue>
TARE_DEVICE void gemm_f32(global<const float> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, Epilogue epilogue) {
  gemm_f32_tile(a, lda, b, out, m, n, k, static_cast<i64>(block_index_y()) * GemmF32::kRows, static_cast<i64>(block_index_x()) * GemmF32::kColumns, epilogue);
}

} // namespace tare
