/* Machine code for the runtime's tests, written by hand against runtime/code_abi.h: three steps over dims and buffers as support/TestEngine.h lays them
 * out. x [B,S] f32, mask [B,P+S] i64, cache [B,P,4] f32 -> y [B,S] f32, new_cache [B,P+S,4] f32; weights w [4] f32.
 * step 0: t = x * w[0]; step 1: new_cache = concat(cache, t * w, axis 1); step 2: y[b,s] = sum over p <= P+s of mask[b,p] * new_cache[b,p,0].
 * x == -999 is a fault in step 2; x == -777 makes step 0 slow, for tests of cancellation. */
#include "runtime/code_abi.h"

enum { B, S, P, CIN, COUT };
enum { X, MASK, CACHE, Y, NEW, W, T, SCRATCH };

static void scale(const tare_code_args *a, int64_t thread) {
  int64_t n = a->dims[B] * a->dims[S];
  const float *x = a->buffers[X], *w = a->buffers[W];
  float *t = a->buffers[T];
  for (int64_t i = thread; i < n; i += a->thread_count) {
    if (x[i] == -777.0f)
      for (volatile int64_t slow = 0; slow < 300000000; ++slow) {}
    t[i] = x[i] * w[0];
  }
}

static void append(const tare_code_args *a, int64_t thread) {
  const float *cache = a->buffers[CACHE], *w = a->buffers[W], *t = a->buffers[T];
  float *out = a->buffers[NEW];
  for (int64_t b = thread; b < a->dims[B]; b += a->thread_count) {
    if (cache != out)
      for (int64_t p = 0; p < a->dims[P]; ++p)
        for (int64_t k = 0; k < 4; ++k) out[(b * a->dims[COUT] + p) * 4 + k] = cache[(b * a->dims[CIN] + p) * 4 + k];
    for (int64_t s = 0; s < a->dims[S]; ++s)
      for (int64_t k = 0; k < 4; ++k) out[(b * a->dims[COUT] + a->dims[P] + s) * 4 + k] = t[b * a->dims[S] + s] * w[k];
  }
}

static void sum(const tare_code_args *a, int64_t thread) {
  const float *x = a->buffers[X], *cache = a->buffers[NEW];
  const int64_t *mask = a->buffers[MASK];
  float *y = a->buffers[Y], *scratch = (float *)((char *)a->buffers[SCRATCH] + 64 * thread);
  for (int64_t b = thread; b < a->dims[B]; b += a->thread_count) {
    scratch[0] = 0;
    for (int64_t p = 0; p < a->dims[P] + a->dims[S]; ++p) {
      if (mask[b * (a->dims[P] + a->dims[S]) + p]) scratch[0] += cache[(b * a->dims[COUT] + p) * 4];
      int64_t s = p - a->dims[P];
      if (s < 0) continue;
      if (x[b * a->dims[S] + s] == -999.0f) a->fault[thread] = 3;
      y[b * a->dims[S] + s] = scratch[0];
    }
  }
}

__attribute__((section(".text.entry"))) int64_t tare_entry(const tare_code_args *a, int64_t thread) {
  for (int64_t step = 0; step < 3; ++step) {
    if (a->skip[step]) continue;
    if (a->stamp && thread == 0) a->stamp(a->stamp_state, step);
    if (step == 0) scale(a, thread);
    if (step == 1) append(a, thread);
    if (step == 2) sum(a, thread);
    if (a->barrier(a->pool, thread)) return 1;
  }
  if (a->stamp && thread == 0) a->stamp(a->stamp_state, 3);
  return 0;
}
