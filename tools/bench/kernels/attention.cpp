// Fused attention (batch 1): sequence x heads x head dim, without bias at encoder shapes, with a causal one at decoder shapes. Counters of the best run: GFLOP/s of the two products, share of the FMA peak.
#include "kernels/cpu/kernels.h"
#include "peak.h"
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <vector>

namespace {

/// As generated code has it: a select between 0 and -inf by position.
void causal(void *, float *row, int64_t, int64_t, int64_t q, int64_t t0, int64_t count) {
  for (int64_t i = 0; i < count; ++i) row[i] = t0 + i <= q ? 0.0f : -__builtin_inff();
}

void attention(benchmark::State &state) {
  const int64_t s = state.range(0), h = state.range(1), d = state.range(2);
  const tare_bias_row bias = state.range(3) ? causal : nullptr;
  std::vector<float> q(s * h * d, 0.1f), k(q), v(q), out(q.size());
  for (size_t i = 0; i < k.size(); ++i) k[i] = float(i % 17) / 17, v[i] = float(i % 11) / 11;
  tare_attention args = {q.data(), k.data(), v.data(), out.data(), 1, h, h, s, s, d, d, {s * h * d, d, h * d}, {s * h * d, d, h * d}, {s * h * d, d, h * d}, {s * h * d, d, h * d}, 0.2, 0};
  void *scratch = aligned_alloc(64, (TARE_ATTENTION_SCRATCH(d, d) + 63) / 64 * 64);
  measure(state, (bias ? 2.0 : 4.0) * s * s * h * d, [&] { tare_attention_f32(&args, bias, nullptr, 0, 1, scratch); });
  free(scratch);
}
BENCHMARK(attention)->ArgNames({"S", "H", "D", "causal"})->Args({8, 12, 32, 0})->Args({32, 12, 32, 0})->Args({128, 12, 32, 0})->Args({512, 12, 32, 0})
    ->Args({128, 12, 64, 0})->Args({512, 12, 64, 0})->Args({2048, 8, 16, 0})->Args({128, 4, 32, 1})->Args({2000, 4, 32, 1})->Unit(benchmark::kMicrosecond);

} // namespace
