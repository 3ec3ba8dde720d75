// The random numbers of the checks: SplitMix64 for integers, Box-Muller on our own log and cos for normal ones. In: a seed and a stream number. Out: the
// same sequence on every machine. Nothing here is for cryptography.
#pragma once
#include "compiler/reference/Math.h"

namespace tare::checks {

class Random {
public:
  Random(uint64_t seed, uint64_t stream) : state(seed * 0x9E3779B97F4A7C15u ^ (stream + 1) * 0xD1B54A32D192ED03u) { next(); }
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// In [0, bound).
  int64_t below(int64_t bound) { return bound > 0 ? static_cast<int64_t>(next() % static_cast<uint64_t>(bound)) : 0; }
  /// In (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11) + 1) * 0x1p-53; }
  double normal() {
    double radius = std::sqrt(-2 * reference::math::log(uniform()));
    return radius * reference::math::cos(6.283185307179586477 * uniform());
  }

private:
  uint64_t state;
};

} // namespace tare::checks
