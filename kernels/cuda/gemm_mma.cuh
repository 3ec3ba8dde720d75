// GEMM on tensor cores (mma.sync m16n8k16): out[m,n] = f(m, n, sum_k a[m,k] b[k,n]) with a row-major and b in panels of
// 32 columns, each f32, f16 or bf16. Operands are T = f16 or bf16: what is stored as T goes to shared memory by
// cp.async, anything else is loaded into registers and rounded there, slices ahead in both cases; sums are f32. Two
// tiles: 64x64 fills a GPU with few rows, 128x128 reads half as many bytes from L2 for each product. Must hold: blocks
// are (ceil(n/kColumns), ceil(m/kRows)) of the tile and share nothing; a begins at a multiple of 16 bytes.
#pragma once
#include "kernels/cuda/gemm_f32.cuh"

namespace tare {

/// Four warps, two by two, of kWarpRows x kWarpColumns results each; `Stages` slices of depth 32 in shared memory.
template <int Rows, int Columns, int Stages> struct MmaTile {
  static constexpr int kRows = Rows, kColumns = Columns, kDepth = 32, kThreads = 128, kStages = Stages;
  static constexpr int kWarpRows = Rows / 2, kWarpColumns = Columns / 2;
  static constexpr u32 kA = kRows * kDepth, kB = kDepth * kColumns; // elements of a slice
  static constexpr u32 kSharedBytes = kStages * 2 * (kA + kB);
  // The epilogue's: 16 rows of a warp in f32. With this pitch four rows of fragments fall into different banks.
  static constexpr u32 kPitch = kWarpColumns + 8, kWarpSums = 16 * kPitch;
  static_assert(kColumns % 64 == 0 && 4 * 4 * kWarpSums <= kSharedBytes);
  /// Where element c of row r of A, or of B, lies: pieces of 16 bytes are permuted by the row, so that neither the eight
  /// rows of an ldmatrix nor the eight pieces of a store meet in a bank.
  TARE_DEVICE static u32 placeA(u32 r, u32 c) { return r * kDepth + ((c / 8) ^ (r / 2 % 4)) * 8 + c % 8; }
  TARE_DEVICE static u32 placeB(u32 r, u32 c) { return r * kColumns + ((c / 8) ^ (r % 8)) * 8 + c % 8; }
};
using GemmMma = MmaTile<64, 64, 3>;        // four blocks of 24 KiB, or
using GemmMmaLarge = MmaTile<128, 128, 3>; // two of 48 KiB fit a multiprocessor of every architecture

/// Whether memory of type X is copied to shared memory as it is.
template <class T, class X> constexpr bool kCopied = false;
template <class T> constexpr bool kCopied<T, T> = true;

/// What one thread carries of a slice of `Elements` that must be rounded: pieces of 16 bytes of memory.
template <class X, int Elements> struct MmaPiece {
  static constexpr int kElements = 16 / sizeof(X), kCount = Elements / kElements / 128;
  float v[kCount][kElements];
};
template <class Tile, class A> using MmaPieceA = MmaPiece<A, Tile::kA>;
template <class Tile, class W> using MmaPieceB = MmaPiece<W, Tile::kB>;
template <class T, int N> TARE_DEVICE void round_to(shared<T> to, i64 at, const float (&v)[N]) {
  vec<T, N> w;
#pragma unroll
  for (int e = 0; e < N; ++e) w[e] = from_float<T>(v[e]);
  to.template writeVector<N>(at, w);
}

/// Fetches a slice of A: copies fly to `as` by themselves, the rest waits in registers for gemm_mma_put_a. Past the edges
/// come zeros.
template <class Tile, class T, class A>
TARE_DEVICE void gemm_mma_fetch_a(global<const A> a, i64 lda, i64 m, i64 k, i64 row, i64 depth, shared<T> as, MmaPieceA<Tile, A> &piece) {
  constexpr int N = MmaPieceA<Tile, A>::kElements;
#pragma unroll
  for (int p = 0; p < MmaPieceA<Tile, A>::kCount; ++p) {
    const u32 i = thread_index() + p * Tile::kThreads, r = i / (Tile::kDepth / N), c = i % (Tile::kDepth / N) * N;
    const i64 left = row + r < m ? k - depth - c : 0, from = left > 0 ? (row + r) * lda + depth + c : 0;
    const int valid = static_cast<int>(left < 0 ? 0 : left > N ? N : left);
    const bool aligned = lda % N == 0;
    if constexpr (kCopied<T, A>) {
      if (aligned) {
        cp_async16(as, Tile::placeA(r, c), a, from, valid);
        continue;
      }
    }
    if (aligned && valid == N) {
      const vec<A, N> x = a.template readVector<N>(from);
#pragma unroll
      for (int e = 0; e < N; ++e) piece.v[p][e] = to_float(x[e]);
    } else {
#pragma unroll
      for (int e = 0; e < N; ++e) piece.v[p][e] = e < valid ? to_float(a.read(from + e)) : 0.0f;
    }
  }
}
/// The same of B.
template <class Tile, class T, class W>
TARE_DEVICE void gemm_mma_fetch_b(global<const W> b, i64 n, i64 k, i64 column, i64 depth, shared<T> bs, MmaPieceB<Tile, W> &piece) {
  constexpr int N = MmaPieceB<Tile, W>::kElements;
#pragma unroll
  for (int p = 0; p < MmaPieceB<Tile, W>::kCount; ++p) {
    const u32 i = thread_index() + p * Tile::kThreads, r = i / (Tile::kColumns / N), c = i % (Tile::kColumns / N) * N;
    const i64 first = column + c / 32 * 32;
    const bool inside = first < n && depth + r < k;
    const i64 from = inside ? (first / 32 * k + depth + r) * 32 + c % 32 : 0;
    if constexpr (kCopied<T, W>) {
      cp_async16(bs, Tile::placeB(r, c), b, from, inside ? N : 0);
    } else {
      vec<W, N> x = {};
      if (inside) x = b.template readVector<N>(from);
#pragma unroll
      for (int e = 0; e < N; ++e) piece.v[p][e] = inside ? to_float(x[e]) : 0.0f;
    }
  }
}
/// Rounds what a fetch left in registers into shared memory.
template <class Tile, class T, class A> TARE_DEVICE void gemm_mma_put_a(i64 lda, shared<T> as, const MmaPieceA<Tile, A> &piece) {
  constexpr int N = MmaPieceA<Tile, A>::kElements;
  if (kCopied<T, A> && lda % N == 0) return;
#pragma unroll
  for (int p = 0; p < MmaPieceA<Tile, A>::kCount; ++p) {
    const u32 i = thread_index() + p * Tile::kThreads;
    round_to(as, Tile::placeA(i / (Tile::kDepth / N), i % (Tile::kDepth / N) * N), piece.v[p]);
  }
}
template <class Tile, class T, class W> TARE_DEVICE void gemm_mma_put_b(shared<T> bs, const MmaPieceB<Tile, W> &piece) {
  constexpr int N = MmaPieceB<Tile, W>::kElements;
  if constexpr (!kCopied<T, W>)
#pragma unroll
    for (int p = 0; p < MmaPieceB<Tile, W>::kCount; ++p) {
      const u32 i = thread_index() + p * Tile::kThreads;
      round_to(bs, Tile::placeB(i / (Tile::kColumns / N), i % (Tile::kColumns / N) * N), piece.v[p]);
    }
}

/// sum += the product of 16 columns of a slice of A, from `d` on, and rows of B, for this warp.
template <class Tile, class T>
TARE_DEVICE void gemm_mma_multiply(shared<T> as, shared<T> bs, u32 d, u32 rowOfWarp, u32 columnOfWarp,
                                   float (&sum)[Tile::kWarpRows / 16][Tile::kWarpColumns / 8][4]) {
  const u32 lane = lane_index();
  u32 fa[Tile::kWarpRows / 16][4];
#pragma unroll
  for (u32 i = 0; i < Tile::kWarpRows / 16; ++i) ldmatrix(fa[i], as, Tile::placeA(rowOfWarp + 16 * i + lane % 16, d + lane / 16 * 8));
#pragma unroll
  for (u32 j = 0; j < Tile::kWarpColumns / 8; j += 2) { // two 8-column fragments at once
    u32 both[4];
    ldmatrix_transposed(both, bs, Tile::placeB(d + lane % 16, columnOfWarp + 8 * j + lane / 16 * 8));
    const u32 first[2] = {both[0], both[1]}, second[2] = {both[2], both[3]};
#pragma unroll
    for (u32 i = 0; i < Tile::kWarpRows / 16; ++i) {
      mma_m16n8k16<T>(sum[i][j], fa[i], first);
      mma_m16n8k16<T>(sum[i][j + 1], fa[i], second);
    }
  }
}

/// A warp's results: 16 rows at a time go through shared memory, so that a warp reads and writes whole rows.
template <class Tile, class Out, class Epilogue>
TARE_DEVICE void gemm_mma_finish(global<Out> out, i64 m, i64 n, i64 row, i64 column, const float (&sum)[Tile::kWarpRows / 16][Tile::kWarpColumns / 8][4],
                                 Epilogue epilogue) {
  constexpr u32 kLanes = Tile::kWarpColumns / 2; // of a row: two columns each
  const u32 lane = lane_index();
  const shared<float> sums = shared_at<float>(thread_index() / 32 * 4 * Tile::kWarpSums, Tile::kWarpSums);
#pragma unroll
  for (u32 i = 0; i < Tile::kWarpRows / 16; ++i) {
#pragma unroll
    for (u32 j = 0; j < Tile::kWarpColumns / 8; ++j)
#pragma unroll
      for (u32 half = 0; half < 2; ++half)
        sums.template writeVector<2>((lane / 4 + 8 * half) * Tile::kPitch + 8 * j + lane % 4 * 2, {sum[i][j][2 * half], sum[i][j][2 * half + 1]});
    sync_warp();
#pragma unroll 4
    for (u32 r = lane / kLanes; r < 16; r += 32 / kLanes) {
      const vec<float, 2> v = sums.template readVector<2>(r * Tile::kPitch + lane % kLanes * 2);
      const i64 y = row + 16 * i + r, x = column + lane % kLanes * 2;
      if (y >= m || x >= n) continue;
      const float low = epilogue(y, x, v[0]);
      if (x + 1 < n && n % 2 == 0) {
        vec<Out, 2> w;
        w[0] = from_float<Out>(low), w[1] = from_float<Out>(epilogue(y, x + 1, v[1]));
        out.template writeVector<2>(y * n + x, w);
      } else {
        out.write(y * n + x, from_float<Out>(low));
        if (x + 1 < n) out.write(y * n + x + 1, from_float<Out>(epilogue(y, x + 1, v[1])));
      }
    }
    sync_warp();
  }
}

/// The tile at (row, column). `epilogue(row, column, sum)` gives the result of each element inside the matrix. Ends
/// with a barrier behind all reads of shared memory.
template <class T, class Tile = GemmMma, class A, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_mma_tile(global<const A> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column,
                               Epilogue epilogue) {
  constexpr u32 kA = Tile::kA, kB = Tile::kB;
  constexpr int kAhead = Tile::kStages - 1;
  const auto as = [](i64 slice) { return shared_at<T>(2 * kA * static_cast<u32>(slice % Tile::kStages), kA); };
  const auto bs = [](i64 slice) { return shared_at<T>(2 * (Tile::kStages * kA + kB * static_cast<u32>(slice % Tile::kStages)), kB); };
  const u32 warp = thread_index() / 32, rowOfWarp = warp / 2 * Tile::kWarpRows, columnOfWarp = warp % 2 * Tile::kWarpColumns;
  float sum[Tile::kWarpRows / 16][Tile::kWarpColumns / 8][4] = {}; // [16 rows][8 columns][fragment]
  const i64 slices = (k + Tile::kDepth - 1) / Tile::kDepth;
  // A comes before B, so that registers hold only one of them on its way.
  MmaPieceA<Tile, A> pa;
  MmaPieceB<Tile, W> pb;
  const auto fetchA = [&](i64 s) { if (s < slices) gemm_mma_fetch_a<Tile>(a, lda, m, k, row, s * Tile::kDepth, as(s), pa); };
  const auto fetchB = [&](i64 s) { if (s < slices) gemm_mma_fetch_b<Tile>(b, n, k, column, s * Tile::kDepth, bs(s), pb); };
  const auto putA = [&](i64 s) { if (s < slices) gemm_mma_put_a<Tile>(lda, as(s), pa); };
  const auto putB = [&](i64 s) { if (s < slices) gemm_mma_put_b<Tile>(bs(s), pb); };
#pragma unroll
  for (int s = 0; s < kAhead; ++s) {
    fetchA(s), putA(s), fetchB(s), putB(s);
    cp_async_commit();
  }
  for (i64 s = 0; s < slices; ++s) {
    cp_async_wait<kAhead - 1>();
    sync_threads(); // slice s is there for all threads; nobody reads slice s - 1 any more, whose place the next one takes
    const i64 next = s + kAhead;
    fetchA(next);
    gemm_mma_multiply<Tile>(as(s), bs(s), 0, rowOfWarp, columnOfWarp, sum);
    putA(next), fetchB(next);
    gemm_mma_multiply<Tile>(as(s), bs(s), 16, rowOfWarp, columnOfWarp, sum);
    putB(next);
    cp_async_commit();
  }
  cp_async_wait<0>();
  sync_threads(); // the epilogue takes the slices' place
  gemm_mma_finish<Tile>(out, m, n, row + rowOfWarp, column + columnOfWarp, sum, epilogue);
  sync_threads(); // before the next tile is loaded
}

template <class T, class Tile = GemmMma, class A, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_mma(global<const A> a, i64 lda, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, Epilogue epilogue) {
  gemm_mma_tile<T, Tile>(a, lda, b, out, m, n, k, static_cast<i64>(block_index_y()) * Tile::kRows,
                         static_cast<i64>(block_index_x()) * Tile::kColumns, epilogue);
}

} // namespace tare
