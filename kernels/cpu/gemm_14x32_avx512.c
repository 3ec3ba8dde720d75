/* GEMM tiles of 1 to 14 rows by 32 columns for AVX-512: 28 accumulators of 16 floats. One body per row count and storage type, chosen by a switch
 * (no function pointers: code sections have no relocations). See tile.h for the body. */
#include "kernels/cpu/tile.h"

#define TARE_TILES(TYPE, KIND)                                                                                                                         \
  TARE_TILE(TYPE, KIND, 1) TARE_TILE(TYPE, KIND, 2) TARE_TILE(TYPE, KIND, 3) TARE_TILE(TYPE, KIND, 4) TARE_TILE(TYPE, KIND, 5)                         \
  TARE_TILE(TYPE, KIND, 6) TARE_TILE(TYPE, KIND, 7) TARE_TILE(TYPE, KIND, 8) TARE_TILE(TYPE, KIND, 9) TARE_TILE(TYPE, KIND, 10)                        \
  TARE_TILE(TYPE, KIND, 11) TARE_TILE(TYPE, KIND, 12) TARE_TILE(TYPE, KIND, 13) TARE_TILE(TYPE, KIND, 14)                                              \
  __attribute__((noinline)) void tare_tile_##TYPE(int64_t rows, TARE_TILE_ARGS) {                                                                      \
    switch (rows) {                                                                                                                                    \
      TARE_TILE_CASE(TYPE, 1) TARE_TILE_CASE(TYPE, 2) TARE_TILE_CASE(TYPE, 3) TARE_TILE_CASE(TYPE, 4) TARE_TILE_CASE(TYPE, 5)                          \
      TARE_TILE_CASE(TYPE, 6) TARE_TILE_CASE(TYPE, 7) TARE_TILE_CASE(TYPE, 8) TARE_TILE_CASE(TYPE, 9) TARE_TILE_CASE(TYPE, 10)                         \
      TARE_TILE_CASE(TYPE, 11) TARE_TILE_CASE(TYPE, 12) TARE_TILE_CASE(TYPE, 13) TARE_TILE_CASE(TYPE, 14)                                              \
    }                                                                                                                                                  \
  }
TARE_TILES(f32, TARE_F32)
TARE_TILES(f16, TARE_F16)
TARE_TILES(bf16, TARE_BF16)
