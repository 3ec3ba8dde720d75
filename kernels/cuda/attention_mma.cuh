// Attention on tensor cores, FlashAttention-2: 64 queries of one head per block (16 per warp), 64 keys at a time (32 for
// wide heads), scores and output in mma fragments, softmax state in f32 registers, P reused as an operand without leaving
// registers. Operands are T = f16 or bf16. What lies in memory as T comes by cp.async, one tile ahead; f32 is rounded on
// its way to shared memory. Must hold: blocks are (ceil(queries/64), heads, batch); D (columns of q, k, v, out) is a
// multiple of 16 from 16 to 128; rows are aligned to 16 bytes; the scale is not 0.
#pragma once
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/gemm_mma.cuh"

namespace tare {

/// D columns, memory of E; T in shared memory.
template <int D, class T, class E> struct AttentionMma {
  static_assert(D % 16 == 0 && D >= 16 && D <= 128);
  static constexpr int kQueries = 64, kKeys = D > 64 ? 32 : 64, kThreads = 128, kPitch = D + 8;
  static constexpr int kStages = kCopied<T, E> ? 2 : 1;
  static constexpr u32 kQ = kQueries * kPitch, kTile = kKeys * kPitch;
  static constexpr u32 kSharedBytes = 2 * (kQ + 2 * kStages * kTile);
};

/// `Count` rows of D elements from `from[first]` on, zeros behind row `rows`.
template <int D, int Count, class T, class E>
TARE_DEVICE void attention_mma_load(global<const E> from, i64 first, i64 stride, i64 rows, shared<T> to) {
  constexpr u32 N = 16 / sizeof(E), kPieces = Count * (D / N);
#pragma unroll 4 // so many loads in flight, no more: the scores need the registers
  for (u32 p = 0; p < (kPieces + 127) / 128; ++p) {
    const u32 i = thread_index() + 128 * p, r = i / (D / N), c = i % (D / N) * N;
    if (kPieces % 128 && i >= kPieces) continue;
    if constexpr (kCopied<T, E>) {
      cp_async16(to, r * (D + 8) + c, from, r < rows ? first + r * stride + c : 0, r < rows ? N : 0);
    } else {
      vec<E, N> x = {};
      if (r < rows) x = from.template readVector<N>(first + r * stride + c);
      float v[N];
#pragma unroll
      for (u32 e = 0; e < N; ++e) v[e] = to_float(x[e]);
      round_to(to, r * (D + 8) + c, v);
    }
  }
}

/// `bias(batch, head, query, key)` is added to the scaled score; -inf masks. With `causal`, keys behind a query (its
/// position is query + keys - queries) are masked as well, and tiles of such keys are never looked at.
template <int D, class T, class E, class Out, class Bias>
TARE_DEVICE void attention_mma(global<const E> q, global<const E> k, global<const E> v, global<Out> out, const Attention &a, bool causal, Bias bias) {
  using Tile = AttentionMma<D, T, E>;
  constexpr u32 kBlocks = Tile::kKeys / 8;
  constexpr bool kAhead = Tile::kStages == 2;
  const shared<T> qs = shared_at<T>(0, Tile::kQ);
  const auto stage = [](i64 tile, u32 matrix) {
    return shared_at<T>(2 * (Tile::kQ + (2 * (kAhead ? static_cast<u32>(tile % 2) : 0) + matrix) * Tile::kTile), Tile::kTile);
  };
  const auto ks = [&](i64 tile) { return stage(tile, 0); };
  const auto vs = [&](i64 tile) { return stage(tile, 1); };
  const i64 batch = block_index_z(), head = block_index_y(), group = head / (a.heads / a.kvHeads);
  const i64 firstQuery = static_cast<i64>(block_index_x()) * Tile::kQueries;
  const u32 lane = lane_index(), warpRow = thread_index() / 32 * 16;
  const i64 past = a.keys - a.queries, lastQuery = firstQuery + Tile::kQueries < a.queries ? firstQuery + Tile::kQueries : a.queries;
  const i64 reach = causal && lastQuery + past < a.keys ? lastQuery + past : a.keys; // keys that any row of the block may see
  const i64 tiles = reach > 0 ? (reach + Tile::kKeys - 1) / Tile::kKeys : 0;
  const auto load = [&](i64 tile) {
    const i64 key = tile * Tile::kKeys;
    attention_mma_load<D, Tile::kKeys>(k, a.at(a.k, batch, group, key), a.k.row, a.keys - key, ks(tile));
    attention_mma_load<D, Tile::kKeys>(v, a.at(a.v, batch, group, key), a.v.row, a.keys - key, vs(tile));
  };
  const float inverse = 1.0f / a.scale;

  attention_mma_load<D, Tile::kQueries>(q, a.at(a.q, batch, head, firstQuery), a.q.row, a.queries - firstQuery, qs);
  if (kAhead && tiles > 0) load(0);
  cp_async_commit();
  float most[2] = {-TARE_INF, -TARE_INF}, sum[2] = {};
  float acc[D / 8][4] = {};
  for (i64 tile = 0; tile < tiles; ++tile) {
    // The sums begin at bias / scale. What a key is masked with does not enter them: `seen` has a bit per score.
    float s[kBlocks][4];
    u32 seen = 0;
    bool masked = true;
#pragma unroll
    for (u32 j = 0; j < kBlocks; ++j)
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        const i64 query = firstQuery + warpRow + lane / 4 + i / 2 * 8, key = tile * Tile::kKeys + 8 * j + lane % 4 * 2 + i % 2;
        const bool inside = query < a.queries && key < a.keys && (!causal || key <= query + past);
        const float b = inside ? bias(batch, head, query, key) : -TARE_INF;
        const bool here = !(b == -TARE_INF); // NaN is seen
        masked = masked && b <= kMasked;
        seen |= static_cast<u32>(here) << (4 * j + i);
        s[j][i] = !here ? 0.0f : b * inverse == -TARE_INF ? -3e38f : b * inverse;
      }
    const i64 rowHere = firstQuery + warpRow + lane / 4;
    const bool idle = masked && (most[0] > kMasked || rowHere >= a.queries) && (most[1] > kMasked || rowHere + 8 >= a.queries);
    if (kAhead) cp_async_wait<0>();
    // Behind this barrier this tile's data is there (or its place free), and nobody reads the last tile's any more.
    const bool skip = sync_threads_all(idle);
    if (kAhead) {
      if (tile + 1 < tiles) load(tile + 1);
      cp_async_commit();
    }
    if (skip) continue;
    if (!kAhead) {
      load(tile);
      sync_threads();
    }
    // S = Q K^T: 16 rows of this warp, 8 columns per fragment.
#pragma unroll
    for (u32 d = 0; d < D; d += 16) {
      u32 fq[4];
      ldmatrix(fq, qs, (warpRow + lane % 16) * Tile::kPitch + d + lane / 16 * 8);
#pragma unroll
      for (u32 j = 0; j < kBlocks; ++j) {
        u32 fk[2];
        ldmatrix(fk, ks(tile), (8 * j + lane % 8) * Tile::kPitch + d + lane / 8 % 2 * 8);
        mma_m16n8k16<T>(s[j], fq, fk);
      }
    }
    float tileMost[2] = {-TARE_INF, -TARE_INF};
#pragma unroll
    for (u32 j = 0; j < kBlocks; ++j)
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        s[j][i] = seen >> (4 * j + i) & 1 ? s[j][i] * a.scale : -TARE_INF;
        tileMost[i / 2] = max_of(tileMost[i / 2], s[j][i]);
      }
    float shift[2];
#pragma unroll
    for (u32 h = 0; h < 2; ++h) {
      tileMost[h] = max_of(tileMost[h], shuffle_xor(tileMost[h], 1));
      tileMost[h] = max_of(tileMost[h], shuffle_xor(tileMost[h], 2));
      const float newMost = max_of(most[h], tileMost[h]);
      shift[h] = newMost == -TARE_INF ? 0.0f : newMost;
      const float old = tare_expf(most[h] - shift[h]);
      most[h] = newMost;
      sum[h] *= old;
#pragma unroll
      for (u32 j = 0; j < D / 8; ++j) acc[j][2 * h] *= old, acc[j][2 * h + 1] *= old;
    }
#pragma unroll
    for (u32 j = 0; j < kBlocks; ++j)
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        s[j][i] = tare_expf(s[j][i] - shift[i / 2]);
        sum[i / 2] += s[j][i];
      }
    // O += P V: the layout of an accumulator is that of an A operand.
