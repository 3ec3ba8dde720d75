// Attention on tensor cores, FlashAttention-2: 64 queries of one head per block (16 per warp), 64 keys at a time (32 for wide heads), K and V by cp.async in two
// stages, scores and output in mma fragments, softmax state in f32 registers, P reused as an operand without leaving registers. In: T = f16 or bf16. Must hold:
// blocks are (ceil(queries/64), heads, batch); D (columns of q, k, v, out) is 32, 48, 64, 80, 96, 112 or 128; rows are aligned to 16 bytes.
#pragma once
#include "kernels/cuda/attention.cuh"

namespace tare {

template <int D> struct AttentionMma {
  static_assert(D % 16 == 0 && D >= 16 && D <= 128);
  static constexpr int kQueries = 64, kKeys = D > 64 ? 32 : 64, kThreads = 128, kPitch = D + 8;
  static constexpr u32 kQ = kQueries * kPitch, kTile = kKeys * kPitch;
  static constexpr u32 kSharedBytes = 2 * (kQ + 4 * kTile);
};

template <int D, class T> TARE_DEVICE void attention_mma_load(global<const T> from, i64 first, i64 stride, i64 rows, int count, shared<T> to) {
  for (u32 i = thread_index(); i < static_cast<u32>(count) * (D / 8); i += 128) {
    const u32 r = i / (D / 8), c = i % (D / 8) * 8;
    cp_async16(to, r * (D + 8) + c, from, r < rows ? first + r * stride + c : 0, r < rows ? 8 : 0);
  }
}

/// `bias(batch, head, query, key)` is added to the scaled score; -inf masks. With `causal`, keys behind a query (its position is query + keys - queries) are masked
/// and tiles of such keys are never loaded.
template <int D, class T, class Bias>
TARE_DEVICE void attention_mma(global<const T> q, global<const T> k, global<const T> v, global<T> out, const Attention &a, bool causal, Bias bias) {
  using Tile = AttentionMma<D>;
  constexpr u32 kBlocks = Tile::kKeys / 8;
  const shared<T> qs = shared_at<T>(0, Tile::kQ);
  const auto ks = [](i64 tile) { return shared_at<T>(2 * (Tile::kQ + (tile % 2 ? Tile::kTile : 0)), Tile::kTile); };
  const auto vs = [](i64 tile) { return shared_at<T>(2 * (Tile::kQ + (tile % 2 ? 3 * Tile::kTile : 2 * Tile::kTile)), Tile::kTile); };
  const i64 batch = block_index_z(), head = block_index_y(), group = head / (a.heads / a.kvHeads), firstQuery = static_cast<i64>(block_index_x()) * Tile::kQueries;
  const u32 lane = lane_index(), warpRow = thread_index() / 32 * 16;
  const i64 past = a.keys - a.queries, lastQuery = firstQuery + Tile::kQueries < a.queries ? firstQuery + Tile::kQueries : a.queries;
  const i64 reach = causal && lastQuery + past < a.keys ? lastQuery + past : a.keys; // keys that any row of the block may see
  const i64 tiles = reach > 0 ? (reach + Tile::kKeys - 1) / Tile::kKeys : 0;
  const auto load = [&](i64 tile) {
    attention_mma_load<D>(k, a.at(a.k, batch, group, tile * Tile::kKeys), a.k.row, a.keys - tile * Tile::kKeys, Tile::kKeys, ks(tile));
    attention_mma_load<D>(v, a.at(a.v, batch, group, tile * Tile::kKeys), a.v.row, a.keys - tile * Tile::kKeys, Tile::kKeys, vs(tile));
  };

  attention_mma_load<D>(q, a.at(a.q, batch, head, firstQuery), a.q.row, a.queries - firstQuery, Tile::kQueries, qs);
  if (tiles > 0) load(0);
  cp_async_commit();
  float most[2] = {-TARE_INF, -TARE_INF}, sum[2] = {};
  float acc[D / 8][4] = {};
  for (i64 tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) load(tile + 1);
    cp_async_commit();
    cp_async_wait<1>();
    sync_threads();
    // S = Q K^T: 16 rows of this warp, 8 columns per fragment.
    float s[kBlocks][4] = {};
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
        const i64 query = firstQuery + warpRow + lane / 4 + i / 2 * 8, key = tile * Tile::kKeys + 8 * j + lane % 4 * 2 + i % 2;
        const bool seen = query < a.queries && key < a.keys && (!causal || key <= query + past);
        s[j][i] = seen ? fma32(s[j][i], a.scale, bias(batch, head, query, key)) : -TARE_INF;
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
    sync_threads();
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
      vec<T, 2> y;
      for (u32 e = 0; e < 2; ++e) y[e] = from_float<T>(a.nanGuard && sum[h] != sum[h] ? 0.0f : acc[d][2 * h + e] * factor);
      out.template writeVector<2>(a.at(a.out, batch, head, query) + 8 * d + lane % 4 * 2, y);
    }
  }
}

} // namespace tare
