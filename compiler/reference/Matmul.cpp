// NumPy matmul (1-D operands, batch broadcasting) and its VJP.
// Every product runs over k in ascending order (Gemm.h); batches of a broadcast operand add up in row-major order.
#include "compiler/reference/Gemm.h"
#include "compiler/reference/Walk.h"

namespace tare::reference {
namespace {

/// The operands as batches of matrices: lhs [.., m, k], rhs [.., k, n]. Leading dims of lhs fold into m when rhs has no batch.
struct Product {
  int64_t m, n, k;
  Shape batch, lhsStrides, rhsStrides; ///< strides in matrices
};

Product productOf(const Shape &lhsShape, const Shape &rhsShape) {
  Shape lhs = lhsShape, rhs = rhsShape;
  if (lhs.size() == 1) lhs.insert(lhs.begin(), 1);
  if (rhs.size() == 1) rhs.push_back(1);
  Product p{lhs[lhs.size() - 2], rhs.back(), lhs.back(), {}, {}, {}};
  Shape lhsBatch(lhs.begin(), lhs.end() - 2), rhsBatch(rhs.begin(), rhs.end() - 2);
  if (rhsBatch.empty()) {
    for (int64_t d : lhsBatch) p.m *= d;
    lhsBatch.clear();
  }
  p.batch.assign(std::max(lhsBatch.size(), rhsBatch.size()), 1);
  for (const Shape *side : {&lhsBatch, &rhsBatch})
    for (size_t i = 0; i < side->size(); ++i)
      if ((*side)[i] != 1) p.batch[p.batch.size() - side->size() + i] = (*side)[i];
  p.lhsStrides = broadcastStrides(lhsBatch, p.batch);
  p.rhsStrides = broadcastStrides(rhsBatch, p.batch);
  return p;
}

std::vector<double> transposed(const double *x, int64_t rows, int64_t columns) {
  std::vector<double> t(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) t[j * rows + i] = x[i * columns + j];
  return t;
}

/// fn(matrix number of lhs, of rhs, of the result).
template <typename Fn> void eachProduct(const Product &p, Fn fn) {
  int64_t i = 0;
  walk<2>(p.batch, {p.lhsStrides, p.rhsStrides}, [&](auto &at) { fn(at[0], at[1], i++); });
}

Tensor integerMatmul(const Call &call, const Product &p) {
  const Tensor &a = call.operand(0), &b = call.operand(1);
  Tensor y = call.result();
  auto type = llvm::cast<mlir::IntegerType>(y.element);
  eachProduct(p, [&](int64_t l, int64_t r, int64_t o) {
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        uint64_t sum = 0;
        for (int64_t k = 0; k < p.k; ++k)
          sum += static_cast<uint64_t>(a.ints[l * p.m * p.k + i * p.k + k]) * static_cast<uint64_t>(b.ints[r * p.k * p.n + k * p.n + j]);
        y.ints[o * p.m * p.n + i * p.n + j] = wrapTo(type, static_cast<int64_t>(sum));
      }
  });
  return y;
}

} // namespace

llvm::Expected<Tensor> matmul(const Call &call) {
  const Tensor &a = call.operand(0), &b = call.operand(1);
  Product p = productOf(a.shape, b.shape);
  if (!a.isFloat()) return integerMatmul(call, p);
  Tensor y = call.result();
  eachProduct(p, [&](int64_t l, int64_t r, int64_t o) {
    gemmAccumulate(p.m, p.n, p.k, a.floats.data() + l * p.m * p.k, p.k, 1, b.floats.data() + r * p.k * p.n, p.n, y.floats.data() + o * p.m * p.n, p.n);
  });
  return y;
}

Cotangents matmulVjp(const VjpCall &call) {
  Cotangents result(2);
  const Tensor &a = call.operand(0), &b = call.operand(1), &g = call.cotangent;
  if (!a.isFloat()) return result;
  Product p = productOf(a.shape, b.shape);
  for (int side = 0; side < 2; ++side)
    if (call.wanted[side]) result[side] = Tensor::zeros(call.operand(side).element, call.operand(side).shape);
  std::vector<double> rhs;
  int64_t rhsOf = -1;
  eachProduct(p, [&](int64_t l, int64_t r, int64_t o) {
    const double *cotangent = g.floats.data() + o * p.m * p.n, *lhs = a.floats.data() + l * p.m * p.k;
    if (call.wanted[0]) { // dA = g B^T
      if (rhsOf != r) rhs = transposed(b.floats.data() + r * p.k * p.n, p.k, p.n), rhsOf = r;
      gemmAccumulate(p.m, p.k, p.n, cotangent, p.n, 1, rhs.data(), p.k, result[0].floats.data() + l * p.m * p.k, p.k);
    }
    if (call.wanted[1]) // dB = A^T g
      gemmAccumulate(p.k, p.n, p.m, lhs, 1, p.k, cotangent, p.n, result[1].floats.data() + r * p.k * p.n, p.n);
  });
  return result;
}

} // namespace tare::reference
