/* GEMM tiles of 1 to 6 rows by 16 columns for AVX2, each panel of 32 columns as two halves: 12 accumulators of 8 floats. One body per row count and
 * storage type, chosen by a switch (no function pointers: code sections have no relocations). See tile.h for the body. */
#include "kernels/cpu/tile.h"

#define TARE_TILES(TYPE, KIND)                                                                                                                         \
  TARE_TILE(TYPE, KIND, 1) TARE_TILE(TYPE, KIND, 2) TARE_TILE(TYPE, KIND, 3) TARE_TILE(TYPE, KIND, 4) TARE_TILE(TYPE, KIND, 5)                         \
  TARE_TILE(TYPE, KIND, 6)                                                                                                                             \
  __attribute__((noinline)) void tare_tile_##TYPE(int64_t rows, TARE_TILE_ARGS) {                                                                      \
    switch (rows) {                                                                                                                                    \
      TARE_TILE_CASE(TYPE, 1) TARE_TILE_CASE(TYPE, 2) TARE_TILE_CASE(TYPE, 3) TARE_TILE_CASE(TYPE, 4) TARE_TILE_CASE(TYPE, 5) TARE_TILE_CASE(TYPE, 6)  \
    }                                                                                                                                                  \
  }
TARE_TILES(f32, TARE_F32)
TARE_TILES(f16, TARE_F16)
TARE_TILES(bf16, TARE_BF16)
