// What both attention kernels share: the problem, and the rule for a row's last division. In: strides in elements, so that q, k, v and out lie as [B,S,H,D] or
// [B,H,S,D], and k and v may be caches with room behind the last key. Heads of q may be a multiple of those of k and v (GQA).
// out = softmax(scale q k^T + bias) v by the online softmax of FlashAttention-2 (Dao 2023, algorithm 1): running maximum and sum per row, both f32.
#pragma once
#include "kernels/cuda/reduce.cuh"

namespace tare {

struct Strides {
  i64 batch, head, row;
};
struct Attention {
  i64 heads, kvHeads, queries, keys;
  Strides q, k, v, out;
  float scale;
  bool nanGuard; // a row whose softmax is NaN becomes 0
  TARE_DEVICE i64 at(const Strides &s, i64 batch, i64 head, i64 row) const { return batch * s.batch + head * s.head + row * s.row; }
};

/// Scores at or below this are masks: a tile of nothing else, after every row has seen a real key, has weight 0 and is left out.
constexpr float kMasked = -1e30f;

/// What a row's weighted sum is multiplied with at the end. A row that saw no key with a finite score has softmax 0/0.
TARE_DEVICE float attention_factor(float sum, bool nanGuard) {
  const float f = sum == 0.0f ? TARE_NAN : 1.0f / sum;
  return nanGuard && sum != sum ? 0.0f : nanGuard && sum == 0.0f ? 0.0f : f;
}

} // namespace tare
