// The program of tools/gpu-check.sh: launches the kernels that test/unit/cuda runs on the emulator, on a GPU, and compares with sums in double on the host. In: nothing. Out: a table,
// exit 1 when a result is wrong. Times are medians of 20 launches after 3, by events; no file is written. It uses the CUDA runtime; the product itself does not.
#include "test/unit/cuda/attention_kernels.cuh"
#include "test/unit/cuda/check_kernels.cuh"
#include "test/unit/cuda/gemm_kernels.cuh"
#include "test/unit/cuda/row_kernels.cuh"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <random>
#include <vector>

namespace tare { // no using-directive: the CUDA runtime's headers follow this file and call ::sin

static void must(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "gpu-check: %s: %s\n", what, cudaGetErrorString(status));
  exit(5);
}

/// Host values and their copy on the device.
template <class T> struct Device {
  std::vector<T> host;
  T *pointer = nullptr;
  explicit Device(size_t count) : host(count) { must(cudaMalloc(&pointer, count * sizeof(T) + 16), "memory"); }
  ~Device() { cudaFree(pointer); }
  Device(const Device &) = delete;
  void up() { must(cudaMemcpy(pointer, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy"); }
  void down() { must(cudaMemcpy(host.data(), pointer, host.size() * sizeof(T), cudaMemcpyDeviceToHost), "copy"); }
  operator global<const T>() const { return {pointer}; }
  operator global<T>() const { return {pointer}; }
};

static std::mt19937 generator(20260401);
static float normal() { return std::normal_distribution<float>(0, 1)(generator); }

// Half precision on the host: the kernels' conversions are device code.
static u16 halfBits(float x) {
  u32 b;
  memcpy(&b, &x, 4);
  const u32 sign = b >> 16 & 0x8000, rest = b & 0x7fffffff;
  if (rest < 0x38800000) return static_cast<u16>(sign); // small ones to zero: test data only
  const u32 rounded = rest + 0xfff + (rest >> 13 & 1);
  return static_cast<u16>(sign | ((rounded >> 13) - 0x1c000));
}
static float halfValue(u16 h) { return h & 0x7fff ? std::ldexp((h & 0x8000 ? -1.0f : 1.0f) * (1024 + (h & 1023)), (h >> 10 & 31) - 25) : 0.0f; }

static int wrong = 0;

/// Launches, times, and prints a line; `error` is the largest difference that the caller found after the first launch.
template <class Launch, class Check> static void measure(const char *name, const char *shape, double flops, double bytes, double tolerance, Launch launch, Check check) {
  launch();
  must(cudaGetLastError(), name);
  must(cudaDeviceSynchronize(), name);
  const double error = check();
  std::vector<float> times;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  for (int i = 0; i < 23; ++i) {
    cudaEventRecord(begin);
    launch();
    cudaEventRecord(end);
    must(cudaEventSynchronize(end), name);
    float ms;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 3) times.push_back(ms);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  const double us = times[times.size() / 2] * 1e3;
  const bool good = error <= tolerance;
  wrong += !good;
  printf("%-24s %-28s %10.3g %s %10.1f us %8.2f TFLOP/s %8.1f GB/s\n", name, shape, error, good ? "ok   " : "WRONG", us, flops / us * 1e-6, bytes / us * 1e-3);
}

template <class Kernel> static void allowShared(Kernel kernel, u32 bytes) { must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), "shared memory"); }

enum class Operands { F32, TF32, F16 };

/// Values have 11 significant bits, so that every form computes the same products.
static void gemm(i64 m, i64 n, i64 k, Operands operands) {
  Device<float> a(m * k), b((n + 31) / 32 * k * 32), bias(n), residual(m * n), out(m * n);
  Device<f16> ha(m * k), hb((n + 31) / 32 * k * 32);
  for (float &x : a.host) x = halfValue(halfBits(normal()));
  for (float &x : bias.host) x = normal();
  for (float &x : residual.host) x = normal();
  for (i64 c = 0; c < n; ++c)
    for (i64 r = 0; r < k; ++r) b.host[(c / 32 * k + r) * 32 + c % 32] = halfValue(halfBits(normal() / std::sqrt(static_cast<float>(k))));
  for (size_t i = 0; i < a.host.size(); ++i) ha.host[i] = {halfBits(a.host[i])};
  for (size_t i = 0; i < b.host.size(); ++i) hb.host[i] = {halfBits(b.host[i])};
  a.up(), b.up(), bias.up(), residual.up(), ha.up(), hb.up();
  const dim3 grid((n + 63) / 64, (m + 63) / 64), largeGrid((n + 127) / 128, (m + 127) / 128);
  const u32 shared = GemmF32::kSharedBytes<float>, sharedTf32 = GemmTf32::kSharedBytes<float>;
  auto check = [&] {
    out.down();
    double worst = 0;
    for (i64 r = 0; r < m; r += 7)
      for (i64 c = 0; c < n; c += 5) {
        double sum = bias.host[c] + (operands == Operands::F16 ? residual.host[r * n + c] : 0.0f);
        for (i64 i = 0; i < k; ++i) sum += static_cast<double>(a.host[r * k + i]) * b.host[(c / 32 * k + i) * 32 + c % 32];
        worst = std::max(worst, std::fabs(sum - out.host[r * n + c]));
      }
    return worst;
  };
  char shape[64];
  snprintf(shape, sizeof shape, "%lld x %lld x %lld", m, n, k);
  const double flops = 2.0 * m * n * k, halfBytes = 2.0 * (m * k + n * k) + 8.0 * m * n;
  if (operands == Operands::F16) {
    measure("gemm_mma_f16_residual", shape, flops, halfBytes, 1e-3, [&] { gemm_mma_f16_residual<<<grid, 128, GemmMma::kSharedBytes>>>(ha, hb, bias, residual, out, m, n, k); }, check);
    measure("gemm_large_f16_residual", shape, flops, halfBytes, 1e-3, [&] { gemm_large_f16_residual<<<largeGrid, 128, GemmMmaLarge::kSharedBytes>>>(ha, hb, bias, residual, out, m, n, k); }, check);
  } else if (operands == Operands::TF32)
    measure("gemm_tf32_bias", shape, 2.0 * m * n * k, 4.0 * (m * k + n * k + m * n), 1e-3, [&] { gemm_tf32_bias<<<grid, 128, sharedTf32>>>(a, b, bias, out, m, n, k); }, check);
  else
    measure("gemm_f32_bias", shape, 2.0 * m * n * k, 4.0 * (m * k + n * k + m * n), 1e-4, [&] { gemm_f32_bias<<<grid, 128, shared>>>(a, b, bias, out, m, n, k); }, check);
}

static void attention(i64 batch, i64 heads, i64 length, bool causal) {
  constexpr i64 D = 64;
  const i64 count = batch * heads * length * D;
  Device<f16> q(count), k(count), v(count), out(count);
  Device<float> mask(batch * length);
  for (auto *t : {&q, &k, &v}) {
    for (f16 &x : t->host) x = {halfBits(normal())};
    t->up();
  }
  mask.up();
  const Strides s{heads * length * D, length * D, D};
  const Attention a{heads, heads, length, length, s, s, s, s, 0.125f, false};
  allowShared(attention_mma_f16_64, AttentionMma<64, f16, f16>::kSharedBytes);
  auto check = [&] {
    out.down();
    double worst = 0;
    for (i64 row : {i64(0), length / 2, length - 1}) {
      const i64 base = (batch - 1) * s.batch + (heads - 1) * s.head;
      std::vector<double> p(length);
      double most = -1e300, sum = 0;
      for (i64 t = 0; t < length; ++t) {
        double dot = 0;
        for (i64 d = 0; d < D; ++d) dot += static_cast<double>(halfValue(q.host[base + row * D + d].bits)) * halfValue(k.host[base + t * D + d].bits);
        p[t] = causal && t > row ? -1e300 : dot * 0.125;
        most = std::max(most, p[t]);
      }
      for (double &x : p) sum += x = x <= -1e299 ? 0 : std::exp(x - most);
      for (i64 d = 0; d < D; ++d) {
        double y = 0;
        for (i64 t = 0; t < length; ++t) y += p[t] / sum * halfValue(v.host[base + t * D + d].bits);
        worst = std::max(worst, std::fabs(y - halfValue(out.host[base + row * D + d].bits)));
      }
    }
    return worst;
  };
  char shape[64];
  snprintf(shape, sizeof shape, "B%lld H%lld S%lld D64%s", batch, heads, length, causal ? " causal" : "");
  measure("attention_mma_f16_64", shape, 4.0 * batch * heads * length * length * D / (causal ? 2 : 1), 8.0 * count, 4e-3,
          [&] { attention_mma_f16_64<<<dim3((length + 63) / 64, heads, batch), 128, AttentionMma<64, f16, f16>::kSharedBytes>>>(q, k, v, mask, out, a, causal); }, check);
}

static void norm(i64 rows, i64 columns) {
  Device<float> x(rows * columns), residual(rows * columns), scale(columns), bias(columns), sum(rows * columns), out(rows * columns);
  for (auto *t : {&x, &residual, &scale, &bias}) {
    for (float &v : t->host) v = normal();
    t->up();
  }
  auto check = [&] {
    out.down();
    double worst = 0;
    for (i64 r = 0; r < rows; r += 97) {
      double mean = 0, square = 0;
      auto value = [&](i64 j) { return static_cast<double>(x.host[r * columns + j]) + residual.host[r * columns + j]; };
      for (i64 j = 0; j < columns; ++j) mean += value(j) / columns;
      for (i64 j = 0; j < columns; ++j) square += (value(j) - mean) * (value(j) - mean) / columns;
      for (i64 j = 0; j < columns; ++j) worst = std::max(worst, std::fabs((value(j) - mean) / std::sqrt(square + 1e-5) * scale.host[j] + bias.host[j] - out.host[r * columns + j]));
    }
    return worst;
  };
  char shape[64];
  snprintf(shape, sizeof shape, "%lld x %lld", rows, columns);
  measure("residual_layer_norm", shape, 8.0 * rows * columns, 16.0 * rows * columns, 2e-5, [&] { residual_layer_norm<<<(rows + 3) / 4, 128>>>(x, residual, scale, bias, sum, out, rows, columns); }, check);
}

int check_all() {
  cudaDeviceProp device;
  must(cudaGetDeviceProperties(&device, 0), "no usable device");
  printf("%s, sm_%d%d, %d SMs\n%-24s %-28s %10s\n", device.name, device.major, device.minor, device.multiProcessorCount, "kernel", "shape", "error");
  for (auto [m, n, k] : {std::array<i64, 3>{128, 1536, 384}, {2048, 1536, 384}, {65, 97, 36}})
    for (Operands operands : {Operands::F32, Operands::TF32, Operands::F16}) gemm(m, n, k, operands);
  attention(8, 12, 512, true);
  attention(1, 8, 2048, false);
  norm(2048, 384);
  norm(4096, 1024);
  printf(wrong ? "%d kernels gave wrong results\n" : "all results are right\n", wrong);
  return wrong ? 1 : 0;
}

} // namespace tare

int main() { return tare::check_all(); }
