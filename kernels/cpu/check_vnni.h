/* int4 prototypes by integer dot products (AVX-512 VNNI), part of check.c. In: rows of floats, nibble panels.
 * Out: one word per row, as block_i4. A row is held as 16-bit fixed point per group of the scales, in two bytes: its
 * sums are exact, so that only this rounding (2^-16 of the group's largest value) and the f32 sum over groups remain.
 * Must hold: a row's sum does not depend on its block; a row with a value that is not finite has no bit. */
#include "kernels/cpu/vector.h"

enum { VNNI_ROWS = 6, VNNI_BYTES = 1 << 16 }; /* rows of a block; of both bytes of all its rows, on the stack */
typedef int8_t VB64 __attribute__((ext_vector_type(64)));
typedef int64_t VL __attribute__((ext_vector_type(8)));
typedef VB64 VB64U __attribute__((aligned(1)));

/* A block of rows as fixed point. Of row r, group g: quads 4 steps wide, high bytes then low bytes. */
typedef struct {
  int64_t quads, groups; /* per group; both bytes of a row: 2 * groups * quads words */
  const int32_t *words;
  const float *unit;   /* [rows][groups]: value of 1 */
  const int32_t *sums; /* [rows][groups]: 8 times the sum, what the nibbles' offset adds */
} FixedRows;

TARE_INLINE int64_t vnni_quads(int64_t group) { return (group + 15) / 16 * 4; } /* whole vectors of a row's values */
TARE_INLINE int64_t vnni_row_bytes(int64_t width, int64_t group) {
  return (width + group - 1) / group * (vnni_quads(group) * 8 + 8);
}

/* 16 values from x[i] on; zeros after `count` */
TARE_INLINE V values_at(const float *x, int64_t i, int64_t count) {
  if (i + 16 <= count) return loadv(x + i);
  V v = (V)(0.0f);
  __builtin_memcpy(&v, x + i, (uint64_t)(count - i) * 4);
  return v;
}

static void fix_row(const float *x, int64_t width, int64_t group, int8_t *bytes, float *unit, int32_t *sums) {
  const int64_t low = vnni_quads(group) * 4;
  for (int64_t d0 = 0; d0 < width; d0 += group, bytes += 2 * low) {
    const int64_t count = minl(group, width - d0);
    VI most = (VI)(0); /* sizes in the order of their bits: infinity and NaN are the largest */
    for (int64_t i = 0; i < count; i += 16) {
      const V v = values_at(x + d0, i, count);
      most = __builtin_elementwise_max(most, *(const VI *)&v & 0x7fffffff);
    }
    const int32_t bits = __builtin_reduce_max(most);
    const float size = *(const float *)&bits, inverse = size > 1e-30f && bits < 0x7f800000 ? 32512.0f / size : 0.0f;
    VI sum = (VI)(0);
    for (int64_t i = 0; i < low; i += 16) {
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

/* 4 steps of a panel: lane c of `low` holds the nibbles of column c as bytes, of `high` those of column c + 16. */
TARE_INLINE void load_quad(const char *w, int64_t steps, VI *low, VI *high) {
  VB64 b = (VB64)(0);
  if (steps >= 4) b = *(const VB64U *)w;
  else __builtin_memcpy(&b, w, (uint64_t)steps * 16);
  b = __builtin_shufflevector(b, b, 0, 16, 32, 48, 1, 17, 33, 49, 2, 18, 34, 50, 3, 19, 35, 51, 4, 20, 36, 52, 5, 21,
                              37, 53, 6, 22, 38, 54, 7, 23, 39, 55, 8, 24, 40, 56, 9, 25, 41, 57, 10, 26, 42, 58, 11,
                              27, 43, 59, 12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63);
  const VI bits = *(const VI *)&b;
  *low = bits & 0x0f0f0f0f;
  *high = (bits >> 4) & 0x0f0f0f0f;
}

TARE_INLINE void vnni_panel(const int rows, const FixedRows *x, const char *w, const float *scale, const float *p,
                            int64_t width, int64_t group, V *squares) {
  V acc[VNNI_ROWS][2];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) acc[r][0] = acc[r][1] = (V)(0.0f);
  const int64_t quads = x->quads, row_words = 2 * x->groups * quads;
  for (int64_t g = 0; g < x->groups; ++g, scale += TARE_PANEL) {
    const int64_t end = minl((g + 1) * group, width);
    const int32_t *words = x->words + g * quads * 2;
    VI sum[VNNI_ROWS][2][2]; /* high and low bytes of x, halves of the panel */
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) sum[r][0][0] = sum[r][0][1] = sum[r][1][0] = sum[r][1][1] = (VI)(0);
    for (int64_t q = 0, d = g * group; d < end; ++q, d += 4) {
      VI v[2];
      load_quad(w + d * 16, end - d, &v[0], &v[1]);
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

TARE_INLINE void vnni_block(const int rows, const tare_check *c, const FixedRows *x, uint32_t *const *to) {
  const int64_t panels = (c->rank + TARE_PANEL - 1) / TARE_PANEL;
  const char *w = c->sparse;
  const float *scale = c->scale, *p = c->p;
  uint32_t words[VNNI_ROWS] = {0};
  for (int64_t head = 0; head < c->heads; ++head) {
    V squares[VNNI_ROWS];
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) squares[r] = (V)(0.0f);
    for (int64_t panel = 0; panel < panels; ++panel) {
      vnni_panel(rows, x, w, scale, p, c->width, c->group, squares);
      w += c->width * 16, p += TARE_PANEL, scale += x->groups * TARE_PANEL;
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      words[r] |= (uint32_t)(__builtin_sqrtf(lane_sum(squares[r])) < c->tau[head]) << head;
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) *to[r] = words[r];
}

#define VNNI_BLOCK(ROWS)                                                                                               \
  static __attribute__((noinline)) void vnni_block_##ROWS(const tare_check *c, const FixedRows *x,                     \
                                                          uint32_t *const *to) {                                       \
    vnni_block(ROWS, c, x, to);                                                                                        \
  }
VNNI_BLOCK(1)
VNNI_BLOCK(2)
VNNI_BLOCK(3)
VNNI_BLOCK(4)
VNNI_BLOCK(5)
VNNI_BLOCK(6)

/* At most VNNI_ROWS rows, of which `vnni_row_bytes` each fit in VNNI_BYTES. */
static __attribute__((noinline)) void vnni_rows(int64_t rows, const tare_check *c, const float *const *x,
                                                uint32_t *const *to) {
  __attribute__((aligned(64))) int8_t memory[VNNI_BYTES];
  FixedRows f = {vnni_quads(c->group), (c->width + c->group - 1) / c->group, (const int32_t *)memory, 0, 0};
  const int64_t bytes = f.groups * f.quads * 8;
  float *unit = (float *)(memory + rows * bytes);
  int32_t *sums = (int32_t *)(unit + rows * f.groups);
  f.unit = unit, f.sums = sums;
  for (int64_t r = 0; r < rows; ++r)
    fix_row(x[r], c->width, c->group, memory + r * bytes, unit + r * f.groups, sums + r * f.groups);
  switch (rows) {
  case 1: return vnni_block_1(c, &f, to);
  case 2: return vnni_block_2(c, &f, to);
  case 3: return vnni_block_3(c, &f, to);
  case 4: return vnni_block_4(c, &f, to);
  case 5: return vnni_block_5(c, &f, to);
  default: vnni_block_6(c, &f, to);
  }
}
