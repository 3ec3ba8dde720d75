// The FMA peak of this core, measured beside every kernel so that a share of it means something on a noisy machine. Out: GFLOP/s of independent register FMAs
// at the widest vectors the CPU has; `wide` tells whether the kernels under test use 512-bit vectors.
#pragma once
#include <benchmark/benchmark.h>
#include <algorithm>
#include <time.h>

double measurePeak(bool wide, int runs = 40);
/// Whether this binary's kernels are those of an AVX-512 level (by its name, bench-kernels-<level>).
bool wideKernels();

/// Seconds of this thread on a core: time that other processes took does not count.
inline double threadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Runs `once` until the benchmark has enough; counters: the best run's GFLOP/s and its share of the best peak seen in between. The best and
/// not the mean: other work on the machine can only make a run slower.
template <typename F> void measure(benchmark::State &state, double flops, F once) {
  double peak = measurePeak(wideKernels()), best = 1e9;
  int64_t count = 0;
  for (auto _ : state) {
    if (count++ % 8 == 0) peak = std::max(peak, measurePeak(wideKernels(), 2));
    const double begin = threadSeconds();
    once();
    const double seconds = threadSeconds() - begin;
    best = seconds < best ? seconds : best;
    benchmark::ClobberMemory();
  }
  peak = std::max(peak, measurePeak(wideKernels()));
  state.counters["best_us"] = best * 1e6;
  state.counters["GFLOPS"] = flops / best / 1e9;
  state.counters["peak_share"] = flops / best / 1e9 / peak;
}
