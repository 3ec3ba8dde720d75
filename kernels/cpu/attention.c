/* Fused attention (kernels.h). Work items are (batch, kv head, chunk of query rows); for each, keys come in tiles of
 * 512: k is packed transposed, v as a panel, scores of one row block stay in L1, softmax runs online (running maximum
 * and sum per row), and p v adds into the chunk's accumulators. Must hold: a masked row (-inf everywhere) keeps maximum
 * -inf and sum 0, so that it ends as 0/0 = NaN like an unfused softmax, or 0 with nan_guard. */
#include "kernels/cpu/pack.h"

/* Rows of scores must not fall on the same cache sets. */
enum { SCORE_STRIDE = TARE_KEY_TILE + 16, ROWS_MOST = 14, ROWS_DIRECT = 4 };
static const float MASKED = -1e30f; /* a bias at or below leaves a weight of exactly 0 beside any key above */

/* e^x for x <= 0 or NaN: tare_expf's polynomial, one scaling step. Below -87.7 the factor's exponent field reaches 0,
 * so that the result is exactly 0. */
TARE_INLINE V expv(V x) {
  x = x < (V)(-88.0f) ? (V)(-88.0f) : x;
  const V magic = (V)(12582912.0f), t = fmav(x, (V)(1.44269504088896341f), magic), n = t - magic;
  const V r = fmav(n, (V)(2.12194440e-4f), fmav(n, (V)(-0.693359375f), x));
  V p = (V)(1.9875691500e-4f);
  p = fmav(p, r, (V)(1.3981999507e-3f));
  p = fmav(p, r, (V)(8.3334519073e-3f));
  p = fmav(p, r, (V)(4.1665795894e-2f));
  p = fmav(p, r, (V)(1.6666665459e-1f));
  p = fmav(p, r, (V)(5.0000001201e-1f));
  p = fmav(p * r, r, r) + 1.0f;
  const VI scale = (*(const VI *)&t + 127) << 23; /* the low bits of t are n */
  return p * *(const V *)&scale;
}
TARE_INLINE V maxv(V a, V b) { return b > a ? b : a; } /* a NaN in b is passed over; it comes back through the sum */

typedef float F8 __attribute__((ext_vector_type(8)));
typedef float F4 __attribute__((ext_vector_type(4)));
typedef float F2 __attribute__((ext_vector_type(2)));
TARE_INLINE float horizontal(V v, const int maximum) {
#define FOLD(a, b) (maximum ? ((b) > (a) ? (b) : (a)) : (a) + (b))
#ifdef __AVX512F__
  const F8 v8 = FOLD(v.lo, v.hi);
#else
  const F8 v8 = v;
#endif
  const F4 v4 = FOLD(v8.lo, v8.hi);
  const F2 v2 = FOLD(v4.lo, v4.hi);
  return FOLD(v2.x, v2.y);
#undef FOLD
}

/* One row of scores becomes probabilities relative to the new running maximum; returns the factor for what was summed
 * before. */
static __attribute__((noinline)) float softmax_row(float *s, const float *bias, int64_t count, float scale,
                                                   float *maximum, float *sum) {
  const int64_t padded = (count + TARE_LANES - 1) / TARE_LANES * TARE_LANES;
  V m = (V)(*maximum);
  for (int64_t i = 0; i < padded; i += TARE_LANES) {
    V x = loadv(s + i) * scale;
    if (bias) x += loadv(bias + i);
    if (i + TARE_LANES > count) { /* columns beyond the last key take no part */
      VI lane;
#pragma clang loop unroll(full)
      for (int j = 0; j < TARE_LANES; ++j) lane[j] = j;
      x = lane < (VI)((int32_t)(count - i)) ? x : (V)(-__builtin_inff());
    }
    storev(s + i, x);
    m = maxv(m, x);
  }
  const float top = horizontal(m, 1);
  const float shift = top == -__builtin_inff() ? 0.0f : top;
  V total = (V)(0.0f);
  for (int64_t i = 0; i < padded; i += TARE_LANES) {
    const V p = expv(loadv(s + i) - shift);
    storev(s + i, p);
    total += p;
  }
  const float factor = (expv((V)(*maximum - shift)))[0];
  *sum = *sum * factor + horizontal(total, 0);
  *maximum = top;
  return factor;
}

TARE_INLINE int all_masked(const float *bias) { return __builtin_reduce_and(loadv(bias) <= (V)(MASKED)) != 0; }

