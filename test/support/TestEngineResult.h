// What the machine code of test/unit/runtime/code.c must give, computed by its definition. In: x and the past. Out: y. Separate from TestEngine.h so that the
// ThreadSanitizer build of the threads test needs no part of the compiler.
#pragma once
#include <cstddef>
#include <vector>

namespace tare::test {

/// What code.c computes, by definition: y and new_cache for x [B,S] after a past of earlier x [B,P], mask of ones.
inline std::vector<float> expectedY(const std::vector<float> &x, const std::vector<float> &past, size_t batch) {
  size_t s = x.size() / batch, p = past.size() / batch;
  std::vector<float> y(x.size());
  for (size_t b = 0; b < batch; ++b) {
    float sum = 0;
    for (size_t i = 0; i < p; ++i) sum += past[b * p + i] * 2 * 2;
    for (size_t i = 0; i < s; ++i) y[b * s + i] = sum += x[b * s + i] * 2 * 2;
  }
  return y;
}

} // namespace tare::test
