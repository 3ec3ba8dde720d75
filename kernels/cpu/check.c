/* Bits of fidelity checks (kernels.h). In: rows of an activation, prototypes in panels of floats or integers. Out: one word per row. Listed rows are taken in blocks, so
 * that a weight is decoded once per block; rows are read where they lie. Must hold: a row's sum has one order, whatever block it is in: then a row that is
 * evaluated again in another chunk has the same bits. A panel's squares are added up per lane, lanes at the end. */
#include "kernels/cpu/vector.h"

enum { CHECK_BLOCK = TARE_HALVES == 2 ? 4 : 8, CHECK_VECTORS = 2 }; /* accumulators: rows x 2 */
typedef int8_t VB __attribute__((ext_vector_type(TARE_LANES), aligned(1)));
typedef uint8_t VUB __attribute__((ext_vector_type(TARE_LANES), aligned(1)));

TARE_INLINE int64_t step_bytes_of(const int kind) { return kind == TARE_F32 ? 128 : kind == TARE_I8 ? 32 : kind == TARE_I4 ? 16 : 64; }

/* Columns half * 16 + j * lanes .. of one step of a panel, integers without their scale. */
TARE_INLINE V load_step(const int kind, const char *w, const int half, const int j) {
  const int column = half * 16 + j * TARE_LANES;
  if (kind == TARE_I8) return __builtin_convertvector(__builtin_convertvector(*(const VB *)(w + column), VI), V);
  if (kind == TARE_I4) { /* a vector of AVX-512 is a half of the panel, one of AVX2 a quarter */
    const VI bytes = __builtin_convertvector(*(const VUB *)(w + (TARE_HALVES == 2 ? j * TARE_LANES : 0)), VI);
#ifdef __AVX512F__ /* a table of 16 floats is one register, and its index is the low half of the lane */
    const V table = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return __builtin_ia32_permvarsf512(table, j ? bytes >> 4 : bytes);
#else
    return __builtin_convertvector((half ? bytes >> 4 : bytes & 15) - 8, V);
#endif
  }
  return load_panel(kind, w + column * element_bytes(kind));
}

TARE_INLINE float lane_sum(V v) {
  float sum = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < TARE_LANES; ++i) sum += v[i];
  return sum;
}

/* Squares of one panel's differences, added to squares[row]. */
TARE_INLINE void panel_squares(const int kind, const int rows, const int half, const float *const *x, const char *w, const float *scale, const float *p, int64_t width, int64_t group,
                               V *squares) {
  V acc[CHECK_BLOCK][CHECK_VECTORS];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) acc[r][0] = acc[r][1] = (V)(0.0f);
  for (int64_t d0 = 0; d0 < width; d0 += group) {
    const int64_t end = minl(d0 + group, width);
    V s[CHECK_VECTORS];
    if (kind >= TARE_I8) {
      s[0] = loadv(scale + half * 16), s[1] = loadv(scale + half * 16 + TARE_LANES);
      scale += TARE_PANEL;
    }
    for (int64_t d = d0; d < end; ++d, w += step_bytes_of(kind)) {
      V v[CHECK_VECTORS];
#pragma clang loop unroll(full)
      for (int j = 0; j < CHECK_VECTORS; ++j) v[j] = kind >= TARE_I8 ? load_step(kind, w, half, j) * s[j] : load_step(kind, w, half, j);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
        for (int j = 0; j < CHECK_VECTORS; ++j) acc[r][j] = fmav((V)(x[r][d]), v[j], acc[r][j]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
    for (int j = 0; j < CHECK_VECTORS; ++j) {
      const V z = acc[r][j] - loadv(p + half * 16 + j * TARE_LANES);
      squares[r] = fmav(z, z, squares[r]);
    }
}

TARE_INLINE void block(const int kind, const int rows, const tare_check *c, const char *w, const float *const *x, uint32_t *const *to) {
  const int64_t panels = (c->rank + TARE_PANEL - 1) / TARE_PANEL, width = c->width, group = kind >= TARE_I8 ? c->group : maxl(width, 1);
  const float *scale = c->scale, *p = c->p;
  uint32_t words[CHECK_BLOCK] = {0};
  for (int64_t head = 0; head < c->heads; ++head) {
    V squares[CHECK_BLOCK];
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) squares[r] = (V)(0.0f);
    for (int64_t panel = 0; panel < panels; ++panel) {
#pragma clang loop unroll(full)
      for (int half = 0; half < TARE_HALVES; ++half) panel_squares(kind, rows, half, x, w, scale, p, width, group, squares);
      w += width * step_bytes_of(kind);
      p += TARE_PANEL;
      if (kind >= TARE_I8) scale += (width + group - 1) / group * TARE_PANEL;
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) words[r] |= (uint32_t)(__builtin_sqrtf(lane_sum(squares[r])) < c->tau[head]) << head;
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) *to[r] = words[r];
}

#define CHECK_BLOCK_OF(NAME, KIND, ROWS)                                                                                                                \
  static __attribute__((noinline)) void block_##NAME##_##ROWS(const tare_check *c, const char *w, const float *const *x, uint32_t *const *to) {          \
    block(KIND, ROWS, c, w, x, to);                                                                                                                      \
  }
