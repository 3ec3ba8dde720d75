// Dense form of fidelity checks (spec 6). In: graph.fidelity_check without anchors. Out: matmul, sub, mul, reduce, sqrt, less, cast, matmul: for every token
// d_k = ||W_k h - p_k||, b_k = d_k < tau_k, sum_k b_k E_k. Must hold: the comparison is on d itself, not on its square.
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_EXPANDFIDELITYCHECKSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;
using tare::Dim;
using tare::Dims;

namespace {

void expand(FidelityCheckOp check) {
  OpBuilder b(check);
  Location loc = check.getLoc();
  Type element = getElementTypeOrSelf(check.getH());
  Dims w = dimsOf(check.getW()), tokens = dimsOf(check.getH());
  Dim heads = w[0], rank = w[1], width = tokens.pop_back_val();
  auto with = [&](std::initializer_list<Dim> last) {
    Dims dims = tokens;
    dims.append(last);
    return dims;
  };
  auto widened = check.getW().getDefiningOp<CastOp>(); // a weight in half precision stays one: the cast comes last
  Value source = widened ? widened.getX() : check.getW();
  auto flat = b.create<ReshapeOp>(loc, tensorType(getElementTypeOrSelf(source), {heads * rank, width}), source);
  Value turned = b.create<TransposeOp>(loc, tensorType(getElementTypeOrSelf(source), {width, heads * rank}), flat, ArrayRef<int64_t>{1, 0});
  if (widened) turned = b.create<CastOp>(loc, tensorType(element, {width, heads * rank}), turned);
  auto z = b.create<MatmulOp>(loc, tensorType(element, with({heads * rank})), check.getH(), turned);
  auto perHead = b.create<ReshapeOp>(loc, tensorType(element, with({heads, rank})), z);
  auto difference = b.create<BinaryOp>(loc, perHead.getType(), BinaryKind::Sub, perHead, check.getP());
  auto square = b.create<BinaryOp>(loc, perHead.getType(), BinaryKind::Mul, difference, difference);
  int64_t last = static_cast<int64_t>(tokens.size()) + 1;
  auto sum = b.create<ReduceOp>(loc, tensorType(element, with({heads})), ReduceKind::Sum, square, ArrayRef<int64_t>{last}, false, false);
  auto distance = b.create<UnaryOp>(loc, sum.getType(), UnaryKind::Sqrt, sum);
  auto bits = b.create<BinaryOp>(loc, tensorType(b.getI1Type(), with({heads})), BinaryKind::Lt, distance, check.getTau());
  auto asFloat = b.create<CastOp>(loc, tensorType(getElementTypeOrSelf(check.getE()), with({heads})), bits);
  auto result = b.create<MatmulOp>(loc, check.getType(), asFloat, check.getE());
  for (Operation *made = flat; made != check; made = made->getNextNode()) made->setDiscardableAttrs(check->getDiscardableAttrDictionary());
  tare::replaceBy(check, result.getResult());
}

struct ExpandFidelityChecksPass : tare::impl::ExpandFidelityChecksPassBase<ExpandFidelityChecksPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    for (auto check : llvm::make_early_inc_range(body->getOps<FidelityCheckOp>())) {
      if (check.getAnchors()) continue; // sparse: part of a GEMM's kernel
      expand(check);
      check.erase();
    }
  }
};

} // namespace
