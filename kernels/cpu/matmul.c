/* Batched matmul of two activations with any strides (kernels.h). Work items are (batch, chunk of rows, panel), split evenly among threads. A row-major b is
 * read in place, any other is packed one k-block of a panel at a time; a is packed only when its columns are not contiguous. Scratch: packed b, packed a. */
#include "kernels/cpu/pack.h"

enum { MATMUL_BLOCKS = 112 / TARE_ROWS, MATMUL_ROWS = MATMUL_BLOCKS * TARE_ROWS, MATMUL_DEPTH = 512 };

TARE_INLINE int64_t batch_offset(const int64_t *size, const int64_t *stride, int64_t index) {
  int64_t offset = 0;
  for (int d = 3; d >= 0; --d) {
    offset += index % size[d] * stride[d];
    index /= size[d];
  }
  return offset;
}
static __attribute__((noinline)) void pack_rows(float *to, const float *from, int64_t row_stride, int64_t col_stride, int64_t rows, int64_t depth) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < depth; ++j) to[i * MATMUL_DEPTH + j] = from[i * row_stride + j * col_stride];
}

TARE_EXPORT void tare_matmul_f32(const tare_matmul *args, int64_t thread, int64_t threads, void *scratch, tare_batch_epilogue fn, void *env) {
  const int64_t m = args->m, n = args->n, k = args->k, a_row = args->a_row, a_col = args->a_col, b_row = args->b_row, b_col = args->b_col;
  const int64_t panels = (n + TARE_PANEL - 1) / TARE_PANEL, chunks = (m + MATMUL_ROWS - 1) / MATMUL_ROWS;
  const int64_t items = args->batch[0] * args->batch[1] * args->batch[2] * args->batch[3] * chunks * panels;
  float *packed_b = scratch, *packed_a = packed_b + MATMUL_DEPTH * TARE_PANEL;
  __attribute__((aligned(64))) float sums[MATMUL_ROWS * TARE_PANEL];
  for (int64_t item = items * thread / threads; item < items * (thread + 1) / threads; ++item) {
    const int64_t panel = item % panels, chunk = item / panels % chunks, batch = item / panels / chunks, col = panel * TARE_PANEL, cols = minl(n - col, TARE_PANEL);
    const float *a = args->a + batch_offset(args->batch, args->a_batch, batch), *b = args->b + batch_offset(args->batch, args->b_batch, batch) + col * b_col;
    const int64_t row0 = chunk * MATMUL_ROWS;
    const Split split = split_rows(minl(m - row0, MATMUL_ROWS));
    int64_t k0 = 0;
    do { /* k == 0 runs once: a sum of nothing is 0 */
      const int64_t depth = minl(k - k0, MATMUL_DEPTH);
      const float *b_block = b + k0 * b_row, *a_block = a + row0 * a_row + k0 * a_col;
      int64_t ldb = b_row, lda = a_row;
      if (b_col != 1 || cols < TARE_PANEL) {
        tare_pack_panel(packed_b, b_block, b_row, b_col, depth, cols);
        b_block = packed_b;
        ldb = TARE_PANEL;
      }
      if (a_col != 1) {
        pack_rows(packed_a, a_block, a_row, a_col, minl(m - row0, MATMUL_ROWS), depth);
        a_block = packed_a;
        lda = MATMUL_DEPTH;
      }
      int64_t row = 0;
      for (int64_t i = 0; i < split.blocks; ++i) {
        const int64_t rows = split.base + (i < split.extra);
        float *tile = sums + row * TARE_PANEL;
        tare_tile_f32(rows, a_block + row * lda, lda, (const char *)b_block, ldb, depth, tile, TARE_PANEL, k0 > 0, (const char *)b_block, 0);
        if (k0 + depth >= k) {
          if (cols == TARE_PANEL) fn(env, tile, batch, row0 + row, col, rows, TARE_PANEL);
          else fn(env, tile, batch, row0 + row, col, rows, cols);
        }
        row += rows;
      }
      k0 += depth;
    } while (k0 < k);
  }
}
