// Reductions over a warp and rows that a warp owns. In: one value per lane, or functions that give a row's elements. Out: the same result in every lane.
// Must hold: all 32 lanes come; the order of the sum is fixed (butterfly), so results do not depend on scheduling.
#pragma once
#include "kernels/cuda/math.cuh"

namespace tare {

template <class T> TARE_DEVICE T warp_sum(T v) {
  for (u32 m = 16; m; m /= 2) v += shuffle_xor(v, m);
  return v;
}
template <class T> TARE_DEVICE T warp_max(T v) {
  for (u32 m = 16; m; m /= 2) v = max_of(v, shuffle_xor(v, m));
  return v;
}

/// The same with any commutative `combine(a, b)`.
template <class T, class Combine> TARE_DEVICE T warp_fold(T v, Combine combine) {
  for (u32 m = 16; m; m /= 2) v = combine(v, shuffle_xor(v, m));
  return v;
}

/// Statistics of one row of `columns` elements `x(j)`, each lane taking every 32nd: mean and 1/sqrt(variance + epsilon), two passes (ONNX LayerNormalization).
struct Moments {
  float mean, factor;
};
template <class X> TARE_DEVICE Moments layer_moments(i64 columns, float epsilon, X x) {
  float sum = 0;
  for (i64 j = lane_index(); j < columns; j += 32) sum += x(j);
  const float mean = warp_sum(sum) / static_cast<float>(columns);
  float square = 0;
  for (i64 j = lane_index(); j < columns; j += 32) {
    const float d = x(j) - mean;
    square += d * d;
  }
  return {mean, 1.0f / sqrt32(warp_sum(square) / static_cast<float>(columns) + epsilon)};
}
/// 1/sqrt(mean of squares + epsilon) (RMSNormalization).
template <class X> TARE_DEVICE float rms_factor(i64 columns, float epsilon, X x) {
  float square = 0;
  for (i64 j = lane_index(); j < columns; j += 32) {
    const float v = x(j);
    square += v * v;
  }
  return 1.0f / sqrt32(warp_sum(square) / static_cast<float>(columns) + epsilon);
}
/// Maximum and sum of exp(x - maximum) of one row in one pass (online softmax): {-inf, 0} for an empty row, NaN when an element is.
struct SoftmaxState {
  float most, sum;
};
TARE_DEVICE void softmax_step(SoftmaxState &s, float v) {
  const float most = max_of(s.most, v);
  const float shift = most == -TARE_INF ? 0.0f : most;
  s.sum = s.sum * tare_expf(s.most - shift) + tare_expf(v - shift);
  s.most = most;
}
template <class X> TARE_DEVICE SoftmaxState softmax_state(i64 columns, X x) {
  SoftmaxState s{-TARE_INF, 0.0f};
  for (i64 j = lane_index(); j < columns; j += 32) softmax_step(s, x(j));
  for (u32 m = 16; m; m /= 2) {
    const float otherMost = shuffle_xor(s.most, m), otherSum = shuffle_xor(s.sum, m);
    const float most = max_of(s.most, otherMost), shift = most == -TARE_INF ? 0.0f : most;
    s.sum = s.sum * tare_expf(s.most - shift) + otherSum * tare_expf(otherMost - shift);
    s.most = most;
  }
  return s;
}

} // namespace tare
