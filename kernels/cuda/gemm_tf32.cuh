// GEMM in TF32 on tensor cores (mma.sync m16n8k8): out[m,n] = f(m, n, sum_k a[m,k] b[k,n]). In: a row-major f32; b in panels
// of 32 columns (gemm_f32.cuh), f32, f16 or bf16. Both fly to shared memory by cp.async as they are and are rounded in
// registers, once per fragment: TF32 is f32's range with 11 significant bits, so f16 and bf16 are exact in it. Sums are f32.
// Tile 64x64x16, four warps of 32x32, three stages. Must hold: blocks are (ceil(n/64), ceil(m/64)) and share nothing; a
// begins at a multiple of 16 bytes.
#pragma once
#include "kernels/cuda/gemm_f32.cuh"

namespace tare {

struct GemmTf32 {
  // 64 rows as every other GEMM: fidelity checks own 64 rows, and requests are short. Two slices in flight at four blocks
  // per multiprocessor are 64 KiB, several times what hides the latency of L2; 24 KiB leave room for four blocks anywhere.
  static constexpr int kRows = 64, kColumns = 64, kDepth = 16, kThreads = 128, kStages = 3;
  static constexpr u32 kA = kRows * kDepth, kB = kDepth * kColumns;
  template <class W> static constexpr u32 kSharedBytes = kStages * (kA * 4 + kB * sizeof(W));
  /// Where element c of row r of A lies: its 16-byte pieces are permuted by the row, so that neither the eight rows of
  /// an ldmatrix nor the eight pieces of a store meet in a bank.
  TARE_DEVICE static u32 placeA(u32 r, u32 c) { return r * kDepth + ((c / 4) ^ (r / 2 % 4)) * 4 + c % 4; }
  /// The same for B: a fragment reads four columns at columnOf(g) in each of four rows, all lanes at once.
  template <class W> TARE_DEVICE static u32 placeB(u32 r, u32 c) {
    constexpr u32 kPiece = 16 / sizeof(W);
    const u32 permuted = sizeof(W) == 4 ? r % 4 : r % 2 + r / 2 % 2 * 4;
    return r * kColumns + ((c / kPiece) ^ permuted) * kPiece + c % kPiece;
  }
  /// Column g of the fragments j = 0 to 3 is column columnOf(g) + j of the warp's 32: a lane loads its four fragments of B
  /// at once and ends with four neighbouring results beside those of the next lane.
  TARE_DEVICE static u32 columnOf(u32 g) { return g % 2 * 16 + g / 2 * 4; }
};

/// An element of B as an operand: f32 is rounded, the others have no bits to lose.
TARE_DEVICE u32 tf32_operand(float x) { return to_tf32(x); }
TARE_DEVICE u32 tf32_operand(f16 x) { return static_cast<u32>(bits_of(to_float(x))); }
TARE_DEVICE u32 tf32_operand(bf16 x) { return static_cast<u32>(bits_of(to_float(x))); }

/// One k-slice of a and b on its way to shared memory. Past the edges come zeros.
template <class W>
TARE_DEVICE void gemm_tf32_fetch(global<const float> a, i64 lda, global<const W> b, i64 m, i64 n, i64 k, i64 row, i64 column, i64 depth,
                                 shared<float> as, shared<W> bs) {
  constexpr u32 kPieces = GemmTf32::kDepth / 4; // of a row of A
  if (lda % 4 == 0) {
#pragma unroll
    for (u32 p = 0; p < GemmTf32::kA / 4 / GemmTf32::kThreads; ++p) {
      const u32 i = thread_index() + p * GemmTf32::kThreads, r = i / kPieces, c = i % kPieces * 4;
      const i64 left = row + r < m ? k - depth - c : 0;
      cp_async16(as, GemmTf32::placeA(r, c), a, left > 0 ? (row + r) * lda + depth + c : 0, static_cast<int>(left < 0 ? 0 : left > 4 ? 4 : left));
    }
  } else { // rows of a are not aligned to 16 bytes
    for (u32 i = thread_index(); i < GemmTf32::kA; i += GemmTf32::kThreads) {
      const u32 r = i / GemmTf32::kDepth, c = i % GemmTf32::kDepth;
      as.write(GemmTf32::placeA(r, c), row + r < m && depth + c < k ? a.read((row + r) * lda + depth + c) : 0.0f);
    }
  }
  constexpr u32 kChunk = 16 / sizeof(W), kPerRow = GemmTf32::kColumns / kChunk;
#pragma unroll
  for (u32 p = 0; p < GemmTf32::kDepth * kPerRow / GemmTf32::kThreads; ++p) { // a row of both panels by neighbouring threads
    const u32 i = thread_index() + p * GemmTf32::kThreads, r = i / kPerRow, c = i % kPerRow * kChunk;
    const i64 first = column + c / 32 * 32;
    const bool inside = first < n && depth + r < k;
    cp_async16(bs, GemmTf32::placeB<W>(r, c), b, inside ? (first / 32 * k + depth + r) * 32 + c % 32 : 0, inside ? kChunk : 0);
  }
}

/// sum += the product of one slice in shared memory: 32 rows and 32 columns of the tile.
template <class W> TARE_DEVICE void gemm_tf32_slice(shared<float> at, shared<W> bt, u32 rowOfWarp, u32 columnOfWarp, float (&sum)[2][4][4]) {
  const u32 lane = lane_index();
#pragma unroll
  for (u32 d = 0; d < GemmTf32::kDepth; d += 8) {
    u32 fa[2][4], fb[4][2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      ldmatrix(fa[i], at, GemmTf32::placeA(rowOfWarp + 16 * i + lane % 16, d + lane / 16 * 4));
#pragma unroll
      for (u32 e = 0; e < 4; ++e) fa[i][e] = to_tf32(float_of(static_cast<int32_t>(fa[i][e])));
    }
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const vec<W, 4> y = bt.template readVector<4>(GemmTf32::placeB<W>(d + 4 * half + lane % 4, columnOfWarp + GemmTf32::columnOf(lane / 4)));
#pragma unroll
      for (u32 j = 0; j < 4; ++j) fb[j][half] = tf32_operand(y[j]);
    }
#pragma unroll
    for (u32 i = 0; i < 2; ++i)
#pragma unroll
      for (u32 j = 0; j < 4; ++j) mma_m16n8k8_tf32(sum[i][j], fa[i], fb[j]);
  }
}

