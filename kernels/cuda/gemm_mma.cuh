// GEMM on tensor cores (mma.sync m16n8k16): out[m,n] = f(m, n, sum_k a[m,k] b[k,n]) with a row-major and b in panels of
// 32 columns, each f32, f16 or bf16. Operands are T = f16 or bf16: what is stored as T goes to shared memory by
// cp.async, anything else is loaded a slice ahead into registers and rounded there; sums are f32. Tile 64x64x32, four
// warps of 32x32, two stages. Must hold: blocks are (ceil(n/64), ceil(m/64)) and share nothing; a begins at a multiple
// of 16 bytes.
#pragma once
#include "kernels/cuda/gemm_f32.cuh"

namespace tare {

struct GemmMma {
  static constexpr int kRows = 64, kColumns = 64, kDepth = 32, kThreads = 128;
  static constexpr int kPitchB = kColumns + 8; // the 16-byte rows of ldmatrix fall into different banks
  static constexpr u32 kA = kRows * kDepth, kB = kDepth * kPitchB;
  static constexpr u32 kSharedBytes = 2 * 2 * (kA + kB);
  /// Where element c of row r of A lies: its 16-byte pieces are permuted by the row, so that neither the eight rows of
  /// an ldmatrix nor the eight pieces of a store meet in a bank.
  TARE_DEVICE static u32 placeA(u32 r, u32 c) { return r * kDepth + ((c / 8) ^ (r / 2 % 4)) * 8 + c % 8; }
};

/// Whether memory of type X is copied to shared memory as it is.
template <class T, class X> constexpr bool kCopied = false;
template <class T> constexpr bool kCopied<T, T> = true;

/// What one thread carries of a slice that must be rounded: pieces of 16 bytes of memory.
template <class X> struct MmaPiece {
  static constexpr int kElements = 16 / sizeof(X), kCount = GemmMma::kRows * GemmMma::kDepth / kElements / GemmMma::kThreads;
  float v[kCount][kElements];
};
template <class T, int N> TARE_DEVICE void round_to(shared<T> to, i64 at, const float (&v)[N]) {
  vec<T, N> w;
#pragma unroll
  for (int e = 0; e < N; ++e) w[e] = from_float<T>(v[e]);
  to.template writeVector<N>(at, w);
}

/// Fetches one slice: copies fly to `as` and `bs` by themselves, the rest waits in registers for gemm_mma_put. Past the
/// edges come zeros.
template <class T, class A, class W>
TARE_DEVICE void gemm_mma_fetch(global<const A> a, i64 lda, global<const W> b, i64 m, i64 n, i64 k, i64 row, i64 column, i64 depth,
                                shared<T> as, shared<T> bs, MmaPiece<A> &pa, MmaPiece<W> &pb) {
  constexpr int N = MmaPiece<A>::kElements, M = MmaPiece<W>::kElements;
#pragma unroll
  for (int p = 0; p < MmaPiece<A>::kCount; ++p) {
    const u32 i = thread_index() + p * GemmMma::kThreads, r = i / (GemmMma::kDepth / N), c = i % (GemmMma::kDepth / N) * N;
    const i64 left = row + r < m ? k - depth - c : 0, from = left > 0 ? (row + r) * lda + depth + c : 0;
    const int valid = static_cast<int>(left < 0 ? 0 : left > N ? N : left);
    const bool aligned = lda % N == 0;
    if constexpr (kCopied<T, A>) {
      if (aligned) {
        cp_async16(as, GemmMma::placeA(r, c), a, from, valid);
        continue;
      }
    }
    if (aligned && valid == N) {
      const vec<A, N> x = a.template readVector<N>(from);
#pragma unroll
      for (int e = 0; e < N; ++e) pa.v[p][e] = to_float(x[e]);
    } else {
#pragma unroll
      for (int e = 0; e < N; ++e) pa.v[p][e] = e < valid ? to_float(a.read(from + e)) : 0.0f;
    }
  }
#pragma unroll
  for (int p = 0; p < MmaPiece<W>::kCount; ++p) {
    const u32 i = thread_index() + p * GemmMma::kThreads, r = i / (GemmMma::kColumns / M), c = i % (GemmMma::kColumns / M) * M;
    const i64 first = column + c / 32 * 32;
    const bool inside = first < n && depth + r < k;
    const i64 from = inside ? (first / 32 * k + depth + r) * 32 + c % 32 : 0;
    if constexpr (kCopied<T, W>) {
      cp_async16(bs, r * GemmMma::kPitchB + c, b, from, inside ? M : 0);
    } else {
      vec<W, M> x = {};
      if (inside) x = b.template readVector<M>(from);
#pragma unroll
      for (int e = 0; e < M; ++e) pb.v[p][e] = inside ? to_float(x[e]) : 0.0f;
    }
  }
}
/// Rounds what gemm_mma_fetch left in registers into shared memory.
template <class T, class A, class W>
TARE_DEVICE void gemm_mma_put(i64 lda, shared<T> as, shared<T> bs, const MmaPiece<A> &pa, const MmaPiece<W> &pb) {
  constexpr int N = MmaPiece<A>::kElements, M = MmaPiece<W>::kElements;
  if (!kCopied<T, A> || lda % N != 0)
#pragma unroll
    for (int p = 0; p < MmaPiece<A>::kCount; ++p) {
      const u32 i = thread_index() + p * GemmMma::kThreads;
      round_to(as, GemmMma::placeA(i / (GemmMma::kDepth / N), i % (GemmMma::kDepth / N) * N), pa.v[p]);
    }
  if constexpr (!kCopied<T, W>)
#pragma unroll
    for (int p = 0; p < MmaPiece<W>::kCount; ++p) {
      const u32 i = thread_index() + p * GemmMma::kThreads;
      round_to(bs, i / (GemmMma::kColumns / M) * GemmMma::kPitchB + i % (GemmMma::kColumns / M) * M, pb.v[p]);
    }
}

/// The tile at (row, column). `epilogue(row, column, sum)` gives the result of each element inside the matrix. Ends
/// with a barrier behind all reads of shared memory.
template <class T, class A, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_mma_tile(global<const A> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column,
                               Epilogue epilogue) {
  constexpr u32 kA = GemmMma::kA, kB = GemmMma::kB;
  const auto as = [](i64 slice) { return shared_at<T>(slice % 2 ? 2 * kA : 0, kA); };
  const auto bs = [](i64 slice) { return shared_at<T>(4 * kA + (slice % 2 ? 2 * kB : 0), kB); };
  const u32 lane = lane_index(), warp = thread_index() / 32, rowOfWarp = warp / 2 * 32, columnOfWarp = warp % 2 * 32;
  float sum[2][4][4] = {}; // [16 rows][8 columns][fragment]
  MmaPiece<A> pa;
  MmaPiece<W> pb;
  const i64 slices = (k + GemmMma::kDepth - 1) / GemmMma::kDepth;
  if (slices > 0) {
    gemm_mma_fetch(a, lda, b, m, n, k, row, column, 0, as(0), bs(0), pa, pb);
    gemm_mma_put(lda, as(0), bs(0), pa, pb);
  }
  cp_async_commit();
  for (i64 s = 0; s < slices; ++s) {
    cp_async_wait<0>();
    sync_threads(); // slice s is there for all threads; nobody reads slice s - 1 any more, whose place slice s + 1 takes
    const bool more = s + 1 < slices;
    if (more) gemm_mma_fetch(a, lda, b, m, n, k, row, column, (s + 1) * GemmMma::kDepth, as(s + 1), bs(s + 1), pa, pb);
    cp_async_commit();
    const shared<T> at = as(s), bt = bs(s);
#pragma unroll
    for (u32 d = 0; d < GemmMma::kDepth; d += 16) {
      u32 fa[2][4], fb[4][2];
#pragma unroll
      for (u32 i = 0; i < 2; ++i) ldmatrix(fa[i], at, GemmMma::placeA(rowOfWarp + 16 * i + lane % 16, d + lane / 16 * 8));
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
    if (more) gemm_mma_put(lda, as(s + 1), bs(s + 1), pa, pb);
  }
  sync_threads(); // before the next tile is loaded
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

template <class T, class A, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_mma(global<const A> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, Epilogue epilogue) {
  gemm_mma_tile<T>(a, lda, b, out, m, n, k, static_cast<i64>(block_index_y()) * GemmMma::kRows,
                   static_cast<i64>(block_index_x()) * GemmMma::kColumns, epilogue);
}

} // namespace tare
