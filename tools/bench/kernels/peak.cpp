// 20 independent FMA chains in registers; the best of many short runs (peak.h). The counted work is fixed, so an interrupted run only reads lower.
#include "peak.h"
#include <cstring>
#include <errno.h>

namespace {
typedef float V8 __attribute__((vector_size(32)));
typedef float V16 __attribute__((vector_size(64)));

// A macro because the target attribute does not reach into templates.
#define TARE_RUN(NAME, TARGET, V, CHAINS)                                                                              \
  __attribute__((target(TARGET))) double NAME(int steps) {                                                             \
    V sums[CHAINS] = {}, x = {}, y = {};                                                                               \
    const double begin = threadSeconds();                                                                              \
    for (int i = 0; i < steps; ++i)                                                                                    \
      _Pragma("clang loop unroll(full)") for (int j = 0; j < CHAINS; ++j)                                              \
        __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(sums[j]) : "v"(x), "v"(y));                                   \
    const double seconds = threadSeconds() - begin;                                                                    \
    return 2.0 * steps * CHAINS * (sizeof(V) / 4) / seconds / 1e9;                                                     \
  }
TARE_RUN(run512, "avx512f", V16, 20)
TARE_RUN(run256, "avx,fma", V8, 12)
} // namespace

double measurePeak(bool wide, int runs) {
  double best = 0;
  for (int i = 0; i < runs; ++i) {
    const double now = wide ? run512(5000) : run256(10000);
    best = now > best ? now : best;
  }
  return best;
}

bool wideKernels() { return __builtin_cpu_supports("x86-64-v4") && strstr(program_invocation_name, "v4"); }
