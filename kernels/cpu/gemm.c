/* GEMM drivers for prepacked weights. In: activations, panels, a hook; out: finished tiles to the hook. Work is split by panels among threads, or by rows
 * when panels are few. Order: rows in chunks whose part of a stays in L2, then panels, then k in blocks (a block of a panel stays in L1/L2 over all
 * row blocks; partial sums wait on the stack), then row blocks. The first row blocks of a panel fetch the next panel towards L2. */
#include "kernels/cpu/vector.h"

/* A chunk of rows: its part of a is at most half a megabyte (L2), and where k is cut, its partial sums fit the stack. */
enum { SUM_ROWS = 140, CHUNK_ELEMENTS = 1 << 17, K_BLOCK = 512, K_WHOLE = 1024 };
enum { CHECK_ROWS = 1024 }; /* rows whose check bits lie on the stack */

TARE_INLINE void any_tile(const int kind, int64_t rows, TARE_TILE_ARGS) {
  if (kind == TARE_F32) tare_tile_f32(rows, a, lda, b, ldb, k, c, ldc, accumulate, next, next_step);
  else if (kind == TARE_F16) tare_tile_f16(rows, a, lda, b, ldb, k, c, ldc, accumulate, next, next_step);
  else tare_tile_bf16(rows, a, lda, b, ldb, k, c, ldc, accumulate, next, next_step);
}

/* With a check, its bits are made chunk by chunk and go to `checked` instead of `fn`. When every row is evaluated, threads share rows: each evaluates its own. */
TARE_INLINE void gemm(const int kind, const float *a, int64_t lda, const char *b, int64_t m, int64_t n, int64_t k, const tare_check *check, int64_t thread, int64_t threads,
                      tare_epilogue fn, tare_checked_epilogue checked, void *env) {
  const int64_t panels = (n + TARE_PANEL - 1) / TARE_PANEL, step_bytes = TARE_PANEL * element_bytes(kind), panel_bytes = k * step_bytes;
  int64_t first_panel = 0, last_panel = panels, first_row = 0, last_row = m;
  const int64_t by_panels = (panels % threads == 0 || panels >= 8 * threads) && !(check && check->run->count < 0);
  if (by_panels || m < 2 * TARE_ROWS * threads) {
    first_panel = panels * thread / threads;
    last_panel = panels * (thread + 1) / threads;
  } else {
    first_row = m * thread / threads;
    last_row = m * (thread + 1) / threads;
  }
  const int64_t k_parts = k <= K_WHOLE ? 1 : (k + K_BLOCK - 1) / K_BLOCK, k_block = (k + k_parts - 1) / k_parts;
  const int64_t slot_rows = k_parts > 1 ? TARE_PANEL : 0;
  int64_t most_rows = k_parts > 1 ? SUM_ROWS : maxl(SUM_ROWS, CHUNK_ELEMENTS / maxl(k, 1));
  uint32_t bits[CHECK_ROWS], before = 0;
  if (check) {
    most_rows = TARE_CHECK_CHUNK(k);
    if (first_panel == last_panel) return;
  }
  const int64_t chunks = (last_row - first_row + most_rows - 1) / most_rows;
  __attribute__((aligned(64))) float sums[SUM_ROWS * TARE_PANEL];
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t row0 = first_row + (last_row - first_row) * chunk / chunks;
    const Split split = split_rows(first_row + (last_row - first_row) * (chunk + 1) / chunks - row0);
    if (check) {
      const int64_t rows = split.blocks * split.base + split.extra;
      tare_check_bits(check, a, lda, row0, rows, bits, chunk ? &before : 0, first_panel == 0);
      before = bits[rows - 1];
      if (check->run->all && first_panel == 0)
        for (int64_t i = 0; i < rows; ++i) check->run->all[row0 + i] = bits[i];
    }
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      const int64_t col = panel * TARE_PANEL;
      int64_t k0 = 0;
      do {
        const int64_t depth = minl(k_block, k - k0);
        const char *b_block = b + panel * panel_bytes + k0 * step_bytes;
        const char *next = b_block + depth * step_bytes; /* the next block of this panel, or the next panel: they lie one after another */
        int64_t row = row0;
        for (int64_t i = 0; i < split.blocks; ++i) {
          const int64_t rows = split.base + (i < split.extra);
          float *tile = sums + slot_rows * (row - row0);
          const int64_t fetch = split.blocks > 1 && i * depth * 32 < depth * step_bytes ? 64 : 0;
          any_tile(kind, rows, a + row * lda + k0, lda, b_block, TARE_PANEL, depth, tile, TARE_PANEL, k0 > 0, fetch ? next + i * depth * 32 : b_block, fetch);
          if (k0 + depth >= k) {
            if (check && col + TARE_PANEL <= n) checked(env, tile, row, col, rows, TARE_PANEL, bits + (row - row0));
            else if (check) checked(env, tile, row, col, rows, n - col, bits + (row - row0));
            else if (col + TARE_PANEL <= n) fn(env, tile, row, col, rows, TARE_PANEL);
            else fn(env, tile, row, col, rows, n - col);
          }
          row += rows;
        }
        k0 += depth;
      } while (k0 < k);
    }
  }
}

#define TARE_GEMM(TYPE, KIND)                                                                                                                           \
  TARE_EXPORT void tare_gemm_##TYPE(const float *a, int64_t lda, const void *b, int64_t m, int64_t n, int64_t k, int64_t thread, int64_t threads,       \
                                    tare_epilogue fn, void *env) {                                                                                       \
    gemm(KIND, a, lda, b, m, n, k, 0, thread, threads, fn, 0, env);                                                                                      \
  }                                                                                                                                                      \
  TARE_EXPORT void tare_gemm_checked_##TYPE(const float *a, int64_t lda, const void *b, int64_t m, int64_t n, int64_t k, const tare_check *check,        \
                                            int64_t thread, int64_t threads, tare_checked_epilogue fn, void *env) {                                      \
    gemm(KIND, a, lda, b, m, n, k, check, thread, threads, 0, fn, env);                                                                                  \
  }
TARE_GEMM(f32, TARE_F32)
TARE_GEMM(f16, TARE_F16)
TARE_GEMM(bf16, TARE_BF16)
