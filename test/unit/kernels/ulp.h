// Error in units of the last place for the math sweeps. In: a result and its exact value as long double; out: |difference| / ulp(exact), 0 when both are NaN
// or the same infinity, 1e9 when only one is.
#pragma once
#include <cmath>
#include <limits>

template <typename Float> double ulpError(Float actual, long double exact) {
  const Float rounded = static_cast<Float>(exact);
  if (std::isnan(rounded) || std::isnan(actual)) return std::isnan(rounded) && std::isnan(actual) ? 0 : 1e9;
  if (std::isinf(actual) && std::isinf(rounded)) return actual == rounded ? 0 : 1e9;
  if (std::isinf(actual) || std::isinf(rounded)) {
    // Next to the overflow threshold either side may round out: one step.
    const Float largest = std::numeric_limits<Float>::max(), finite = std::isinf(actual) ? rounded : actual;
    return std::abs(finite) > largest * Float(0.999999) ? 1 : 1e9;
  }
  const Float size = std::max(std::abs(rounded), std::numeric_limits<Float>::min());
  const long double ulp = std::nextafter(size, std::numeric_limits<Float>::infinity()) - size;
  return static_cast<double>(std::abs(static_cast<long double>(actual) - exact) / ulp);
}
