// Integers for the weights of a fidelity check (spec 6). In: W and the hidden states of calibration tokens. Out: codes with one scale per group of 32
// columns. Holds: pure C++ in float64 with a fixed summation order, so equal inputs give equal bytes on every CPU and with any number of threads.
#pragma once
#include "compiler/checks/CheckWeights.h"

namespace tare::checks {

/// Second moment of hidden states, summed in the order in which tokens are added.
class StateMoments {
public:
  explicit StateMoments(int64_t width);
  /// `tokens` rows of `width` values; rows with a value that is not finite are left out.
  void add(const double *states, int64_t tokens);
  int64_t tokens() const { return count; }
  /// sum h h^T / tokens, row-major [width, width]; zeros without tokens.
  std::vector<double> second() const;

private:
  int64_t width, count = 0;
  std::vector<double> products;
};

/// Minimises the sum over tokens of || (W - Wq) h ||^2: error feedback along the columns (LDLQ, Chee et al. 2023: the same rounding as GPTQ, Frantar et
/// al. 2022) with a scale search per group, then coordinate descent over codes and scales. One percent of the mean diagonal is added to the second
/// moment, so few or equal tokens are no special case. `bits` is 4 or 8. All of W must be finite.
QuantizedCheck quantizeCheck(const CheckWeights &weights, const StateMoments &moments, int64_t bits, unsigned threads);

/// row-major [heads * rank, width], exactly q * scale.
std::vector<double> dequantized(const QuantizedCheck &check, int64_t width);

} // namespace tare::checks
