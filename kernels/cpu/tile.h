/* The tile body, written once: rows x 32 of f32 accumulators stay in registers over all of k. In: TARE_TILE_ARGS; out: c. Must hold: `kind`, `rows` are
 * literal constants at each use, so that loops over rows unroll and no accumulator touches memory (14 rows: 28 accumulators + 2 of b + 1 of a).
 * Rows are addressed from one pointer per three rows; b is fetched 16 steps ahead. With AVX2 a panel is two halves of 16 columns. */
#pragma once
#include "kernels/cpu/vector.h"

/* Vectors per step: a whole panel where accumulators suffice, so that few rows stream b once; with AVX2 and more rows, half a panel at a time. */
TARE_INLINE int vectors_for(const int rows) { return TARE_HALVES == 2 && rows <= 2 ? 4 : 2; }
/* Few rows leave too few independent sums to hide the latency of an FMA: then k is split over several sets of accumulators. */
TARE_INLINE int sets_for(const int rows) { return TARE_HALVES == 2 ? (rows == 1 ? 2 : 1) : rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

TARE_INLINE void tile_steps(const int kind, const int rows, const int steps, const float *const *pa, int64_t lda, const char *pb, int64_t ldb_bytes, V acc[][4]) {
  const int sets = sets_for(rows), vectors = vectors_for(rows);
#pragma clang loop unroll(full)
  for (int u = 0; u < steps; ++u) {
    __asm__ volatile("" : "+r"(pb) : : "memory"); /* loads stay in their step: hoisting them costs accumulators their registers */
    V b[4];
#pragma clang loop unroll(full)
    for (int j = 0; j < vectors; ++j) b[j] = load_panel(kind, pb + j * TARE_LANES * element_bytes(kind));
    pb += ldb_bytes;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      V x = (V)(pa[r / 3][(r % 3) * lda + u]);
      V *s = acc[(u % sets) * rows + r];
#pragma clang loop unroll(full)
      for (int j = 0; j < vectors; ++j) s[j] = fmav(x, b[j], s[j]);
      if (rows >= TARE_ROWS - 1) __asm__ volatile("" : "+v"(s[0]), "+v"(s[1]) : : "memory"); /* one broadcast at a time: there is one register for it */
    }
  }
}

TARE_INLINE void tile_columns(const int kind, const int rows, const int half, TARE_TILE_ARGS) {
  const int sets = sets_for(rows), vectors = vectors_for(rows), steps = 4;
  const int64_t ldb_bytes = ldb * element_bytes(kind);
  V acc[TARE_ROWS][4];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows * sets; ++r)
#pragma clang loop unroll(full)
    for (int j = 0; j < vectors; ++j) acc[r][j] = (V)(0.0f);
  const float *pa[5];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; r += 3) pa[r / 3] = a + r * lda;
  b += half * 16 * element_bytes(kind);
  int64_t i = 0;
  for (; i + steps <= k; i += steps) {
#pragma clang loop unroll(full)
    for (int u = 0; u < steps; ++u)
#pragma clang loop unroll(full)
      for (int line = 0; line < vectors * TARE_LANES * element_bytes(kind); line += 64) __builtin_prefetch(b + (16 + u) * ldb_bytes + line, 0, 3);
    __builtin_prefetch(next, 0, 2);
    __builtin_prefetch(next + next_step, 0, 2);
    next += 2 * next_step;
    tile_steps(kind, rows, steps, pa, lda, b, ldb_bytes, acc);
    b += steps * ldb_bytes;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; r += 3) {
      pa[r / 3] += steps;
      __asm__("" : "+r"(pa[r / 3])); /* keeps one pointer per three rows: otherwise every row gets its own and they spill */
    }
  }
#pragma clang loop unroll(disable)
  for (; i < k; ++i) {
    tile_steps(kind, rows, 1, pa, lda, b, ldb_bytes, acc);
    b += ldb_bytes;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; r += 3) pa[r / 3] += 1;
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int j = 0; j < vectors; ++j) {
      V sum = acc[r][j];
#pragma clang loop unroll(full)
      for (int u = 1; u < sets; ++u) sum += acc[u * rows + r][j];
      float *p = c + r * ldc + half * 16 + j * TARE_LANES;
      if (accumulate) sum += loadv(p);
      storev(p, sum);
    }
  }
}

TARE_INLINE void tile(const int kind, const int rows, TARE_TILE_ARGS) {
  tile_columns(kind, rows, 0, a, lda, b, ldb, k, c, ldc, accumulate, next, next_step);
  if (vectors_for(rows) * TARE_LANES < TARE_PANEL) tile_columns(kind, rows, 1, a, lda, b, ldb, k, c, ldc, accumulate, next, 0);
}

#define TARE_TILE(TYPE, KIND, ROWS)                                                                                                                    \
  static __attribute__((noinline)) void tile_##TYPE##_##ROWS##x32(TARE_TILE_ARGS) { tile(KIND, ROWS, a, lda, b, ldb, k, c, ldc, accumulate, next, next_step); }
#define TARE_TILE_CASE(TYPE, ROWS)                                                                                                                     \
  case ROWS: tile_##TYPE##_##ROWS##x32(a, lda, b, ldb, k, c, ldc, accumulate, next, next_step); return;