/* Widens [*low, *high) to hold every key that this bias row leaves unmasked (NaN counts as unmasked). Returns whether
 * there is one. */
static __attribute__((noinline)) int unmasked_range(const float *bias, int64_t count, int64_t *low, int64_t *high) {
  int64_t first = 0, last = count;
  while (first + TARE_LANES <= count && all_masked(bias + first)) first += TARE_LANES;
  while (first < count && bias[first] <= MASKED) ++first;
  while (last - TARE_LANES >= first && all_masked(bias + last - TARE_LANES)) last -= TARE_LANES;
  while (last > first && bias[last - 1] <= MASKED) --last;
  if (first == last) return 0;
  *low = minl(*low, first);
  *high = maxl(*high, last);
  return 1;
}
/* Scores of few rows (decoding): k is read once, in place, where packing would read it, write it and read it again. */
static __attribute__((noinline)) void direct_scores(const float *q, int64_t q_step, int64_t rows, const float *k,
                                                    int64_t k_step, int64_t dim, int64_t count, float *scores) {
  const int64_t whole = dim / TARE_LANES * TARE_LANES;
  for (int64_t t = 0; t < count; ++t)
    for (int64_t r = 0; r < rows; ++r) {
      V sum = (V)(0.0f);
      for (int64_t d = 0; d < whole; d += TARE_LANES)
        sum = fmav(loadv(q + r * q_step + d), loadv(k + t * k_step + d), sum);
      float s = horizontal(sum, 0);
      for (int64_t d = whole; d < dim; ++d) s += q[r * q_step + d] * k[t * k_step + d];
      scores[r * SCORE_STRIDE + t] = s;
    }
}
static __attribute__((noinline)) void scale_row(float *x, int64_t count, float factor) {
  for (int64_t i = 0; i < count; i += TARE_LANES) storev(x + i, loadv(x + i) * factor);
}
static __attribute__((noinline)) void store_row(float *out, const float *x, int64_t count, float sum, int64_t guard) {
  if (sum > 0.0f) {
    const float inverse = 1.0f / sum;
    for (int64_t i = 0; i < count; ++i) out[i] = x[i] * inverse;
  } else { /* 0: every key -inf, or no key; NaN: a NaN or +inf among the scores */
    for (int64_t i = 0; i < count; ++i) out[i] = guard ? 0.0f : __builtin_nanf("");
  }
}

