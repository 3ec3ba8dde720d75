// Fidelity checks that exporters wrote out (spec 6). In: clean ops. Out: graph.fidelity_check with W [K,R,D], p [K,R], tau [K], E [K,F]; what turns the constants
// into that form are ordinary ops, folded later. Must hold: no inner value has another reader; d is compared with < (or > from the other side) only, so
// that a NaN distance gives 0 in both forms. K and R are read off p's shape.
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_RECOGNISEFIDELITYCHECKSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;
using tare::Dim;
using tare::Dims;

namespace {

/// Made from constants alone, none overridable: through casts, reshapes and transposes.
bool isConstant(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<ConstantOp>(op)) return static_cast<bool>(constantOf(value));
    if (!isa<CastOp, ReshapeOp, TransposeOp>(op)) return false;
    value = op->getOperand(0);
  }
  return false;
}

Dims withoutOnes(Value value) {
  Dims dims = dimsOf(value);
  llvm::erase_if(dims, [](const Dim &d) { return d.isConstant(1); });
  return dims;
}

/// Behind reshapes that only add or remove dims of size 1.
Value behindSqueeze(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>()) {
    if (!value.hasOneUse() || withoutOnes(view.getX()) != withoutOnes(value)) break;
    value = view.getX();
  }
  return value;
}

struct Form {
  Value h, wt, p, tau, e; ///< wt [D, K*R]
  bool squared = false;   ///< tau is compared with d^2
  Dim heads, rank;
};

/// d or d^2 from z: sqrt(sum(z*z)), reduce L2, with the square root left out where `squared`.
Value differenceOf(Value distance, Form &form) {
  distance = behindSqueeze(distance);
  form.squared = true;
  if (Value inner = tare::unaryOf(distance, UnaryKind::Sqrt); inner && distance.hasOneUse()) {
    form.squared = false;
    distance = behindSqueeze(inner);
  }
  auto reduce = distance.getDefiningOp<ReduceOp>();
  if (!reduce || !distance.hasOneUse() || reduce.getAxes().size() != 1 || reduce.getAxes()[0] != static_cast<int64_t>(dimsOf(reduce.getX()).size()) - 1) return {};
  Value x = reduce.getX();
  if (reduce.getKind() == ReduceKind::SumSquare) return x;
  if (reduce.getKind() == ReduceKind::L2 && form.squared) {
    form.squared = false;
    return x;
  }
  if (reduce.getKind() != ReduceKind::Sum) return {};
  if (!x.hasOneUse()) return {};
  if (auto product = tare::binaryOf(x, BinaryKind::Mul); product && product->first == product->second) return product->first;
  if (auto power = tare::binaryOf(x, BinaryKind::Pow); power && tare::oneElement(power->second) == 2.0) return power->first;
  return {};
}

std::optional<Form> formOf(MatmulOp last) {
  Form form;
  form.e = last.getRhs();
  Value bits = last.getLhs();
  while (auto cast = bits.getDefiningOp<CastOp>()) {
    if (!bits.hasOneUse()) return std::nullopt;
    bits = cast.getX();
  }
  auto compare = bits.getDefiningOp<BinaryOp>();
  if (!compare || !bits.hasOneUse() || (compare.getKind() != BinaryKind::Lt && compare.getKind() != BinaryKind::Gt) || !isConstant(form.e) || dimsOf(form.e).size() != 2)
    return std::nullopt;
  bool less = compare.getKind() == BinaryKind::Lt;
  Value distance = less ? compare.getLhs() : compare.getRhs();
  form.tau = less ? compare.getRhs() : compare.getLhs();
  Value z = differenceOf(distance, form);
  auto difference = z ? tare::binaryOf(z, BinaryKind::Sub) : std::nullopt;
  if (!difference || !isConstant(form.tau)) return std::nullopt;
  if (llvm::any_of(z.getUsers(), [&](Operation *user) { return user != *z.user_begin(); })) return std::nullopt;
  form.p = isConstant(difference->second) ? difference->second : difference->first;
  Value y = form.p == difference->second ? difference->first : difference->second;
  Dims p = dimsOf(form.p);
  if (!isConstant(form.p) || p.size() < 2 || !llvm::all_of(ArrayRef<Dim>(p).drop_back(2), [](const Dim &d) { return d.isConstant(1); })) return std::nullopt;
  form.heads = p[p.size() - 2], form.rank = p.back();
  auto view = y.getDefiningOp<ReshapeOp>();
  Value flat = view ? Value(view.getX()) : y;
  auto product = flat.getDefiningOp<MatmulOp>();
  if (!product || !y.hasOneUse() || !flat.hasOneUse() || !isConstant(product.getRhs()) || dimsOf(product.getRhs()).size() != 2) return std::nullopt;
  form.h = product.getLhs(), form.wt = product.getRhs();
  Dims tokens = dimsOf(form.h), expected = tokens, tau = withoutOnes(form.tau), e = dimsOf(form.e), wt = dimsOf(form.wt);
  Dim width = tokens.back();
  expected.back() = form.heads, expected.push_back(form.rank);
  Dims one = form.heads.isConstant(1) ? Dims() : Dims{form.heads};
  bool fits = dimsOf(y) == expected && wt[0] == width && wt[1] == form.heads * form.rank && tau == one && e[0] == form.heads;
  return fits ? std::optional(form) : std::nullopt;
}

struct RecogniseFidelityChecksPass : tare::impl::RecogniseFidelityChecksPassBase<RecogniseFidelityChecksPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    for (auto matmul : llvm::make_early_inc_range(body->getOps<MatmulOp>()))
      if (auto form = formOf(matmul)) replace(matmul, *form);
    tare::eraseDeadOps(*body);
  }

  void replace(MatmulOp last, const Form &form) {
    OpBuilder b(last);
    Location loc = last.getLoc();
    Type element = getElementTypeOrSelf(form.h);
    auto shaped = [&](Value value, const Dims &dims) { return dimsOf(value) == dims ? value : b.create<ReshapeOp>(loc, tensorType(getElementTypeOrSelf(value), dims), value).getResult(); };
    Dim width = dimsOf(form.h).back(), rows = form.heads * form.rank;
    auto turn = form.wt.getDefiningOp<TransposeOp>();
    Value flat = turn && turn.getPerm() == ArrayRef<int64_t>{1, 0} ? Value(turn.getX())
                                                                     : b.create<TransposeOp>(loc, tensorType(element, {rows, width}), form.wt, ArrayRef<int64_t>{1, 0}).getResult();
    Value w = shaped(flat, {form.heads, form.rank, width}), p = shaped(form.p, {form.heads, form.rank}), tau = shaped(form.tau, {form.heads});
    if (form.squared) tau = b.create<UnaryOp>(loc, tau.getType(), UnaryKind::Sqrt, tau);
    auto check = b.create<FidelityCheckOp>(loc, last.getType(), form.h, w, p, tau, form.e);
    check->setDiscardableAttrs(last->getDiscardableAttrDictionary());
    tare::replaceBy(last, check.getResult());
  }
};

} // namespace
