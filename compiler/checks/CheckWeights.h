// The weights of a fidelity check (spec 6) as numbers, and as the integers that stand for them. Plain data: no MLIR. Who chooses the integers is
// CheckQuantizer.h; how they get into the graph is QuantizedCheck.h; natural order everywhere, the kernel's order is made by compiler/codegen/cpu.
#pragma once
#include <cstdint>
#include <vector>

namespace tare::checks {

/// Row-major: w [heads][rank][width], p [heads][rank], tau [heads], e [heads][columns].
struct CheckWeights {
  int64_t heads = 0, rank = 0, width = 0, columns = 0;
  std::vector<float> w, p, tau, e;
};

/// w[k][r][d] is about q[k][r][d] * scale[k][r][d / group]. `bits` 4: q in [-8, 7]; 8: q in [-127, 127]. q [heads][rank][width], scale
/// [heads][rank][ceil(width / group)]. A scale may be negative: its sign lets the largest element of a group have the code that has no counterpart.
struct QuantizedCheck {
  int64_t bits = 4, group = 32;
  std::vector<int8_t> q;
  std::vector<float> scale;
};

} // namespace tare::checks
