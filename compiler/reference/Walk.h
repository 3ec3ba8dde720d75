// Strided loops over tensors: row-major strides, NumPy broadcasting, and a walk over a shape that keeps one element offset per operand.
// In: concrete shapes. Out: calls in row-major order of the walked shape, so every sum that uses them has a fixed order.
#pragma once
#include "compiler/reference/Ops.h"
#include <array>

namespace tare::reference {

inline Shape rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Strides of `from` seen as `to`: 0 where it is broadcast; missing leading dims count as 1.
inline Shape broadcastStrides(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  Shape own = rowMajorStrides(from), strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t j = to.size() - from.size() + i;
    strides[j] = from[i] == 1 && to[j] != 1 ? 0 : own[i];
  }
  return strides;
}

/// fn(offsets) for every index of `shape` in row-major order; offsets[n] = sum over dims of index * strides[n][dim] + start[n].
template <size_t N, typename Fn>
void walk(llvm::ArrayRef<int64_t> shape, const std::array<Shape, N> &strides, Fn fn, std::array<int64_t, N> start = {}) {
  for (int64_t d : shape)
    if (d == 0) return;
  size_t rank = shape.size();
  std::array<int64_t, N> offset = start;
  if (rank == 0) return fn(offset);
  Shape index(rank, 0);
  std::array<int64_t, N> step;
  for (size_t n = 0; n < N; ++n) step[n] = strides[n][rank - 1];
  while (true) {
    std::array<int64_t, N> inner = offset;
    for (int64_t i = 0; i < shape[rank - 1]; ++i) {
      fn(inner);
      for (size_t n = 0; n < N; ++n) inner[n] += step[n];
    }
    int64_t d = static_cast<int64_t>(rank) - 2;
    for (; d >= 0; --d) {
      for (size_t n = 0; n < N; ++n) offset[n] += strides[n][d];
      if (++index[d] < shape[d]) break;
      for (size_t n = 0; n < N; ++n) offset[n] -= strides[n][d] * shape[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/// Sums a cotangent of a broadcast result back to the operand's shape.
inline Tensor sumToShape(const Tensor &cotangent, const Tensor &operand) {
  Tensor sum = Tensor::zeros(operand.element, operand.shape);
  int64_t i = 0;
  walk<1>(cotangent.shape, {broadcastStrides(operand.shape, cotangent.shape)},
          [&](auto &at) { sum.floats[at[0]] += cotangent.floats[i++]; });
  return sum;
}

} // namespace tare::reference
