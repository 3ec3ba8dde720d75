/* Bits of fidelity checks (kernels.h). In: rows of an activation, prototypes in panels of floats or integers. Out: one
 * word per row. Listed rows are taken in blocks, so that a weight is decoded once per block; rows are read where they
 * lie. Integers are summed without their scale, which enters once per group. Must hold: a row's sum has one order,
 * whatever block it is in: then a row that is evaluated again in another chunk has the same bits. */
#include "kernels/cpu/vector.h"

/* Rows of a block: 2 sums each. A block of few rows takes two units at once: one alone would wait for its own sums. */
enum { CHECK_BLOCK = TARE_HALVES == 2 ? 5 : 12, CHECK_FLOATS = TARE_HALVES == 2 ? 4 : 8, CHECK_VECTORS = 2 };
enum { CHECK_PAIRED = TARE_HALVES == 2 ? 1 : 4 };
typedef int8_t VB __attribute__((ext_vector_type(TARE_LANES), aligned(1)));
typedef uint8_t VUB __attribute__((ext_vector_type(TARE_LANES), aligned(1)));

TARE_INLINE int64_t step_bytes_of(const int kind) {
  return kind == TARE_F32 ? 128 : kind == TARE_I8 ? 32 : kind == TARE_I4 ? 16 : 64;
}

/* Columns half * 16 + j * lanes .. of one step of a panel; of an integer without its scale. The low bits of 2^23 hold a
 * small integer exactly, bits 4 to 7 of 2^19 too: no shift, no table and no conversion is needed. */
TARE_INLINE V load_step(const int kind, const char *w, const int half, const int j) {
  const int column = half * 16 + j * TARE_LANES, high = TARE_HALVES == 2 ? half : j;
  if (kind == TARE_I8) return __builtin_convertvector(__builtin_convertvector(*(const VB *)(w + column), VI), V);
  if (kind == TARE_I4) { /* a vector of AVX-512 is a half of the panel, one of AVX2 a quarter */
    const VI bytes = __builtin_convertvector(*(const VUB *)(w + (TARE_HALVES == 2 ? j * TARE_LANES : 0)), VI);
    const VI bits = high ? (bytes & 0xf0) | 0x49000000 : (bytes & 0x0f) | 0x4b000000;
    return *(const V *)&bits - (high ? 524296.0f : 8388616.0f);
  }
  return load_panel(kind, w + column * element_bytes(kind));
}

TARE_INLINE float lane_sum(V v) { /* halves onto one another */
#ifdef __AVX512F__
  const __typeof__(v.lo) eight = v.lo + v.hi;
#else
  const V eight = v;
#endif
  const __typeof__(eight.lo) four = eight.lo + eight.hi;
  return (four[0] + four[2]) + (four[1] + four[3]);
}

/* What one pass over a row multiplies: 16 * 2 / TARE_HALVES columns of a panel. */
typedef struct { const char *w; const float *scale, *p; int half; } Unit;

/* Squares of the differences of one or two units, added to squares[row] in the order of the columns. */
TARE_INLINE void unit_squares(const int kind, const int rows, const int units, const Unit *unit, const float *const *x,
                              int64_t width, int64_t group, V *squares) {
  V acc[CHECK_BLOCK][2][CHECK_VECTORS];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) acc[r][0][0] = acc[r][0][1] = acc[r][1][0] = acc[r][1][1] = (V)(0.0f);
  for (int64_t d0 = 0, g = 0; d0 < width; d0 += group, ++g) {
    const int64_t end = minl(d0 + group, width);
    V sum[CHECK_BLOCK][2][CHECK_VECTORS];
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
      for (int u = 0; u < units; ++u)
#pragma clang loop unroll(full)
        for (int j = 0; j < CHECK_VECTORS; ++j) sum[r][u][j] = kind >= TARE_I8 ? (V)(0.0f) : acc[r][u][j];
    for (int64_t d = d0; d < end; ++d)
#pragma clang loop unroll(full)
      for (int u = 0; u < units; ++u) {
        const char *w = unit[u].w + d * step_bytes_of(kind);
        const V v[CHECK_VECTORS] = {load_step(kind, w, unit[u].half, 0), load_step(kind, w, unit[u].half, 1)};
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
          for (int j = 0; j < CHECK_VECTORS; ++j) sum[r][u][j] = fmav((V)(x[r][d]), v[j], sum[r][u][j]);
      }
#pragma clang loop unroll(full)
    for (int u = 0; u < units; ++u)
#pragma clang loop unroll(full)
      for (int j = 0; j < CHECK_VECTORS; ++j) {
        V s = (V)(1.0f);
        if (kind >= TARE_I8) s = loadv(unit[u].scale + g * TARE_PANEL + unit[u].half * 16 + j * TARE_LANES);
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; ++r)
          acc[r][u][j] = kind >= TARE_I8 ? fmav(sum[r][u][j], s, acc[r][u][j]) : sum[r][u][j];
      }
  }
#pragma clang loop unroll(full)
  for (int u = 0; u < units; ++u)
