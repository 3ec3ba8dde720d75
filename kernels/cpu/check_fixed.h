/* int4 prototypes by integer dot products, part of check.c. In: rows of floats, nibble panels. Out: one word per row.
 * A row is held as 16-bit fixed point per group of the scales, in two bytes, each multiplied with the nibbles: the sums
 * are exact, so that only this rounding (2^-16 of the group's largest value) and the f32 sum over groups remain.
 * Must hold: a row's sum does not depend on its block; a row with a value that is not finite has no bit.
 * With VNNI one instruction multiplies and adds 4 steps; without it two add pairs of steps in 16 bits. */
#include "kernels/cpu/vector.h"

#ifdef __AVX512VNNI__
enum { FIXED_ROWS = 6 };
#else
enum { FIXED_ROWS = 12 };
#endif
enum { FIXED_BYTES = 1 << 16 }; /* of all rows of a block, on the stack */
typedef int8_t VB64 __attribute__((ext_vector_type(64)));
typedef VB64 VB64U __attribute__((aligned(1)));
typedef uint32_t VU16 __attribute__((ext_vector_type(16)));

/* A block of rows as fixed point. Of row r, group g: quads 4 steps wide, high bytes then low bytes. */
typedef struct {
  int64_t quads, groups; /* per group; both bytes of a row: 2 * groups * quads words */
  const int32_t *words;
  const float *unit;   /* [rows][groups]: value of 1 */
  const int32_t *sums; /* [rows][groups]: 8 times the sum, what the nibbles' offset adds */
} FixedRows;

/* Words of a group: whole vectors of a row's values. */
TARE_INLINE int64_t fixed_quads(int64_t group) { return (group + TARE_LANES - 1) / TARE_LANES * (TARE_LANES / 4); }
TARE_INLINE int64_t fixed_row_bytes(int64_t width, int64_t group) {
  return (width + group - 1) / group * (fixed_quads(group) * 8 + 8);
}

/* A vector of values from x[i] on; zeros after `count`. */
TARE_INLINE V values_at(const float *x, int64_t i, int64_t count) {
  if (i + TARE_LANES <= count) return loadv(x + i);
  V v = (V)(0.0f);
  __builtin_memcpy(&v, x + i, (uint64_t)(count - i) * 4);
  return v;
}

static void fix_row(const float *x, int64_t width, int64_t group, int8_t *bytes, float *unit, int32_t *sums) {
  const int64_t low = fixed_quads(group) * 4;
  for (int64_t d0 = 0; d0 < width; d0 += group, bytes += 2 * low) {
    const int64_t count = minl(group, width - d0);
    VI most = (VI)(0); /* sizes in the order of their bits: infinity and NaN are the largest */
    for (int64_t i = 0; i < count; i += TARE_LANES) {
      const V v = values_at(x + d0, i, count);
      most = __builtin_elementwise_max(most, *(const VI *)&v & 0x7fffffff);
    }
    const int32_t bits = __builtin_reduce_max(most);
    const float size = *(const float *)&bits, inverse = size > 1e-30f && bits < 0x7f800000 ? 32512.0f / size : 0.0f;
    VI sum = (VI)(0);
    for (int64_t i = 0; i < low; i += TARE_LANES) {
      V v = (V)(0.0f);
      if (i < count && inverse > 0) v = __builtin_elementwise_roundeven(values_at(x + d0, i, count) * inverse);
      const VI q = __builtin_convertvector(v, VI), high = (q + 128) >> 8;
      *(VB *)(bytes + i) = __builtin_convertvector(high, VB);
      *(VB *)(bytes + low + i) = __builtin_convertvector(q - (high << 8), VB);
      sum += q;
    }
    *unit++ = bits < 0x7f800000 ? size / 32512.0f : __builtin_nanf("");
    *sums++ = 8 * __builtin_reduce_add(sum);
  }
}

/* 4 steps of a panel: word c of `low` holds the nibbles of column c as bytes, of `high` those of column c + 16. */
TARE_INLINE void load_quad(const char *w, int64_t steps, VU16 *low, VU16 *high) {
  VB64 b = (VB64)(0);
  if (steps >= 4) b = *(const VB64U *)w;
  else __builtin_memcpy(&b, w, (uint64_t)steps * 16);
  b = __builtin_shufflevector(b, b, 0, 16, 32, 48, 1, 17, 33, 49, 2, 18, 34, 50, 3, 19, 35, 51, 4, 20, 36, 52, 5, 21,
                              37, 53, 6, 22, 38, 54, 7, 23, 39, 55, 8, 24, 40, 56, 9, 25, 41, 57, 10, 26, 42, 58, 11,
                              27, 43, 59, 12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63);
  const VU16 bits = *(const VU16 *)&b;
  *low = bits & 0x0f0f0f0f;
  *high = (bits >> 4) & 0x0f0f0f0f;
}

