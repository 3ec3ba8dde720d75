// Instances of the GEMM templates: compiled by nvcc for every architecture (cubins_test.sh) and run on the emulator (gemm_test.cpp), the same text.
#include "kernels/cuda/gemm_mma.cuh"
#include "kernels/cuda/gemm_tf32.cuh"

namespace tare {

TARE_KERNEL(128) gemm_f32_bias(global<const float> a, global<const float> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_f32(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return v + bias.read(c); });
}
TARE_KERNEL(128) gemm_f32_weights_f16_gelu(global<const float> a, global<const f16> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_f32(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return gelu_erf(v + bias.read(c)); });
}
TARE_KERNEL(128) gemm_f32_weights_bf16_silu(global<const float> a, global<const bf16> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_f32(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return silu(v + bias.read(c)); });
}
TARE_KERNEL(128) gemm_mma_f16_residual(global<const f16> a, global<const f16> b, global<const float> bias, global<const float> residual, global<float> out, i64 m, i64 n, i64 k) {
  gemm_mma<f16>(a, k, b, out, m, n, k, [=](i64 r, i64 c, float v) { return v + bias.read(c) + residual.read(r * n + c); });
}
TARE_KERNEL(128) gemm_mma_bf16_gelu(global<const bf16> a, global<const bf16> b, global<const float> bias, global<bf16> out, i64 m, i64 n, i64 k) {
  gemm_mma<bf16>(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return gelu_tanh(v + bias.read(c)); });
}
TARE_KERNEL(128) gemm_mma_f16_rounding(global<const float> a, global<const f16> b, global<const float> bias, global<f16> out, i64 m, i64 n, i64 k) {
  gemm_mma<f16>(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return v + bias.read(c); });
}
TARE_KERNEL(128) gemm_mma_f16_from_f32(global<const float> a, global<const float> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_mma<f16>(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return gelu_erf(v + bias.read(c)); });
}
TARE_KERNEL(128) gemm_mma_bf16_from_f16(global<const f16> a, global<const f16> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_mma<bf16>(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return v + bias.read(c); });
}

TARE_KERNEL(128) gemm_tf32_bias(global<const float> a, global<const float> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_tf32(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return v + bias.read(c); });
}
// Rows of a lie `lda` apart.
TARE_KERNEL(128) gemm_tf32_weights_f16_residual(global<const float> a, i64 lda, global<const f16> b, global<const float> bias, global<const float> residual, global<f16> out, i64 m, i64 n, i64 k) {
  gemm_tf32(a, lda, b, out, m, n, k, [=](i64 r, i64 c, float v) { return v + bias.read(c) + residual.read(r * n + c); });
}
TARE_KERNEL(128) gemm_tf32_weights_bf16(global<const float> a, i64 lda, global<const bf16> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_tf32(a, lda, b, out, m, n, k, [=](i64, i64 c, float v) { return v + bias.read(c); });
}
// The large tile: both operands as they lie in memory; one rounded; both rounded, which takes the most registers.
TARE_WIDE_KERNEL(128) gemm_large_f16_residual(global<const f16> a, global<const f16> b, global<const float> bias, global<const float> residual, global<float> out, i64 m, i64 n, i64 k) {
  gemm_mma<f16, GemmMmaLarge>(a, k, b, out, m, n, k, [=](i64 r, i64 c, float v) { return v + bias.read(c) + residual.read(r * n + c); });
}
TARE_WIDE_KERNEL(128) gemm_large_bf16_gelu(global<const bf16> a, global<const bf16> b, global<const float> bias, global<bf16> out, i64 m, i64 n, i64 k) {
  gemm_mma<bf16, GemmMmaLarge>(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return gelu_tanh(v + bias.read(c)); });
}
TARE_WIDE_KERNEL(128) gemm_large_f16_weights_f32(global<const f16> a, global<const float> b, global<const float> bias, global<f16> out, i64 m, i64 n, i64 k) {
  gemm_mma<f16, GemmMmaLarge>(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return v + bias.read(c); });
}
TARE_WIDE_KERNEL(128) gemm_large_f16_from_f32(global<const float> a, global<const float> b, global<const float> bias, global<float> out, i64 m, i64 n, i64 k) {
  gemm_mma<f16, GemmMmaLarge>(a, k, b, out, m, n, k, [=](i64, i64 c, float v) { return gelu_erf(v + bias.read(c)); });
}

} // namespace tare