TARE_EXPORT void tare_attention_f32(const tare_attention *args, tare_bias_row bias, void *env, int64_t thread,
                                    int64_t threads, void *scratch) {
  const int64_t queries = args->queries, keys = args->keys, dim = args->dim, value_dim = args->value_dim,
                padded_dim = TARE_ROUND32(value_dim);
  const int64_t group = args->heads / args->kv_heads, units = args->batch * args->kv_heads, unit_rows = group * queries;
  const float scale = (float)args->scale;
  int64_t chunks = (unit_rows + TARE_QUERY_TILE - 1) / TARE_QUERY_TILE;
  if (units * chunks % threads != 0 && units * chunks < 8 * threads && unit_rows >= 2 * TARE_ROWS) chunks *= threads;
  const int64_t items = units * chunks;
  float *packed_k = scratch, *packed_v = packed_k + TARE_KEY_TILE * dim,
        *scores = packed_v + TARE_KEY_TILE * padded_dim;
  float *biases = scores + ROWS_MOST * SCORE_STRIDE, *sums = scores + 32 * TARE_KEY_TILE,
        *maxima = sums + TARE_QUERY_TILE, *acc = maxima + TARE_QUERY_TILE;
  const int direct_k = unit_rows <= ROWS_DIRECT, direct_v = direct_k && value_dim % TARE_PANEL == 0;
  int64_t packed_unit = -1;
  for (int64_t item = items * thread / threads; item < items * (thread + 1) / threads; ++item) {
    const int64_t unit = item / chunks, chunk = item % chunks, b = unit / args->kv_heads, g = unit % args->kv_heads;
    const int64_t row_begin = unit_rows * chunk / chunks, row_end = unit_rows * (chunk + 1) / chunks;
    const float *k_base = args->k + b * args->k_stride[0] + g * args->k_stride[1],
                *v_base = args->v + b * args->v_stride[0] + g * args->v_stride[1];
    for (int64_t i = 0; i < row_end - row_begin; ++i) sums[i] = 0.0f, maxima[i] = -__builtin_inff();
    uint8_t seen[TARE_QUERY_TILE] = {0},
            begun[TARE_QUERY_TILE] = {0}; /* per row: an unmasked key was met; acc holds a sum */
    for (int64_t t0 = 0; t0 < keys; t0 += TARE_KEY_TILE) {
      const int64_t count = minl(keys - t0, TARE_KEY_TILE);
      if (packed_unit != unit || keys > TARE_KEY_TILE) {
        for (int64_t t = 0; t < count && !direct_k; t += TARE_PANEL)
          tare_pack_panel(packed_k + t * dim, k_base + (t0 + t) * args->k_stride[2], 1, args->k_stride[2], dim,
                          minl(count - t, TARE_PANEL));
        for (int64_t d = 0; d < value_dim && !direct_v; d += TARE_PANEL)
          tare_pack_panel(packed_v + d * TARE_KEY_TILE, v_base + t0 * args->v_stride[2] + d, args->v_stride[2], 1,
                          count, minl(value_dim - d, TARE_PANEL));
        packed_unit = unit;
      }
      for (int64_t row = row_begin; row < row_end;) {
        const int64_t head = row / queries, query = row % queries,
                      left = queries == 1 ? row_end - row : minl(queries - query, row_end - row);
        const int64_t rows = (left + (left + TARE_ROWS - 1) / TARE_ROWS - 1) / ((left + TARE_ROWS - 1) / TARE_ROWS),
                      at = row - row_begin;
        const int64_t q_step = queries == 1 ? args->q_stride[1] : args->q_stride[2];
        const float *q =
            args->q + b * args->q_stride[0] + (g * group + head) * args->q_stride[1] + query * args->q_stride[2];
        int64_t low = 0, high = count;
        if (bias) {
          int all_seen = 1;
          low = count, high = 0;
          for (int64_t r = 0; r < rows; ++r) {
            float *bias_row = biases + r * SCORE_STRIDE;
            bias(env, bias_row, b, g * group + (queries == 1 ? head + r : head), queries == 1 ? 0 : query + r, t0,
                 count);
            seen[at + r] |= unmasked_range(bias_row, count, &low, &high);
            all_seen &= seen[at + r];
          }
          if (!all_seen) low = 0, high = count; /* a row masked so far: its masked keys still count among themselves */
          low = low / TARE_PANEL * TARE_PANEL;
        }
        const int64_t width = high - low;
        if (direct_k)
          direct_scores(q, q_step, rows, k_base + (t0 + low) * args->k_stride[2], args->k_stride[2], dim, width,
                        scores);
        for (int64_t t = 0; t < width && !direct_k; t += TARE_PANEL)
          tare_tile_f32(rows, q, q_step, (const char *)(packed_k + (low + t) * dim), TARE_PANEL, dim, scores + t,
                        SCORE_STRIDE, 0, (const char *)packed_k, 0);
        if (width > 0) {
          for (int64_t r = 0; r < rows; ++r) {
            const float factor = softmax_row(scores + r * SCORE_STRIDE, bias ? biases + r * SCORE_STRIDE + low : 0,
                                             width, scale, maxima + at + r, sums + at + r);
            if (begun[at]) scale_row(acc + (at + r) * padded_dim, padded_dim, factor);
          }
          for (int64_t d = 0; d < value_dim; d += TARE_PANEL) {
            const float *v = direct_v ? v_base + (t0 + low) * args->v_stride[2] + d
                                      : packed_v + d * TARE_KEY_TILE + low * TARE_PANEL;
            tare_tile_f32(rows, scores, SCORE_STRIDE, (const char *)v, direct_v ? args->v_stride[2] : TARE_PANEL, width,
                          acc + at * padded_dim + d, padded_dim, begun[at], (const char *)v, 0);
          }
          begun[at] = 1;
        }
        row += rows;
      }
    }
    for (int64_t row = row_begin; row < row_end; ++row) {
      /* Every block has begun unless there are no keys: a block skips a tile only after each of its rows has met an
       * unmasked key. */
      float *out = args->out + b * args->out_stride[0] + (g * group + row / queries) * args->out_stride[1] +
                   row % queries * args->out_stride[2];
      store_row(out, acc + (row - row_begin) * padded_dim, value_dim, sums[row - row_begin], args->nan_guard);
    }
  }
}