#pragma clang loop unroll(full)
    for (int j = 0; j < CHECK_VECTORS; ++j) {
      const V p = loadv(unit[u].p + unit[u].half * 16 + j * TARE_LANES);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const V z = acc[r][u][j] - p;
        squares[r] = fmav(z, z, squares[r]);
      }
    }
}

TARE_INLINE void block(const int kind, const int rows, const tare_check *c, const char *w, const float *const *x,
                       uint32_t *const *to) {
  const int64_t panels = (c->rank + TARE_PANEL - 1) / TARE_PANEL, width = c->width;
  const int64_t group = kind >= TARE_I8 ? c->group : maxl(width, 1), panel_bytes = width * step_bytes_of(kind);
  const int64_t scales = kind >= TARE_I8 ? (width + group - 1) / group * TARE_PANEL : 0;
  uint32_t words[CHECK_BLOCK] = {0};
  for (int64_t head = 0; head < c->heads; ++head) {
    V squares[CHECK_BLOCK];
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) squares[r] = (V)(0.0f);
    int64_t panel = 0;
    for (const int64_t first = head * panels; panel < panels;) {
      Unit pair[2];
#pragma clang loop unroll(full)
      for (int u = 0; u < 2; ++u) {
        const int64_t at = first + panel + (TARE_HALVES == 2 ? 0 : u);
        pair[u] = (Unit){w + at * panel_bytes, c->scale + at * scales, c->p + at * TARE_PANEL, u * (TARE_HALVES - 1)};
      }
      if (rows <= CHECK_PAIRED && panel + 3 - TARE_HALVES <= panels) {
        unit_squares(kind, rows, 2, pair, x, width, group, squares);
        panel += 3 - TARE_HALVES;
        continue;
      }
      unit_squares(kind, rows, 1, pair, x, width, group, squares);
      if (TARE_HALVES == 2) unit_squares(kind, rows, 1, pair + 1, x, width, group, squares);
      ++panel;
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) words[r] |= (uint32_t)(__builtin_sqrtf(lane_sum(squares[r])) < c->tau[head]) << head;
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) *to[r] = words[r];
}

#define CHECK_BLOCK_OF(NAME, KIND, ROWS)                                                                               \
  static __attribute__((noinline)) void block_##NAME##_##ROWS(const tare_check *c, const char *w,                      \
                                                              const float *const *x, uint32_t *const *to) {            \
    block(KIND, ROWS, c, w, x, to);                                                                                    \
  }
/* The smallest block that holds `rows`; `x` and `to` hold the last row again after `rows`. */
#define CHECK_CASE(NAME, ROWS)                                                                                         \
  if (rows <= ROWS) return block_##NAME##_##ROWS(c, w, x, to);
#define CHECK_ROWS_OF(NAME)                                                                                            \
  static void rows_##NAME(int64_t rows, const tare_check *c, const char *w, const float *const *x, uint32_t *const *to)
#define CHECK_KIND(NAME, KIND)                                                                                         \
  CHECK_BLOCK_OF(NAME, KIND, 1)                                                                                        \
  CHECK_BLOCK_OF(NAME, KIND, 2)                                                                                        \
  CHECK_BLOCK_OF(NAME, KIND, 4)
