// GEMM templates on the emulator against sums in double: odd sizes, every storage type, epilogues. In: random matrices of a printed seed. The error that is
// allowed is that of f32 sums (and of the rounding of a to T, which the reference does too).
#include "test/unit/cuda/gemm_kernels.cuh"
#include "test/unit/cuda/Launch.h"
#include "test/unit/cuda/Tf32.h"
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tare;
using test::Buffer;
using test::run;

namespace {

double geluErf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double geluTanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double siluOf(double x) { return x / (1 + std::exp(-x)); }

/// [ceil(n/32)][k][32], zero padded (compiler/codegen/cpu/Packing.h).
template <class T> std::vector<T> panels(const std::vector<T> &b, i64 k, i64 n) {
  std::vector<T> packed((n + 31) / 32 * k * 32, from_float<T>(0));
  for (i64 r = 0; r < k; ++r)
    for (i64 c = 0; c < n; ++c) packed[(c / 32 * k + r) * 32 + c % 32] = b[r * n + c];
  return packed;
}

template <class T> std::vector<T> randomOf(size_t count, std::mt19937 &random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> v(count);
  for (T &x : v) x = from_float<T>(uniform(random));
  return v;
}

using Shapes = std::vector<std::array<i64, 3>>;
const Shapes small = {{1, 1, 1}, {1, 64, 16}, {3, 5, 7}, {64, 64, 32}, {65, 97, 36}, {33, 128, 129}, {130, 70, 64}, {17, 256, 100}, {128, 96, 0}};
// For tiles of 128 x 128: fewer slices than stages, edges inside each warp's part, several tiles.
const Shapes large = {{1, 1, 1}, {3, 5, 7}, {128, 128, 32}, {65, 97, 36}, {129, 130, 64}, {17, 256, 104}, {300, 257, 129}, {128, 96, 0}, {191, 384, 40}};

template <class T> double operandOf(float x) {
  if constexpr (std::is_same_v<T, test::Tf32>) return test::tf32Of(x);
  else return to_float(from_float<T>(x));
}

/// T: what both operands are rounded to; tiles are `tile` x `tile`. `pad` elements between the rows of a are NaN.
template <class A, class W, class Out, class T = float, class Kernel, class Finish>
void check(const char *name, Kernel kernel, Finish finish, u32 sharedBytes, double tolerance, bool counted = false, i64 pad = 0, const Shapes &shapes = small, i64 tile = 64) {
  for (auto [m, n, k] : shapes) {
    SCOPED_TRACE(testing::Message() << name << " m=" << m << " n=" << n << " k=" << k << " seed=" << test::seed());
    std::mt19937 random(static_cast<unsigned>(test::seed() + m * 1000 + n * 100 + k));
    auto a = randomOf<A>(m * (k + pad), random);
    for (i64 i = 0; i < m * (k + pad); ++i)
      if (i % (k + pad) >= k) a[i] = from_float<A>(NAN);
    auto b = randomOf<W>(k * n, random);
    auto bias = randomOf<float>(n, random), residual = randomOf<float>(m * n, random);
    Buffer<A> da(a, "a");
    Buffer<W> db(panels(b, k, n), "b");
    Buffer<float> dbias(bias, "bias"), dresidual(residual, "residual");
    Buffer<Out> out(m * n, "out");
    emu::Geometry g{{static_cast<u32>((n + tile - 1) / tile), static_cast<u32>((m + tile - 1) / tile), 1}, {128, 1, 1}, sharedBytes};
    bool count = counted && m == 17;
    auto o = run(name, g, [&, m = m, n = n, k = k] { kernel(da, db, dbias, dresidual, out, m, n, k); }, count);
    ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
    if (count) test::print(name, o);
    for (u32 l = 0; count && l < o.stats->lineCount; ++l) EXPECT_EQ(o.stats->lines[l].cycles, o.stats->lines[l].ideal) << "a bank is met twice: line " << o.stats->lines[l].site.line;
    for (i64 r = 0; r < m; ++r)
      for (i64 c = 0; c < n; ++c) {
        double sum = 0;
        for (i64 i = 0; i < k; ++i) sum += operandOf<T>(to_float(a[r * (k + pad) + i])) * operandOf<T>(to_float(b[i * n + c]));
        ASSERT_NEAR(to_float(out[r * n + c]), finish(sum + bias[c], residual[r * n + c]), tolerance) << r << "," << c;
      }
  }
}

TEST(CudaGemm, F32) {
  check<float, float, float>("gemm_f32_bias", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_f32_bias(a, b, bias, out, m, n, k); },
                             [](double v, double) { return v; }, GemmF32::kSharedBytes<float>, 2e-5, true);
}
TEST(CudaGemm, F32WithF16WeightsAndGelu) {
  check<float, f16, float>("gemm_f32_weights_f16_gelu",
                           [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_f32_weights_f16_gelu(a, b, bias, out, m, n, k); },
                           [](double v, double) { return geluErf(v); }, GemmF32::kSharedBytes<f16>, 2e-5);
}
TEST(CudaGemm, F32WithBF16WeightsAndSilu) {
  check<float, bf16, float>("gemm_f32_weights_bf16_silu",
                            [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_f32_weights_bf16_silu(a, b, bias, out, m, n, k); },
                            [](double v, double) { return siluOf(v); }, GemmF32::kSharedBytes<bf16>, 2e-5);
}
TEST(CudaGemm, TensorCoresF16WithResidual) {
  check<f16, f16, float>("gemm_mma_f16_residual",
                         [](auto &a, auto &b, auto &bias, auto &residual, auto &out, i64 m, i64 n, i64 k) { gemm_mma_f16_residual(a, b, bias, residual, out, m, n, k); },
                         [](double v, double r) { return v + r; }, GemmMma::kSharedBytes, 2e-5, true);
}
TEST(CudaGemm, TensorCoresBF16WithGelu) {
  check<bf16, bf16, bf16>("gemm_mma_bf16_gelu", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_mma_bf16_gelu(a, b, bias, out, m, n, k); },
                          [](double v, double) { return geluTanh(v); }, GemmMma::kSharedBytes, 0.08); // bf16 results: 8 bits, values up to 20
}
TEST(CudaGemm, TensorCoresRoundF32Activations) {
  check<float, f16, f16, f16>("gemm_mma_f16_rounding", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_mma_f16_rounding(a, b, bias, out, m, n, k); },
                         [](double v, double) { return v; }, GemmMma::kSharedBytes, 1e-2);
}
TEST(CudaGemm, TensorCoresRoundBothOperands) {
  check<float, float, float, f16>("gemm_mma_f16_from_f32", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_mma_f16_from_f32(a, b, bias, out, m, n, k); },
                                  [](double v, double) { return geluErf(v); }, GemmMma::kSharedBytes, 2e-5, true);
  check<f16, f16, float, bf16>("gemm_mma_bf16_from_f16", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_mma_bf16_from_f16(a, b, bias, out, m, n, k); },
                               [](double v, double) { return v; }, GemmMma::kSharedBytes, 2e-5);
}

