// Fused attention at encoder shapes (batch 1): sequence x heads x head dim, without bias. Counters of the best run: GFLOP/s of the two products, share of the FMA peak.
#include "kernels/cpu/kernels.h"
#include "peak.h"
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <vector>

namespace {

void attention(benchmark::State &state) {
  const int64_t s = state.range(0), h = state.range(1), d = state.range(2);
  std::vector<float> q(s * h * d, 0.1f), k(q), v(q), out(q.size());
  for (size_t i = 0; i < k.size(); ++i) k[i] = float(i % 17) / 17, v[i] = float(i % 11) / 11;
  tare_attention args = {q.data(), k.data(), v.data(), out.data(), 1, h, h, s, s, d, d, {s * h * d, d, h * d}, {s * h * d, d, h * d}, {s * h * d, d, h * d}, {s * h * d, d, h * d}, 0.2, 0};
  void *scratch = aligned_alloc(64, (TARE_ATTENTION_SCRATCH(d, d) + 63) / 64 * 64);
  measure(state, 4.0 * s * s * h * d, [&] { tare_attention_f32(&args, nullptr, nullptr, 0, 1, scratch); });
  free(scratch);
}
BENCHMARK(attention)->ArgNames({"S", "H", "D"})->Args({8, 12, 32})->Args({32, 12, 32})->Args({128, 12, 32})->Args({512, 12, 32})->Args({128, 12, 64})->Args({512, 12, 64})->Args({2048, 8, 16})->Unit(benchmark::kMicrosecond);

} // namespace
