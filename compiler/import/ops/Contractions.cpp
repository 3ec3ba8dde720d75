// MatMul and Gemm.
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {

/// The dims of a NumPy matmul; constraints where the inner dims are not known to agree.
static Value emitMatmul(NodeImport &n, Value a, Value b) {
  Dims x = graph::dimsOf(a), y = graph::dimsOf(b);
  if (x.empty() || y.empty()) {
    n.fail("operands must have at least one dimension: " + text(x) + " and " + text(y));
    return {};
  }
  const Dim &k = x.back(), &inner = y.size() == 1 ? y[0] : y[y.size() - 2];
  if (!(k == inner)) {
    if (k.constant() && inner.constant()) {
      n.fail("shapes " + text(x) + " and " + text(y) + " do not match: inner dimensions " + k.str() + " and " +
             inner.str());
      return {};
    }
    n.g.require("equal", k, inner,
                "node '" + graph::nodeName(n.location) + "' (" + n.proto.op_type() + ", tensor '" + n.proto.output(0) +
                    "'): " + k.str() + " must be equal to " + inner.str());
  }
  ArrayRef<Dim> batchX = ArrayRef<Dim>(x).drop_back(std::min<size_t>(x.size(), 2)),
                batchY = ArrayRef<Dim>(y).drop_back(std::min<size_t>(y.size(), 2));
  Dims dims = n.broadcast(batchX, batchY, /*strict=*/true);
  if (n.failed()) return {};
  if (x.size() > 1) dims.push_back(x[x.size() - 2]);
  if (y.size() > 1) dims.push_back(y.back());
  return n.emit<graph::MatmulOp>(n.type(cast<RankedTensorType>(a.getType()).getElementType(), dims), a, b);
}

void matmul(NodeImport &n) {
  if (n.element(0) != n.element(1))
    return n.fail("operands have different element types: " + typeName(n.element(0)) + " and " +
                  typeName(n.element(1)));
  if (Value result = emitMatmul(n, n.in(0), n.in(1))) n.out(0, result);
}

void gemm(NodeImport &n) {
  using K = graph::BinaryKind;
  double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  bool flip[2] = {n.integer("transA", 0) != 0, n.integer("transB", 0) != 0};
  if (n.failed()) return;
  Value operands[2];
  for (unsigned i = 0; i < 2; ++i) {
    if (n.rank(i) != 2) return n.fail("operands must be matrices, got " + text(n.dims(i)));
    if (n.element(i) != n.element(0)) return n.fail("operands have different element types");
    operands[i] = n.in(i);
    if (!flip[i]) continue;
    operands[i] = n.emit<graph::TransposeOp>(n.type(n.element(i), {n.dims(i)[1], n.dims(i)[0]}), n.in(i),
                                             ArrayRef<int64_t>{1, 0});
  }
  Value result = emitMatmul(n, operands[0], operands[1]);
  if (!result) return;
  if (alpha != 1) result = n.binary(K::Mul, result, n.scalar(n.element(0), alpha));
  if (n.in(2) && beta != 0) {
    Value c = beta == 1 ? n.in(2) : n.binary(K::Mul, n.in(2), n.scalar(n.element(0), beta));
    Dims shape = graph::dimsOf(result);
    if (n.rank(2) > 2) return n.fail("C " + text(n.dims(2)) + " must broadcast to " + text(shape));
    result = n.binary(K::Add, result, c);
    if (!n.failed() && !(graph::dimsOf(result) == shape))
      return n.fail("C " + text(n.dims(2)) + " must broadcast to " + text(shape));
  }
  n.out(0, result);
}

} // namespace tare::ops