/// The tile at (row, column). `epilogue(row, column, sum)` gives the result of each element inside the matrix. Ends with a
/// barrier behind all reads of shared memory.
template <class W, class Out, class Epilogue>
TARE_DEVICE void gemm_tf32_tile(global<const float> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column,
                                Epilogue epilogue) {
  constexpr u32 kStages = GemmTf32::kStages, kA = GemmTf32::kA, kB = GemmTf32::kB;
  const auto as = [](u32 stage) { return shared_at<float>(stage * kA * 4, kA); };
  const auto bs = [](u32 stage) { return shared_at<W>(kStages * kA * 4 + stage * kB * sizeof(W), kB); };
  const u32 lane = lane_index(), warp = thread_index() / 32, rowOfWarp = warp / 2 * 32, columnOfWarp = warp % 2 * 32;
  float sum[2][4][4] = {}; // [16 rows][fragment of 8 columns][element]
  const i64 slices = (k + GemmTf32::kDepth - 1) / GemmTf32::kDepth;
#pragma unroll
  for (u32 s = 0; s < kStages - 1; ++s) {
    if (s < slices) gemm_tf32_fetch(a, lda, b, m, n, k, row, column, s * GemmTf32::kDepth, as(s), bs(s));
    cp_async_commit();
  }
  u32 stage = 0, before = kStages - 1; // of slice s and of slice s - 1
  for (i64 s = 0; s < slices; ++s) {
    cp_async_wait<kStages - 2>(); // slice s is here
    sync_threads();               // for all threads, and nobody reads slice s - 1 any more, whose place the next one takes
    const i64 next = s + kStages - 1;
    if (next < slices) gemm_tf32_fetch(a, lda, b, m, n, k, row, column, next * GemmTf32::kDepth, as(before), bs(before));
    cp_async_commit();
    gemm_tf32_slice(as(stage), bs(stage), rowOfWarp, columnOfWarp, sum);
    before = stage, stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  sync_threads(); // before the next tile is loaded
#pragma unroll
  for (u32 i = 0; i < 2; ++i)
#pragma unroll
    for (u32 part = 0; part < 4; ++part) { // of a fragment: row lane / 4 and, from element 2, eight rows below
      const i64 r = row + rowOfWarp + 16 * i + part / 2 * 8 + lane / 4, c = column + columnOfWarp + GemmTf32::columnOf(lane % 4 * 2 + part % 2);
      const int count = r < m && c < n ? static_cast<int>(n - c < 4 ? n - c : 4) : 0;
      if (count == 0) continue;
      float v[4] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (j < count) v[j] = epilogue(r, c + j, sum[i][j][part]);
      store4(out, r * n + c, v, count, n % 4 == 0);
    }
}

template <class W, class Out, class Epilogue>
TARE_DEVICE void gemm_tf32(global<const float> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, Epilogue epilogue) {
  gemm_tf32_tile(a, lda, b, out, m, n, k, static_cast<i64>(block_index_y()) * GemmTf32::kRows,
                 static_cast<i64>(block_index_x()) * GemmTf32::kColumns, epilogue);
}

} // namespace tare