#ifdef __AVX512VNNI__
TARE_INLINE void fixed_panel(const int rows, const FixedRows *x, const char *w, const float *scale, const float *p,
                            int64_t width, int64_t group, V *squares) {
  V acc[FIXED_ROWS][2];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) acc[r][0] = acc[r][1] = (V)(0.0f);
  const int64_t quads = x->quads, row_words = 2 * x->groups * quads;
  for (int64_t g = 0; g < x->groups; ++g, scale += TARE_PANEL) {
    const int64_t end = minl((g + 1) * group, width);
    const int32_t *words = x->words + g * quads * 2;
    VI sum[FIXED_ROWS][2][2]; /* high and low bytes of x, halves of the panel */
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) sum[r][0][0] = sum[r][0][1] = sum[r][1][0] = sum[r][1][1] = (VI)(0);
    for (int64_t q = 0, d = g * group; d < end; ++q, d += 4) {
      VU16 low, high;
      load_quad(w + d * 16, end - d, &low, &high);
      const VI v[2] = {(VI)low, (VI)high};
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
        for (int byte = 0; byte < 2; ++byte) {
          const VI xs = (VI)(words[r * row_words + byte * quads + q]);
          sum[r][byte][0] = (VI)__builtin_ia32_vpdpbusd512(sum[r][byte][0], v[0], xs);
          sum[r][byte][1] = (VI)__builtin_ia32_vpdpbusd512(sum[r][byte][1], v[1], xs);
        }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
      for (int j = 0; j < 2; ++j) {
        const VI total = (sum[r][0][j] << 8) + sum[r][1][j] - x->sums[r * x->groups + g];
        const V unit = loadv(scale + j * 16) * x->unit[r * x->groups + g];
        acc[r][j] = fmav(__builtin_convertvector(total, V), unit, acc[r][j]);
      }
  }
#pragma clang loop unroll(full)
  for (int j = 0; j < 2; ++j)
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const V z = acc[r][j] - loadv(p + j * 16);
      squares[r] = fmav(z, z, squares[r]);
    }
}

TARE_INLINE void fixed_block(const int rows, const tare_check *c, const FixedRows *x, uint32_t *const *to) {
  const int64_t panels = (c->rank + TARE_PANEL - 1) / TARE_PANEL;
  const char *w = c->sparse;
  const float *scale = c->scale, *p = c->p;
  uint32_t words[FIXED_ROWS] = {0};
  for (int64_t head = 0; head < c->heads; ++head) {
    V squares[FIXED_ROWS];
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) squares[r] = (V)(0.0f);
    for (int64_t panel = 0; panel < panels; ++panel) {
      fixed_panel(rows, x, w, scale, p, c->width, c->group, squares);
      w += c->width * 16, p += TARE_PANEL, scale += x->groups * TARE_PANEL;
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      words[r] |= (uint32_t)(__builtin_sqrtf(lane_sum(squares[r])) < c->tau[head]) << head;
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) *to[r] = words[r];
}

#define FIXED_BLOCK(ROWS)                                                                                               \
  static __attribute__((noinline)) void fixed_block_##ROWS(const tare_check *c, const FixedRows *x,                     \
                                                          uint32_t *const *to) {                                       \
    fixed_block(ROWS, c, x, to);                                                                                        \
  }
FIXED_BLOCK(1)
FIXED_BLOCK(2)
FIXED_BLOCK(3)
FIXED_BLOCK(4)
FIXED_BLOCK(5)
FIXED_BLOCK(6)

static __attribute__((noinline)) void fixed_blocks(int64_t rows, const tare_check *c, const FixedRows *f,
                                                   uint32_t *const *to) {
  switch (rows) {
  case 1: return fixed_block_1(c, f, to);
  case 2: return fixed_block_2(c, f, to);
  case 3: return fixed_block_3(c, f, to);
  case 4: return fixed_block_4(c, f, to);
  case 5: return fixed_block_5(c, f, to);
  default: fixed_block_6(c, f, to);
  }
}
#else
typedef int16_t VS __attribute__((ext_vector_type(2 * TARE_LANES)));
enum { FIXED_VECTORS = TARE_PANEL / TARE_LANES, FIXED_STEP = 128, FIXED_QUADS = 8 };
/* Products of 4 steps, in pairs: at most 15 * 128 * 2, so 16 bits hold FIXED_QUADS of them. */
TARE_INLINE VS multiply_pairs(VI nibbles, int32_t bytes) {
#ifdef __AVX512F__
  return (VS)__builtin_ia32_pmaddubsw512((VB64)nibbles, (VB64)(VI)(bytes));
#else
  typedef int8_t VB32 __attribute__((ext_vector_type(32)));
  return (VS)__builtin_ia32_pmaddubsw256((VB32)nibbles, (VB32)(VI)(bytes));
#endif
}
TARE_INLINE VI add_pairs(VS v) {
#ifdef __AVX512F__
  return (VI)__builtin_ia32_pmaddwd512(v, (VS)(1));
#else
  return (VI)__builtin_ia32_pmaddwd256(v, (VS)(1));
#endif
}