#define CHECK_INTEGER(NAME, KIND) CHECK_KIND(NAME, KIND) CHECK_BLOCK_OF(NAME, KIND, 3) CHECK_BLOCK_OF(NAME, KIND, 5)
#ifdef __AVX512F__
#define CHECK_FLOAT(NAME, KIND)                                                                                        \
  CHECK_KIND(NAME, KIND)                                                                                               \
  CHECK_BLOCK_OF(NAME, KIND, 8)                                                                                        \
  CHECK_ROWS_OF(NAME) { CHECK_CASE(NAME, 1) CHECK_CASE(NAME, 2) CHECK_CASE(NAME, 4) block_##NAME##_8(c, w, x, to); }
#define CHECK_INTEGERS(NAME, KIND)                                                                                     \
  CHECK_INTEGER(NAME, KIND)                                                                                            \
  CHECK_BLOCK_OF(NAME, KIND, 6) CHECK_BLOCK_OF(NAME, KIND, 8) CHECK_BLOCK_OF(NAME, KIND, 10)                           \
  CHECK_BLOCK_OF(NAME, KIND, 12)                                                                                       \
  CHECK_ROWS_OF(NAME) {                                                                                                \
    CHECK_CASE(NAME, 1) CHECK_CASE(NAME, 2) CHECK_CASE(NAME, 3) CHECK_CASE(NAME, 4) CHECK_CASE(NAME, 5)                \
    CHECK_CASE(NAME, 6) CHECK_CASE(NAME, 8) CHECK_CASE(NAME, 10) block_##NAME##_12(c, w, x, to);                       \
  }
#else
#define CHECK_FLOAT(NAME, KIND)                                                                                        \
  CHECK_KIND(NAME, KIND)                                                                                               \
  CHECK_ROWS_OF(NAME) { CHECK_CASE(NAME, 1) CHECK_CASE(NAME, 2) block_##NAME##_4(c, w, x, to); }
#define CHECK_INTEGERS(NAME, KIND)                                                                                     \
  CHECK_INTEGER(NAME, KIND)                                                                                            \
  CHECK_ROWS_OF(NAME) {                                                                                                \
    CHECK_CASE(NAME, 1) CHECK_CASE(NAME, 2) CHECK_CASE(NAME, 3) CHECK_CASE(NAME, 4) block_##NAME##_5(c, w, x, to);     \
  }
#endif
CHECK_FLOAT(f32, TARE_F32)
CHECK_FLOAT(f16, TARE_F16)
CHECK_FLOAT(bf16, TARE_BF16)
CHECK_INTEGERS(i8, TARE_I8)
CHECK_BLOCK_OF(i4, TARE_I4, 1)

#include "kernels/cpu/check_fixed.h"

static int64_t first_at_least(const int64_t *rows, int64_t count, int64_t row) {
  int64_t low = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    if (rows[low + half] < row) low += half + 1, count -= half + 1;
    else count = half;
  }
  return low;
}

/* Evaluates `count` rows: those of `list`, or from row0 on without one. Row r's word goes to bits[r - row0]; a listed
 * row before row0 is the one that carries into this chunk, and its word goes to `carry`. */
static void evaluate(const tare_check *c, const float *a, int64_t lda, const int64_t *list, int64_t count, int64_t row0,
                     uint32_t *bits, uint32_t *carry) {
  const int dense = c->run->count < 0;
  const char *w = dense ? c->dense : c->sparse;
  const int64_t kind = dense ? c->dense_kind : c->sparse_kind;
  int64_t most = kind == TARE_I4 ? 1 : kind == TARE_I8 ? CHECK_BLOCK : CHECK_FLOATS;
  const int64_t fixed = kind == TARE_I4 ? minl(FIXED_BYTES / fixed_row_bytes(c->width, c->group), FIXED_ROWS) : 0;
  if (fixed > 0) most = fixed;
  for (int64_t done = 0; done < count;) { /* blocks of equal size to within one row */
    const int64_t blocks = (count - done + most - 1) / most, rows = (count - done + blocks - 1) / blocks;
    const float *x[12]; /* no block has more rows */
    uint32_t *to[12];
    _Static_assert(CHECK_BLOCK <= 12 && CHECK_FLOATS <= 12 && FIXED_ROWS <= 12, "rows of a block");
    for (int64_t i = 0; i < 12; ++i) {
      const int64_t at = done + minl(i, rows - 1), row = list ? list[at] : row0 + at;
      x[i] = a + row * lda;
      to[i] = row < row0 ? carry : bits + (row - row0);
    }
    done += rows;
    if (fixed > 0) {
      fixed_rows(rows, c, x, to);
      continue;
    }
    switch (kind) {
    case TARE_F32: rows_f32(rows, c, w, x, to); break;
    case TARE_F16: rows_f16(rows, c, w, x, to); break;
    case TARE_BF16: rows_bf16(rows, c, w, x, to); break;
    case TARE_I8: rows_i8(rows, c, w, x, to); break;
    default: block_i4_1(c, w, x, to); /* wider than fixed-point rows may be */
    }
  }
}

__attribute__((noinline)) void tare_check_bits(const tare_check *c, const float *a, int64_t lda, int64_t row0,
                                               int64_t rows, uint32_t *bits, const uint32_t *before, int64_t writes) {
  const tare_check_rows *run = c->run;
  const int dense = run->count < 0;
  const int64_t end = row0 + rows, tokens = run->tokens;
  int64_t listed = 0, last = 0;
  uint32_t current = 0;
  if (dense) {
    evaluate(c, a, lda, 0, rows, row0, bits, 0);
  } else {
    listed = first_at_least(run->rows, run->count, row0);
    last = listed + first_at_least(run->rows + listed, run->count - listed, end);
    const int64_t first = row0 / tokens * tokens; /* of the batch element that row0 belongs to */
    const int goes_on = row0 > first, starts_listed = listed < last && run->rows[listed] == row0;
    current = goes_on && before ? *before : run->carried[row0 / tokens];
    const int again = goes_on && !before && !starts_listed && listed > 0 && run->rows[listed - 1] >= first;
    evaluate(c, a, lda, run->rows + listed - again, last - listed + again, row0, bits, &current);
  }
  for (int64_t row = row0; row < end;) { /* one batch element after the other */
    const int64_t element = row / tokens, stop = minl((element + 1) * tokens, end);
    if (!dense && row > row0) current = run->carried[element];
    while (!dense && row < stop) {
      const int64_t next = listed < last ? minl(run->rows[listed], stop) : stop;
      for (; row < next; ++row) bits[row - row0] = current;
      if (row < stop) current = bits[row++ - row0], ++listed;
    }
    if (writes && stop == (element + 1) * tokens) run->last[element] = bits[stop - 1 - row0];
    row = stop;
  }
}
