// C += A * B in double with a fixed order: every element of C is the sum over k in ascending order, one rounded product and one rounded addition
// at a time, so the result does not depend on blocking, vector width or CPU (only columns are vectorised; -ffp-contract=off).
#pragma once
#include <cstdint>

namespace tare::reference {
/// A is [m,k] with row and column strides, B [k,n] row-major (leading dimension ldb), C [m,n] row-major (ldc). Element counts, not bytes.
void gemmAccumulate(int64_t m, int64_t n, int64_t k, const double *a, int64_t rowStride, int64_t columnStride, const double *b, int64_t ldb,
                    double *c, int64_t ldc);
} // namespace tare::reference