/* A panel's sums over up to FIXED_QUADS quads, of one row: total = 256 * high + low. */
TARE_INLINE void fixed_sums(const char *nibbles, const int32_t *high, const int32_t *low, int64_t quads, VI *total) {
  VS sum[2][FIXED_VECTORS];
#pragma clang loop unroll(full)
  for (int v = 0; v < FIXED_VECTORS; ++v) sum[0][v] = sum[1][v] = (VS)(0);
  for (int64_t q = 0; q < quads; ++q, nibbles += FIXED_STEP)
#pragma clang loop unroll(full)
    for (int v = 0; v < FIXED_VECTORS; ++v) {
      const VI w = *(const VI *)(nibbles + v * (FIXED_STEP / FIXED_VECTORS));
      sum[0][v] += multiply_pairs(w, high[q]);
      sum[1][v] += multiply_pairs(w, low[q]);
    }
#pragma clang loop unroll(full)
  for (int v = 0; v < FIXED_VECTORS; ++v) total[v] += (add_pairs(sum[0][v]) << 8) + add_pairs(sum[1][v]);
}

/* Panels are decoded once for all rows of the block. */
static __attribute__((noinline)) void fixed_blocks(int64_t rows, const tare_check *c, const FixedRows *f,
                                                   uint32_t *const *to) {
  const int64_t panels = (c->rank + TARE_PANEL - 1) / TARE_PANEL, row_words = 2 * f->groups * f->quads;
  const char *w = c->sparse;
  const float *scale = c->scale, *p = c->p;
  for (int64_t r = 0; r < rows; ++r) *to[r] = 0;
  for (int64_t head = 0; head < c->heads; ++head) {
    V squares[FIXED_ROWS];
    for (int64_t r = 0; r < rows; ++r) squares[r] = (V)(0.0f);
    for (int64_t panel = 0; panel < panels; ++panel, p += TARE_PANEL) {
      V acc[FIXED_ROWS][FIXED_VECTORS];
      for (int64_t r = 0; r < rows; ++r)
        for (int v = 0; v < FIXED_VECTORS; ++v) acc[r][v] = (V)(0.0f);
      for (int64_t g = 0; g < f->groups; ++g, scale += TARE_PANEL) {
        VI total[FIXED_ROWS][FIXED_VECTORS];
        for (int64_t r = 0; r < rows; ++r)
          for (int v = 0; v < FIXED_VECTORS; ++v) total[r][v] = (VI)(-f->sums[r * f->groups + g]);
        for (int64_t left = minl(c->group, c->width - g * c->group), first = 0; left > 0; first += FIXED_QUADS) {
          __attribute__((aligned(64))) char nibbles[FIXED_QUADS * FIXED_STEP];
          int64_t quads = 0;
          for (; quads < FIXED_QUADS && left > 0; ++quads, left -= 4) {
            VU16 *half = (VU16 *)(nibbles + quads * FIXED_STEP);
            load_quad(w, left, half, half + 1);
            w += minl(left, 4) * 16;
          }
          for (int64_t r = 0; r < rows; ++r) {
            const int32_t *words = f->words + r * row_words + g * f->quads * 2 + first;
            fixed_sums(nibbles, words, words + f->quads, quads, total[r]);
          }
        }
        for (int64_t r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
          for (int v = 0; v < FIXED_VECTORS; ++v) {
            const V unit = loadv(scale + v * TARE_LANES) * f->unit[r * f->groups + g];
            acc[r][v] = fmav(__builtin_convertvector(total[r][v], V), unit, acc[r][v]);
          }
      }
      for (int64_t r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
        for (int v = 0; v < FIXED_VECTORS; ++v) {
          const V z = acc[r][v] - loadv(p + v * TARE_LANES);
          squares[r] = fmav(z, z, squares[r]);
        }
    }
    for (int64_t r = 0; r < rows; ++r)
      *to[r] |= (uint32_t)(__builtin_sqrtf(lane_sum(squares[r])) < c->tau[head]) << head;
  }
}
#endif

/* At most FIXED_ROWS rows, of which all `fixed_row_bytes` fit in FIXED_BYTES. */
static __attribute__((noinline)) void fixed_rows(int64_t rows, const tare_check *c, const float *const *x,
                                                 uint32_t *const *to) {
  __attribute__((aligned(64))) int8_t memory[FIXED_BYTES];
  FixedRows f = {fixed_quads(c->group), (c->width + c->group - 1) / c->group, (const int32_t *)memory, 0, 0};
  const int64_t bytes = f.groups * f.quads * 8;
  float *unit = (float *)(memory + rows * bytes);
  int32_t *sums = (int32_t *)(unit + rows * f.groups);
  f.unit = unit, f.sums = sums;
  for (int64_t r = 0; r < rows; ++r)
    fix_row(x[r], c->width, c->group, memory + r * bytes, unit + r * f.groups, sums + r * f.groups);
  fixed_blocks(rows, c, &f, to);
}
