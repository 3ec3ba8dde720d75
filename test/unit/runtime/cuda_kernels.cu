// The three steps of test/unit/runtime/code.c as CUDA kernels, for the fake driver. The second step is two launches, as a plan may have it. One block per batch element.
#include "test/support/fakecuda/HostKernels.h"

namespace tare {

// t = x * w[0]; x == -777 is slow, for tests of cancellation.
TARE_KERNEL(128) scale(global<const float> x, global<const float> w, global<float> t, i64 batch, i64 sequence) {
  const i64 b = block_index_x();
  for (i64 s = thread_index(); s < sequence; s += 128) {
    if (x.read(b * sequence + s) == -777.0f)
      for (volatile i64 slow = 0; slow < 300000000; ++slow) {}
    t.write(b * sequence + s, x.read(b * sequence + s) * w.read(0));
  }
}
// new_cache = concat(cache, ...): the old part, when it is not in place.
TARE_KERNEL(128) keep(global<const float> cache, global<float> out, i64 past, i64 capacityIn, i64 capacityOut) {
  if (cache.pointer == out.pointer) return;
  const i64 b = block_index_x();
  for (i64 i = thread_index(); i < past * 4; i += 128) out.write(b * capacityOut * 4 + i, cache.read(b * capacityIn * 4 + i));
}
// ... and the new rows.
TARE_KERNEL(128) append(global<const float> t, global<const float> w, global<float> out, i64 sequence, i64 past, i64 capacityOut) {
  const i64 b = block_index_x();
  for (i64 i = thread_index(); i < sequence * 4; i += 128) out.write((b * capacityOut + past) * 4 + i, t.read(b * sequence + i / 4) * w.read(i % 4));
}
// y[s] = sum of new_cache[p][0] over p <= past + s where the mask is set; x == -999 is a fault.
TARE_KERNEL(128) sum(global<const float> x, global<const i64> mask, global<const float> cache, global<float> y, i64 sequence, i64 past, i64 capacityOut, global<i64> fault, i64 step) {
  if (thread_index() != 0) return;
  const i64 b = block_index_x();
  float total = 0;
  for (i64 p = 0; p < past + sequence; ++p) {
    if (mask.read(b * (past + sequence) + p)) total += cache.read((b * capacityOut + p) * 4);
    if (p < past) continue;
    if (x.read(b * sequence + p - past) == -999.0f) fault.write(0, step + 1);
    y.write(b * sequence + p - past, total);
  }
}
// What a fidelity check gets, in both forms: adds 1000 to t at rows that the anchors say are evaluated, 3000 at those that are listed. Without anchors all are.
TARE_KERNEL(128) windows(CheckRun given, ListedRun listed, global<float> t, i64 batch, i64 sequence) {
  const i64 b = block_index_x();
  for (i64 s = thread_index(); s < sequence; s += 128) {
    const i64 row = b * sequence + s;
    t.write(row, t.read(row) + (given.dense() || in_window<2>(given, row) ? 1000.0f : 0.0f) + (listed.dense() || in_window<2>(listed, row) ? 3000.0f : 0.0f));
  }
  if (thread_index() == 0) given.last.write(b, listed.carried.read(b) + 1);
}

} // namespace tare

TARE_HOST_KERNELS(TARE_HOST(scale), TARE_HOST(keep), TARE_HOST(append), TARE_HOST(sum), TARE_HOST(windows));