#pragma unroll
    for (u32 j = 0; j < kBlocks; j += 2) {
      u32 fp[4];
      fp[0] = pack(from_float<T>(s[j][0]), from_float<T>(s[j][1])), fp[1] = pack(from_float<T>(s[j][2]), from_float<T>(s[j][3]));
      fp[2] = pack(from_float<T>(s[j + 1][0]), from_float<T>(s[j + 1][1])), fp[3] = pack(from_float<T>(s[j + 1][2]), from_float<T>(s[j + 1][3]));
#pragma unroll
      for (u32 d = 0; d < D / 8; ++d) {
        u32 fv[2];
        ldmatrix_transposed(fv, vs(tile), (8 * j + lane % 16) * Tile::kPitch + 8 * d);
        mma_m16n8k16<T>(acc[d], fp, fv);
      }
    }
  }
  cp_async_wait<0>();
#pragma unroll
  for (u32 h = 0; h < 2; ++h) {
    sum[h] += shuffle_xor(sum[h], 1);
    sum[h] += shuffle_xor(sum[h], 2);
    const i64 query = firstQuery + warpRow + lane / 4 + 8 * h;
    if (query >= a.queries) continue;
    const float factor = attention_factor(sum[h], a.nanGuard);
#pragma unroll
    for (u32 d = 0; d < D / 8; ++d) {
      vec<Out, 2> y;
      for (u32 e = 0; e < 2; ++e) y[e] = from_float<Out>(a.nanGuard && sum[h] != sum[h] ? 0.0f : acc[d][2 * h + e] * factor);
      out.template writeVector<2>(a.at(a.out, batch, head, query) + 8 * d + lane % 4 * 2, y);
    }
  }
}

} // namespace tare
