/* Vector types of the level a kernel is compiled for, and the few helpers every kernel shares. In: the compiler's ISA macros; out: `V` (16 floats
 * with AVX-512, 8 with AVX2), unaligned loads and stores, storage-type decoding. Must hold: everything inlines, nothing calls libc. */
#pragma once
#include "kernels/cpu/kernels.h"

#define TARE_INLINE static inline __attribute__((always_inline))
#define TARE_EXPORT __attribute__((always_inline)) /* drivers: inlined into generated code together with their hooks */

#ifdef __AVX512F__
enum { TARE_LANES = 16, TARE_HALVES = 1, TARE_ROWS = 14 };
#else
enum { TARE_LANES = 8, TARE_HALVES = 2, TARE_ROWS = 6 };
#endif
typedef float V __attribute__((ext_vector_type(TARE_LANES)));
typedef float VU __attribute__((ext_vector_type(TARE_LANES), aligned(4)));
typedef int32_t VI __attribute__((ext_vector_type(TARE_LANES)));
typedef uint16_t VH __attribute__((ext_vector_type(TARE_LANES), aligned(2)));
typedef _Float16 VF16 __attribute__((ext_vector_type(TARE_LANES), aligned(2)));

TARE_INLINE V loadv(const float *p) { return *(const VU *)p; }
TARE_INLINE void storev(float *p, V v) { *(VU *)p = v; }
TARE_INLINE V fmav(V a, V b, V c) { return __builtin_elementwise_fma(a, b, c); }
TARE_INLINE int64_t minl(int64_t a, int64_t b) { return a < b ? a : b; }
TARE_INLINE int64_t maxl(int64_t a, int64_t b) { return a > b ? a : b; }

/* A panel of floats in its storage type (TARE_F32, TARE_F16, TARE_BF16). */
TARE_INLINE int64_t element_bytes(const int kind) { return kind == TARE_F32 ? 4 : 2; }
TARE_INLINE V load_panel(const int kind, const char *p) {
  if (kind == TARE_F32) return loadv((const float *)p);
  if (kind == TARE_F16) return __builtin_convertvector(*(const VF16 *)p, V);
  VI bits = __builtin_convertvector(*(const VH *)p, VI) << 16;
  return *(V *)&bits;
}

/* One row block of a product: c[rows][32] (row stride ldc) = or += a[rows][k] (row stride lda) times one panel (row stride ldb elements); rows in
 * [1, TARE_ROWS]. `next` is fetched towards L2, one line per step of k, `next_step` bytes apart (0: nothing to fetch). */
#define TARE_TILE_ARGS const float *a, int64_t lda, const char *b, int64_t ldb, int64_t k, float *c, int64_t ldc, int64_t accumulate, const char *next, int64_t next_step
void tare_tile_f32(int64_t rows, TARE_TILE_ARGS);
void tare_tile_f16(int64_t rows, TARE_TILE_ARGS);
void tare_tile_bf16(int64_t rows, TARE_TILE_ARGS);

/* Splits `total` rows into the fewest blocks of at most TARE_ROWS, equal to within one row: block i starts at i*base + min(i, extra). */
typedef struct { int64_t blocks, base, extra; } Split;
TARE_INLINE Split split_rows(int64_t total) {
  Split s;
  s.blocks = (total + TARE_ROWS - 1) / TARE_ROWS;
  s.base = s.blocks ? total / s.blocks : 0;
  s.extra = s.blocks ? total % s.blocks : 0;
  return s;
}
