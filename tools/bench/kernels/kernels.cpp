// GEMM microkernels at the shapes of the targets (docs/performance.md): M x K x N, weights warm or streamed cold from a ring of copies. Counters of the best run: GFLOP/s, share of
// the FMA peak measured around the same benchmark, GB/s of weights. The hook stores the tile, as the plainest epilogue does.
#include "kernels/cpu/kernels.h"
#include "peak.h"
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

struct Output { float *c; int64_t n; };
void store(void *env, const float *tile, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  const auto *out = static_cast<Output *>(env);
  for (int64_t i = 0; i < rows; ++i) memcpy(out->c + (row + i) * out->n + col, tile + i * 32, cols * sizeof(float));
}

struct Free { void operator()(void *p) const { free(p); } };
template <typename T> std::unique_ptr<T, Free> allocate(size_t count) {
  auto *p = static_cast<T *>(aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64));
  for (size_t i = 0; i < count; ++i) p[i] = T(i % 13) / T(16);
  return std::unique_ptr<T, Free>(p);
}

void gemm(benchmark::State &state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2), copies = state.range(3) ? std::max<int64_t>(1, (64 << 20) / (k * n * 4)) : 1;
  auto a = allocate<float>(m * k), b = allocate<float>(copies * k * n), c = allocate<float>(m * n);
  Output out{c.get(), n};
  int64_t copy = 0;
  measure(state, 2.0 * m * k * n, [&] {
    tare_gemm_f32(a.get(), k, b.get() + copy * k * n, m, n, k, 0, 1, store, &out);
    copy = (copy + 1) % copies;
  });
  state.counters["weights_GBs"] = 4.0 * k * n / state.counters["best_us"] / 1e3;
}

void shapes(benchmark::internal::Benchmark *b) {
  b->ArgNames({"M", "K", "N", "cold"});
  for (int64_t cold : {0, 1})
    for (auto [k, n] : {std::pair<int64_t, int64_t>{384, 384}, {384, 1536}, {1536, 384}, {768, 768}, {768, 3072}, {3072, 768}})
      for (int64_t m : {1, 8, 32, 128, 512}) b->Args({m, k, n, cold});
}
BENCHMARK(gemm)->Apply(shapes)->Unit(benchmark::kMicrosecond)->MinTime(0.1);

} // namespace
