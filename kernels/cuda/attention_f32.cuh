// Attention in f32 without tensor cores. Tile: 32 queries of one head, 32 keys at a time; four threads share a query row and split its keys, then its output
// columns. In: Attention, a bias function. Out: out. Must hold: blocks are (ceil(queries/32), heads, batch); D and V (columns of q, k and of v, out) are multiples of
// 4 and at most 256; rows of q, k, v are aligned to 16 bytes.
#pragma once
#include "kernels/cuda/attention.cuh"

namespace tare {

template <int D, int V> struct AttentionF32 {
  static constexpr int kQueries = 32, kKeys = 32, kThreads = 128;
  static constexpr int kPitch = D + 4, kPitchV = V + 4, kPitchP = kKeys + 4;
  static constexpr u32 kQ = kQueries * kPitch, kK = kKeys * kPitch, kV = kKeys * kPitchV, kP = kQueries * kPitchP;
  static constexpr u32 kSharedBytes = 4 * (kQ + kK + kV + kP);
};

/// `rows` rows of C floats from `from` on to shared memory, zeros behind the last one.
template <int C> TARE_DEVICE void attention_f32_load(global<const float> from, i64 first, i64 stride, i64 rows, int count, shared<float> to) {
  for (u32 i = thread_index(); i < static_cast<u32>(count) * (C / 4); i += 128) {
    const u32 r = i / (C / 4), c = i % (C / 4) * 4;
    cp_async16(to, r * (C + 4) + c, from, r < rows ? first + r * stride + c : 0, r < rows ? 4 : 0);
  }
}

/// `bias(batch, head, query, key)` is added to the scaled score; -inf masks.
template <int D, int V, class Out, class Bias>
TARE_DEVICE void attention_f32(global<const float> q, global<const float> k, global<const float> v, global<Out> out, const Attention &a, Bias bias) {
  using Tile = AttentionF32<D, V>;
  const shared<float> qs = shared_at<float>(0, Tile::kQ), ks = shared_at<float>(4 * Tile::kQ, Tile::kK), vs = shared_at<float>(4 * (Tile::kQ + Tile::kK), Tile::kV);
  const shared<float> ps = shared_at<float>(4 * (Tile::kQ + Tile::kK + Tile::kV), Tile::kP);
  const i64 batch = block_index_z(), head = block_index_y(), group = head / (a.heads / a.kvHeads), firstQuery = static_cast<i64>(block_index_x()) * Tile::kQueries;
  const u32 row = thread_index() / 4, part = thread_index() % 4; // keys part, part + 4, ...; columns 4 part + 16 j
  const i64 query = firstQuery + row;
  const bool active = query < a.queries;

  attention_f32_load<D>(q, a.at(a.q, batch, head, firstQuery), a.q.row, a.queries - firstQuery, Tile::kQueries, qs);
  cp_async_commit();
  float most = -TARE_INF, sum = 0;
  float acc[(V + 15) / 16][4] = {};
  for (i64 firstKey = 0; firstKey < a.keys; firstKey += Tile::kKeys) {
    float score[8];
    bool masked = true;
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
      const i64 key = firstKey + part + 4 * j;
      score[j] = active && key < a.keys ? bias(batch, head, query, key) : -TARE_INF;
      masked = masked && score[j] <= kMasked;
    }
    // Also the barrier behind the last tile's reads of ks and vs.
    if (sync_threads_all(masked && (most > kMasked || !active))) continue;
    attention_f32_load<D>(k, a.at(a.k, batch, group, firstKey), a.k.row, a.keys - firstKey, Tile::kKeys, ks);
    attention_f32_load<V>(v, a.at(a.v, batch, group, firstKey), a.v.row, a.keys - firstKey, Tile::kKeys, vs);
    cp_async_commit();
    cp_async_wait<0>();
    sync_threads();

    float dot[8] = {};
#pragma unroll 4
    for (u32 d = 0; d < D; d += 4) {
      const vec<float, 4> x = qs.template readVector<4>(row * Tile::kPitch + d);
#pragma unroll
      for (u32 j = 0; j < 8; ++j) {
        const vec<float, 4> y = ks.template readVector<4>((part + 4 * j) * Tile::kPitch + d);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) dot[j] = fma32(x[e], y[e], dot[j]);
      }
    }
    float tileMost = -TARE_INF;
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
      score[j] = score[j] == -TARE_INF ? -TARE_INF : fma32(dot[j], a.scale, score[j]);
      tileMost = max_of(tileMost, score[j]);
    }
    tileMost = max_of(tileMost, shuffle_xor(tileMost, 1));
    tileMost = max_of(tileMost, shuffle_xor(tileMost, 2));
    const float newMost = max_of(most, tileMost), shift = newMost == -TARE_INF ? 0.0f : newMost, old = tare_expf(most - shift);
    most = newMost;
    float tileSum = 0;
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
      const float p = tare_expf(score[j] - shift);
      tileSum += p;
      ps.write(row * Tile::kPitchP + part + 4 * j, p);
    }
    tileSum += shuffle_xor(tileSum, 1);
    tileSum += shuffle_xor(tileSum, 2);
    sum = fma32(sum, old, tileSum);
#pragma unroll
    for (u32 j = 0; j < (V + 15) / 16; ++j)
#pragma unroll
      for (u32 e = 0; e < 4; ++e) acc[j][e] *= old;
    sync_warp(); // a row's four threads are neighbours in one warp
#pragma unroll 4
    for (u32 key = 0; key < Tile::kKeys; ++key) {
      const float p = ps.read(row * Tile::kPitchP + key);
#pragma unroll
      for (u32 j = 0; j < (V + 15) / 16; ++j) {
        if (V % 16 && 16 * j + 4 * part >= V) continue;
        const vec<float, 4> y = vs.template readVector<4>(key * Tile::kPitchV + 16 * j + 4 * part);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) acc[j][e] = fma32(p, y[e], acc[j][e]);
      }
    }
    sync_warp();
  }
  cp_async_wait<0>();
  if (!active) return;
  const float factor = attention_factor(sum, a.nanGuard);
#pragma unroll
  for (u32 j = 0; j < (V + 15) / 16; ++j) {
    if (V % 16 && 16 * j + 4 * part >= V) continue;
    vec<Out, 4> y;
#pragma unroll
    for (u32 e = 0; e < 4; ++e) y[e] = from_float<Out>(a.nanGuard && sum != sum ? 0.0f : acc[j][e] * factor);
    out.template writeVector<4>(a.at(a.out, batch, head, query) + 16 * j + 4 * part, y);
  }
}

} // namespace tare
