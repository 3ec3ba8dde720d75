// Instances of the fused check: compiled by nvcc for every architecture (cubins_test.sh) and run on the emulator (check_test.cpp), the same text.
#include "kernels/cuda/check.cuh"

namespace tare {

using SmallCheck = CheckShape<3, 64, 128>;       // contract-lm's: D = 128, FFN of 512 columns
using OddCheck = CheckShape<5, 40, 72, 16, 4>;   // nothing is a multiple of anything
using WideCheck = CheckShape<3, 384, 384>;       // attached to MiniLM: D = 384, FFN of 1536 columns

TARE_ROOMY_KERNEL(128) ffn_up_checked_f32(global<const float> h, global<const float> b, global<const float> bias, global<const float> e, global<const u8> q, global<const float> scale,
                                    global<const float> dense, global<const float> p, global<const float> tau, global<float> out, i64 m, i64 n, i64 columnTiles, CheckRun run) {
  gemm_f32_checked<SmallCheck>(h, b, out, m, n, columnTiles, run, Int4Panels<SmallCheck>{q, scale}, FloatPanels<SmallCheck, float>{dense}, p, tau,
                               [=](i64, i64 c, float v, u32 bits) { return gelu_erf(v + bias.read(c) + check_bias<SmallCheck>(bits, e, n, c)); });
}
TARE_ROOMY_KERNEL(128) ffn_up_checked_listed(global<const float> h, global<const float> b, global<const float> bias, global<const float> e, global<const signed char> q, global<const float> scale,
                                       global<const float> dense, global<const float> p, global<const float> tau, global<float> out, i64 m, i64 n, i64 columnTiles, ListedRun run) {
  gemm_f32_checked<SmallCheck>(h, b, out, m, n, columnTiles, run, Int8Panels<SmallCheck>{q, scale}, FloatPanels<SmallCheck, float>{dense}, p, tau,
                               [=](i64, i64 c, float v, u32 bits) { return gelu_erf(v + bias.read(c) + check_bias<SmallCheck>(bits, e, n, c)); });
}
TARE_ROOMY_KERNEL(128) ffn_up_checked_odd(global<const float> h, global<const float> b, global<const float> bias, global<const float> e, global<const u8> q, global<const float> scale,
                                    global<const float> dense, global<const float> p, global<const float> tau, global<float> out, i64 m, i64 n, i64 columnTiles, CheckRun run) {
  gemm_f32_checked<OddCheck>(h, b, out, m, n, columnTiles, run, Int4Panels<OddCheck>{q, scale}, FloatPanels<OddCheck, float>{dense}, p, tau,
                             [=](i64, i64 c, float v, u32 bits) { return gelu_erf(v + bias.read(c) + check_bias<OddCheck>(bits, e, n, c)); });
}
TARE_ROOMY_KERNEL(128) ffn_up_checked_f16(global<const f16> h, global<const f16> b, global<const float> bias, global<const float> e, global<const u8> q, global<const float> scale,
                                    global<const f16> dense, global<const float> p, global<const float> tau, global<float> out, i64 m, i64 n, i64 columnTiles, CheckRun run) {
  gemm_mma_checked<WideCheck, f16>(h, b, out, m, n, columnTiles, run, Int4Panels<WideCheck>{q, scale}, FloatPanels<WideCheck, f16>{dense}, p, tau,
                                   [=](i64, i64 c, float v, u32 bits) { return gelu_erf(v + bias.read(c) + check_bias<WideCheck>(bits, e, n, c)); });
}

// The split form of the three shapes: distances once, then GEMMs that only carry.
#define TARE_SPLIT(SHAPE, NAME, T, GEMM, ...)                                                                          \
  TARE_WIDE_KERNEL(128) NAME##_distances(global<const T> h,  global<const signed char> q, global<const float> scale,         \
                                    global<const T> dense, global<const float> p, global<float> distances, i64 m,     \
                                    ListedRun run) {                                                                  \
    check_distances<SHAPE>(h, m, run, Int8Panels<SHAPE>{q, scale}, FloatPanels<SHAPE, T>{dense}, p, distances);       \
  }                                                                                                                   \
  TARE_KERNEL(128) NAME##_carried(global<const T> h, global<const T> b, global<const float> bias,                      \
                                  global<const float> e, global<const float> tau, global<const float> distances,      \
                                  global<float> out, i64 m, i64 n, i64 columnTiles, ListedRun run) {                  \
    GEMM<SHAPE __VA_ARGS__>(h, b, out, m, n, columnTiles, run, distances, tau, [=](i64, i64 c, float v, u32 bits) {    \
      return gelu_erf(v + bias.read(c) + check_bias<SHAPE>(bits, e, n, c));                                           \
    });                                                                                                               \
  }
TARE_SPLIT(SmallCheck, split_small, float, gemm_f32_carried)
TARE_SPLIT(OddCheck, split_odd, float, gemm_f32_carried)
TARE_SPLIT(OddCheck, split_odd_tf32, float, gemm_tf32_carried)
TARE_SPLIT(WideCheck, split_wide, f16, gemm_mma_carried, , f16)
#define TARE_FUSED_INT8(SHAPE, NAME, T, GEMM, ...)                                                                     \
  TARE_ROOMY_KERNEL(128) NAME(global<const T> h, global<const T> b, global<const float> bias, global<const float> e,         \
                        global<const signed char> q, global<const float> scale, global<const T> dense,                \
                        global<const float> p, global<const float> tau, global<float> out, i64 m, i64 n,              \
                        i64 columnTiles, ListedRun run) {                                                             \
    GEMM<SHAPE __VA_ARGS__>(h, b, out, m, n, columnTiles, run, Int8Panels<SHAPE>{q, scale},                            \
                            FloatPanels<SHAPE, T>{dense}, p, tau, [=](i64, i64 c, float v, u32 bits) {                \
                              return gelu_erf(v + bias.read(c) + check_bias<SHAPE>(bits, e, n, c));                   \
                            });                                                                                       \
  }
TARE_FUSED_INT8(OddCheck, fused_odd_int8, float, gemm_f32_checked)
TARE_FUSED_INT8(OddCheck, fused_odd_tf32, float, gemm_tf32_checked)
TARE_FUSED_INT8(WideCheck, fused_wide_int8, f16, gemm_mma_checked, , f16)

} // namespace tare