#ifdef __AVX512F__
#define CHECK_CASES(NAME)                                                                                                                                \
  if (rows >= 8) { block_##NAME##_8(c, w, x, to); return 8; }                                                                                            \
  if (rows >= 6) { block_##NAME##_6(c, w, x, to); return 6; }
#define CHECK_BLOCKS(NAME, KIND) CHECK_BLOCK_OF(NAME, KIND, 1) CHECK_BLOCK_OF(NAME, KIND, 2) CHECK_BLOCK_OF(NAME, KIND, 3) CHECK_BLOCK_OF(NAME, KIND, 4) \
  CHECK_BLOCK_OF(NAME, KIND, 6) CHECK_BLOCK_OF(NAME, KIND, 8)
#else
#define CHECK_CASES(NAME)
#define CHECK_BLOCKS(NAME, KIND) CHECK_BLOCK_OF(NAME, KIND, 1) CHECK_BLOCK_OF(NAME, KIND, 2) CHECK_BLOCK_OF(NAME, KIND, 3) CHECK_BLOCK_OF(NAME, KIND, 4)
#endif
CHECK_BLOCKS(f32, TARE_F32)
CHECK_BLOCKS(f16, TARE_F16)
CHECK_BLOCKS(bf16, TARE_BF16)
CHECK_BLOCKS(i8, TARE_I8)
CHECK_BLOCKS(i4, TARE_I4)

/* The largest block that `rows` fill; returns how many rows it took. */
#define CHECK_TAKE(NAME)                                                                                                                                 \
  static int64_t take_##NAME(int64_t rows, const tare_check *c, const char *w, const float *const *x, uint32_t *const *to) {                              \
    CHECK_CASES(NAME)                                                                                                                                    \
    if (rows >= 4) { block_##NAME##_4(c, w, x, to); return 4; }                                                                                          \
    if (rows == 3) { block_##NAME##_3(c, w, x, to); return 3; }                                                                                          \
    if (rows == 2) { block_##NAME##_2(c, w, x, to); return 2; }                                                                                          \
    block_##NAME##_1(c, w, x, to);                                                                                                                       \
    return 1;                                                                                                                                            \
  }
CHECK_TAKE(f32)
CHECK_TAKE(f16)
CHECK_TAKE(bf16)
CHECK_TAKE(i8)
CHECK_TAKE(i4)

static int64_t take(int64_t rows, const tare_check *c, const float *const *x, uint32_t *const *to) {
  const int dense = c->run->count < 0;
  const char *w = dense ? c->dense : c->sparse;
  switch (dense ? c->dense_kind : c->sparse_kind) {
  case TARE_F32: return take_f32(rows, c, w, x, to);
  case TARE_F16: return take_f16(rows, c, w, x, to);
  case TARE_BF16: return take_bf16(rows, c, w, x, to);
  case TARE_I8: return take_i8(rows, c, w, x, to);
  default: return take_i4(rows, c, w, x, to);
  }
}

/* Rows wait here until a block is full. */
typedef struct { const float *x[CHECK_BLOCK]; uint32_t *to[CHECK_BLOCK]; int64_t count; } Waiting;
static void flush(Waiting *waiting, const tare_check *c) {
  for (int64_t done = 0; done < waiting->count;) done += take(waiting->count - done, c, waiting->x + done, waiting->to + done);
  waiting->count = 0;
}
TARE_INLINE void evaluate(Waiting *waiting, const tare_check *c, const float *row, uint32_t *to) {
  waiting->x[waiting->count] = row;
  waiting->to[waiting->count++] = to;
  if (waiting->count == CHECK_BLOCK) flush(waiting, c);
}

static int64_t first_at_least(const int64_t *rows, int64_t count, int64_t row) {
  int64_t low = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    if (rows[low + half] < row) low += half + 1, count -= half + 1;
    else count = half;
  }
  return low;
}

__attribute__((noinline)) void tare_check_bits(const tare_check *c, const float *a, int64_t lda, int64_t row0, int64_t rows, uint32_t *bits, int64_t writes) {
  const tare_check_rows *run = c->run;
  Waiting waiting;
  waiting.count = 0;
  if (run->count < 0) {
    for (int64_t i = 0; i < rows; ++i) evaluate(&waiting, c, a + (row0 + i) * lda, bits + i);
    flush(&waiting, c);
  } else {
    const int64_t first = first_at_least(run->rows, run->count, row0), element = row0 / run->tokens;
    uint32_t current = run->carried[element];
    int64_t listed = first;
    if (first > 0 && run->rows[first - 1] >= element * run->tokens && !(first < run->count && run->rows[first] == row0))
      evaluate(&waiting, c, a + run->rows[first - 1] * lda, &current);
    for (; listed < run->count && run->rows[listed] < row0 + rows; ++listed) evaluate(&waiting, c, a + run->rows[listed] * lda, bits + (run->rows[listed] - row0));
    flush(&waiting, c);
    listed = first;
    for (int64_t i = 0, token = row0 % run->tokens, next = element; i < rows; ++i, ++token) {
      if (token == run->tokens) token = 0, current = run->carried[++next];
      if (listed < run->count && run->rows[listed] == row0 + i) current = bits[i], ++listed;
      else bits[i] = current;
    }
  }
  if (!writes) return;
  for (int64_t i = 0; i < rows; ++i)
    if ((row0 + i + 1) % run->tokens == 0) run->last[(row0 + i) / run->tokens] = bits[i];
}
