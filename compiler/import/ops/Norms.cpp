// Softmax, LogSoftmax, LayerNormalization, RMSNormalization, and the FidelityCheck of domain tare.
#include "compiler/import/ops/Ops.h"

using namespace mlir;

namespace tare::ops {

static void softmaxOf(NodeImport &n, bool log) {
  bool flattens = n.version < 13; // older versions normalise over all dims from axis on
  int64_t rank = n.rank(0);
  if (rank == 0 && !flattens) return n.fail("needs at least one dimension");
  int64_t axis = n.axis(n.integer("axis", flattens ? 1 : -1), rank, /*inclusive=*/flattens);
  if (n.failed()) return;
  auto type = cast<RankedTensorType>(n.in(0).getType());
  if (!flattens || axis == rank - 1) return n.out(0, n.emit<graph::SoftmaxOp>(type, n.in(0), axis, log));
  ArrayRef<Dim> dims = n.dims(0);
  Value flat = n.reshape(n.in(0), {elementCount(dims.take_front(axis)), elementCount(dims.drop_front(axis))});
  n.out(0, n.reshape(n.emit<graph::SoftmaxOp>(cast<RankedTensorType>(flat.getType()), flat, int64_t(1), log), dims));
}

void softmax(NodeImport &n) { softmaxOf(n, false); }
void logSoftmax(NodeImport &n) { softmaxOf(n, true); }

/// Scale and bias must broadcast to the normalised dims and not beyond.
static void checkParameter(NodeImport &n, unsigned i, StringRef what) {
  if (!n.in(i)) return;
  if (n.element(i) != n.element(0)) return n.fail(what.str() + " has another element type than the input: " + typeName(n.element(i)) + " and " + typeName(n.element(0)));
  if (n.rank(i) > n.rank(0) || !(n.broadcast(n.dims(0), n.dims(i)) == n.dims(0))) n.fail(what.str() + " " + text(n.dims(i)) + " does not broadcast to the input " + text(n.dims(0)));
}

/// The outputs Mean and InvStdDev of LayerNormalization, in f32 (stash_type 1), computed beside the normalisation itself.
static void statistics(NodeImport &n, int64_t axis, double epsilon) {
  using K = graph::BinaryKind;
  SmallVector<int64_t> axes;
  Dims dims = n.dims(0);
  for (int64_t i = axis; i < n.rank(0); ++i) axes.push_back(i), dims[i] = 1;
  Type f32 = n.g.builder.getF32Type();
  Value x = n.cast(n.in(0), f32);
  auto mean = [&](Value v) { return n.emit<graph::ReduceOp>(n.type(f32, dims), graph::ReduceKind::Mean, v, axes, true, /*last_index=*/false); };
  Value average = mean(x), centred = n.binary(K::Sub, x, average);
  Value variance = mean(n.binary(K::Mul, centred, centred));
  n.out(1, average);
  if (n.wanted(2)) n.out(2, n.unary(graph::UnaryKind::Reciprocal, n.unary(graph::UnaryKind::Sqrt, n.binary(K::Add, variance, n.scalar(f32, epsilon)))));
}

void layerNorm(NodeImport &n) {
  int64_t axis = n.axis(n.integer("axis", -1), n.rank(0));
  double epsilon = n.real("epsilon", 1e-5f);
  int64_t stash = n.integer("stash_type", 1);
  if (stash != 1) return n.fail("attribute 'stash_type' = " + std::to_string(stash) + " is not supported (1 is: arithmetic in f32)");
  checkParameter(n, 1, "scale");
  checkParameter(n, 2, "bias");
  if (n.failed()) return;
  if (n.wanted(1) || n.wanted(2)) statistics(n, axis, epsilon);
  n.out(0, n.emit<graph::LayerNormOp>(cast<RankedTensorType>(n.in(0).getType()), n.in(0), n.in(1), n.in(2), axis, llvm::APFloat(epsilon)));
}

void rmsNorm(NodeImport &n) {
  int64_t axis = n.axis(n.integer("axis", -1), n.rank(0));
  double epsilon = n.real("epsilon", 1e-5f);
  int64_t stash = n.integer("stash_type", 1);
  if (stash != 1) return n.fail("attribute 'stash_type' = " + std::to_string(stash) + " is not supported (1 is: arithmetic in f32)");
  checkParameter(n, 1, "scale");
  if (n.failed()) return;
  n.out(0, n.emit<graph::RmsNormOp>(cast<RankedTensorType>(n.in(0).getType()), n.in(0), n.in(1), axis, llvm::APFloat(epsilon)));
}

void fidelityCheck(NodeImport &n) {
  struct Shape { const char *name; size_t rank; } shapes[] = {{"W", 3}, {"p", 2}, {"tau", 1}, {"E", 2}};
  for (unsigned i = 1; i < 5; ++i)
    if (n.dims(i).size() != shapes[i - 1].rank) return n.fail(std::string(shapes[i - 1].name) + " must have rank " + std::to_string(shapes[i - 1].rank) + ", got " + text(n.dims(i)));
  for (unsigned i = 1; i < 5; ++i)
    if (n.element(i) != n.element(0)) return n.fail("operands have different element types");
  ArrayRef<Dim> h = n.dims(0), w = n.dims(1), p = n.dims(2), tau = n.dims(3), e = n.dims(4);
  bool fits = !h.empty() && h.back() == w[2] && w[0] == p[0] && w[1] == p[1] && w[0] == tau[0] && w[0] == e[0];
  if (!fits) return n.fail("shapes do not fit: h " + text(h) + ", W " + text(w) + ", p " + text(p) + ", tau " + text(tau) + ", E " + text(e));
  Dims dims(h.drop_back());
  dims.push_back(e[1]);
  n.out(0, n.emit<graph::FidelityCheckOp>(n.type(n.element(4), dims), n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)));
}

} // namespace tare::ops
