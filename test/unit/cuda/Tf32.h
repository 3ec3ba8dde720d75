// TF32 by its definition, in double: what tests hold the bits of kernels/cuda to. In: a finite f32. Out: the nearest number with 11 significant bits, the one of larger
// magnitude when two are equally near (PTX: cvt.rna); at f32's smallest exponent the last place is 2^-136.
#pragma once
#include <algorithm>
#include <cmath>

namespace tare::test {

/// An operand type of references, beside float, f16 and bf16.
struct Tf32 {};

inline double tf32Of(float x) {
  int exponent = 0;
  std::frexp(x, &exponent); // |x| in [2^(exponent - 1), 2^exponent)
  const double place = std::ldexp(1.0, std::max(exponent - 11, -136));
  return std::round(x / place) * place; // std::round: halves away from zero
}

} // namespace tare::test
