// Kernels of independent rows and elements, one warp per row: residual + norm, embedding + norm, softmax, pointwise chains, rotary embedding. In: functions that
// compute any element of the input and take the result. Out: through them. A row is read from its source in each pass unless the caller keeps it in shared memory.
// Must hold: blocks cover the rows, kRowsPerBlock each; pointwise blocks cover the elements, kElementsPerBlock each.
#pragma once
#include "kernels/cuda/reduce.cuh"

namespace tare {

constexpr int kRowThreads = 128, kRowsPerBlock = kRowThreads / 32, kElementsPerBlock = 128;

/// Calls `body(i)` for each element in [0, count).
template <class Body> TARE_DEVICE void pointwise(i64 count, Body body) {
  const i64 i = static_cast<i64>(block_index_x()) * kElementsPerBlock + thread_index();
  if (i < count) body(i);
}

/// The row of the calling warp, or -1 past the end (the whole warp then has nothing to do).
TARE_DEVICE i64 row_of_warp(i64 rows) {
  const i64 row = static_cast<i64>(block_index_x()) * kRowsPerBlock + thread_index() / 32;
  return row < rows ? row : -1;
}

/// Calls `body(i)` for each i in [0, count) as a whole warp, whose lanes share the work.
template <class Body> TARE_DEVICE void warp_each(i64 count, Body body) {
  const i64 i = row_of_warp(count);
  if (i >= 0) body(i);
}

/// y(j) = (x(j) - mean) factor scale(j) + bias(j) for each row; `x(row, j)` is called once per element where kKept columns fit shared memory (0: three times).
template <int kKept, class X, class Y> TARE_DEVICE void layer_norm_rows(i64 rows, i64 columns, float epsilon, X x, Y y) {
  const i64 row = row_of_warp(rows);
  if (row < 0) return;
  const shared<float> kept = shared_at<float>(thread_index() / 32 * kKept * 4, kKept);
  if (kKept)
    for (i64 j = lane_index(); j < columns; j += 32) kept.write(j, x(row, j));
  // Each lane reads back what it wrote itself: no barrier.
  const auto value = [&](i64 j) { return kKept ? kept.read(j) : x(row, j); };
  const Moments m = layer_moments(columns, epsilon, value);
  for (i64 j = lane_index(); j < columns; j += 32) {
    const float v = value(j);
    y(row, j, v, (v - m.mean) * m.factor);
  }
}
template <int kKept, class X, class Y> TARE_DEVICE void rms_norm_rows(i64 rows, i64 columns, float epsilon, X x, Y y) {
  const i64 row = row_of_warp(rows);
  if (row < 0) return;
  const shared<float> kept = shared_at<float>(thread_index() / 32 * kKept * 4, kKept);
  if (kKept)
    for (i64 j = lane_index(); j < columns; j += 32) kept.write(j, x(row, j));
  const auto value = [&](i64 j) { return kKept ? kept.read(j) : x(row, j); };
  const float factor = rms_factor(columns, epsilon, value);
  for (i64 j = lane_index(); j < columns; j += 32) {
    const float v = value(j);
    y(row, j, v, v * factor);
  }
}
/// y(j) = exp(x(j) - max) / sum, or x(j) - max - log sum with `log`. A row of -inf gives NaN.
template <int kKept, class X, class Y> TARE_DEVICE void softmax_rows(i64 rows, i64 columns, bool log, X x, Y y) {
  const i64 row = row_of_warp(rows);
  if (row < 0) return;
  const shared<float> kept = shared_at<float>(thread_index() / 32 * kKept * 4, kKept);
  if (kKept)
    for (i64 j = lane_index(); j < columns; j += 32) kept.write(j, x(row, j));
  const auto value = [&](i64 j) { return kKept ? kept.read(j) : x(row, j); };
  const SoftmaxState s = softmax_state(columns, value);
  const float shift = log ? s.most + tare_logf(s.sum) : 0.0f, factor = 1.0f / s.sum;
  for (i64 j = lane_index(); j < columns; j += 32) {
    const float v = value(j);
    y(row, j, v, log ? v - shift : tare_expf(v - s.most) * factor);
  }
}

/// Rotary embedding of one pair (x0, x1) at `position` with angular frequency `frequency`: reduced in double, so right at positions of 10^5 and beyond.
TARE_DEVICE void rotate(float &x0, float &x1, i64 position, float frequency) {
  const float angle = static_cast<float>(position) * frequency, c = cos(angle), s = sin(angle), first = x0;
  x0 = x0 * c - x1 * s;
  x1 = first * s + x1 * c;
}

} // namespace tare
