/* Packs a strided block of activations into one panel (pack.h). Must hold: nothing outside the k x n block is read. A transposed source goes through 8x8
 * register transposes, a row-major one is copied, anything else is gathered element by element. */
#include "kernels/cpu/pack.h"

typedef float F8 __attribute__((ext_vector_type(8)));
typedef float F8U __attribute__((ext_vector_type(8), aligned(4)));
#define PAIRS_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define PAIRS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define QUADS_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define QUADS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define HALVES_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HALVES_HIGH(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

/* Eight rows of eight become eight columns of the panel. */
TARE_INLINE void transpose8(float *to, const F8 r[8]) {
  F8 p[8], q[8];
  for (int i = 0; i < 8; i += 2) p[i] = PAIRS_LOW(r[i], r[i + 1]), p[i + 1] = PAIRS_HIGH(r[i], r[i + 1]);
  for (int i = 0; i < 8; i += 4) {
    q[i] = QUADS_LOW(p[i], p[i + 2]);
    q[i + 1] = QUADS_HIGH(p[i], p[i + 2]);
    q[i + 2] = QUADS_LOW(p[i + 1], p[i + 3]);
    q[i + 3] = QUADS_HIGH(p[i + 1], p[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    *(F8U *)(to + i * TARE_PANEL) = HALVES_LOW(q[i], q[i + 4]);
    *(F8U *)(to + (i + 4) * TARE_PANEL) = HALVES_HIGH(q[i], q[i + 4]);
  }
}

static void pack_transposed(float *to, const float *from, int64_t n_stride, int64_t k, int64_t n) {
  for (int64_t j = 0; j < TARE_PANEL; j += 8) {
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) {
      F8 r[8];
#pragma clang loop unroll(full)
      for (int c = 0; c < 8; ++c) r[c] = j + c < n ? *(const F8U *)(from + (j + c) * n_stride + i) : (F8)(0.0f);
      transpose8(to + i * TARE_PANEL + j, r);
    }
    for (; i < k; ++i)
      for (int c = 0; c < 8; ++c) to[i * TARE_PANEL + j + c] = j + c < n ? from[(j + c) * n_stride + i] : 0.0f;
  }
}

__attribute__((noinline)) void tare_pack_panel(float *to, const float *from, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n) {
  if (k_stride == 1 && n_stride != 1) {
    pack_transposed(to, from, n_stride, k, n);
  } else if (n_stride == 1 && n == TARE_PANEL) {
    for (int64_t i = 0; i < k; ++i)
#pragma clang loop unroll(full)
      for (int j = 0; j < TARE_PANEL; j += 8) *(F8U *)(to + i * TARE_PANEL + j) = *(const F8U *)(from + i * k_stride + j);
  } else {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < TARE_PANEL; ++j) to[i * TARE_PANEL + j] = j < n ? from[i * k_stride + j * n_stride] : 0.0f;
  }
}