TEST(CudaGemm, TensorCoresTf32) {
  check<float, float, float, test::Tf32>("gemm_tf32_bias", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_tf32_bias(a, b, bias, out, m, n, k); },
                                         [](double v, double) { return v; }, GemmTf32::kSharedBytes<float>, 2e-5, true);
}
TEST(CudaGemm, TensorCoresTf32WithF16WeightsAndRowsApart) { // rows of a start at multiples of 16 bytes where k does, and where it does not
  for (i64 pad : {4, 3})
    check<float, f16, f16, test::Tf32>("gemm_tf32_weights_f16_residual",
                                       [=](auto &a, auto &b, auto &bias, auto &residual, auto &out, i64 m, i64 n, i64 k) { gemm_tf32_weights_f16_residual(a, k + pad, b, bias, residual, out, m, n, k); },
                                       [](double v, double r) { return v + r; }, GemmTf32::kSharedBytes<f16>, 1e-2, pad == 4, pad); // f16 results: 11 bits, values up to 20
}
TEST(CudaGemm, TensorCoresTf32WithBF16Weights) {
  for (i64 pad : {0, 5})
    check<float, bf16, float, test::Tf32>("gemm_tf32_weights_bf16",
                                          [=](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_tf32_weights_bf16(a, k + pad, b, bias, out, m, n, k); },
                                          [](double v, double) { return v; }, GemmTf32::kSharedBytes<bf16>, 2e-5, false, pad);
}
TEST(CudaGemm, LargeTileF16WithResidual) {
  check<f16, f16, float>("gemm_large_f16_residual",
                         [](auto &a, auto &b, auto &bias, auto &residual, auto &out, i64 m, i64 n, i64 k) { gemm_large_f16_residual(a, b, bias, residual, out, m, n, k); },
                         [](double v, double r) { return v + r; }, GemmMmaLarge::kSharedBytes, 2e-5, true, 0, large, 128);
}
TEST(CudaGemm, LargeTileBF16WithGelu) {
  check<bf16, bf16, bf16>("gemm_large_bf16_gelu", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_large_bf16_gelu(a, b, bias, out, m, n, k); },
                          [](double v, double) { return geluTanh(v); }, GemmMmaLarge::kSharedBytes, 0.08, false, 0, large, 128);
}
TEST(CudaGemm, LargeTileRoundsWeights) {
  check<f16, float, f16, f16>("gemm_large_f16_weights_f32", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_large_f16_weights_f32(a, b, bias, out, m, n, k); },
                              [](double v, double) { return v; }, GemmMmaLarge::kSharedBytes, 1e-2, true, 0, large, 128);
}
TEST(CudaGemm, LargeTileRoundsBothOperands) {
  check<float, float, float, f16>("gemm_large_f16_from_f32", [](auto &a, auto &b, auto &bias, auto &, auto &out, i64 m, i64 n, i64 k) { gemm_large_f16_from_f32(a, b, bias, out, m, n, k); },
                                  [](double v, double) { return geluErf(v); }, GemmMmaLarge::kSharedBytes, 2e-5, true, 0, large, 128);
}
/// Every result is one sum of products in the order of k, whatever the tile: both tiles agree in every bit.
TEST(CudaGemm, TilesAgreeInEveryBit) {
  const i64 m = 150, n = 200, k = 136;
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  Buffer<f16> a(randomOf<f16>(m * k, random), "a"), b(panels(randomOf<f16>(k * n, random), k, n), "b");
  Buffer<float> bias(randomOf<float>(n, random), "bias"), residual(randomOf<float>(m * n, random), "residual"), one(m * n, "one"), other(m * n, "other");
  auto o = run("gemm_mma_f16_residual", {{4, 3, 1}, {128, 1, 1}, GemmMma::kSharedBytes}, [&] { gemm_mma_f16_residual(a, b, bias, residual, one, m, n, k); });
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  o = run("gemm_large_f16_residual", {{2, 2, 1}, {128, 1, 1}, GemmMmaLarge::kSharedBytes}, [&] { gemm_large_f16_residual(a, b, bias, residual, other, m, n, k); });
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  for (i64 i = 0; i < m * n; ++i) ASSERT_EQ(one[i], other[i]) << i;
}

} // namespace
