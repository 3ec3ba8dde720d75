// Recognises normalisations that exporters write out. In: ReduceMean, Sub, Pow, Sqrt, Div or Reciprocal, Mul, Add over the last dims. Out: layer_norm
// and rms_norm. Must hold: the axes are the last dims of x, epsilon is a constant, scale and bias broadcast to those dims alone.
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_FUSENORMSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;

namespace {

/// The mean over the last dims with keepdims: what is averaged, and the first of these dims.
struct Mean { Value x; int64_t axis; };
std::optional<Mean> meanOf(Value value) {
  auto op = value.getDefiningOp<ReduceOp>();
  if (!op || op.getKind() != ReduceKind::Mean || !op.getKeepdims() || op.getAxes().empty()) return std::nullopt;
  int64_t rank = cast<RankedTensorType>(op.getX().getType()).getRank(), first = op.getAxes().front();
  if (first + static_cast<int64_t>(op.getAxes().size()) != rank || op.getAxes().back() != rank - 1) return std::nullopt;
  return Mean{op.getX(), first};
}

/// z when `value` is z*z or pow(z, 2).
Value squareOf(Value value) {
  if (auto mul = tare::binaryOf(value, BinaryKind::Mul); mul && mul->first == mul->second) return mul->first;
  auto pow = tare::binaryOf(value, BinaryKind::Pow);
  return pow && tare::oneElement(pow->second) == 2.0 ? pow->first : Value();
}

/// value = sqrt(mean(z^2) + epsilon), or its reciprocal.
struct Root { Value z; int64_t axis; double epsilon; };
std::optional<Root> rootOf(Value radicand) {
  double epsilon = 0;
  if (auto sum = tare::binaryOf(radicand, BinaryKind::Add)) {
    auto right = tare::oneElement(sum->second), left = tare::oneElement(sum->first);
    if (!right && !left) return std::nullopt;
    epsilon = right ? *right : *left;
    radicand = right ? sum->first : sum->second;
  }
  auto mean = meanOf(radicand);
  Value z = mean ? squareOf(mean->x) : Value();
  if (!z) return std::nullopt;
  return Root{z, mean->axis, epsilon};
}

std::optional<Root> reciprocalRoot(Value value) {
  if (Value radicand = tare::unaryOf(value, UnaryKind::Rsqrt)) return rootOf(radicand);
  Value root = tare::unaryOf(value, UnaryKind::Reciprocal);
  if (auto division = tare::binaryOf(value, BinaryKind::Div); division && tare::oneElement(division->first) == 1.0) root = division->second;
  Value radicand = root ? tare::unaryOf(root, UnaryKind::Sqrt) : Value();
  return radicand ? rootOf(radicand) : std::nullopt;
}

/// value = z / sqrt(mean(z^2) + epsilon) in any of its spellings.
std::optional<Root> normalised(BinaryOp op) {
  std::optional<Root> root;
  if (op.getKind() == BinaryKind::Div) {
    Value radicand = tare::unaryOf(op.getRhs(), UnaryKind::Sqrt);
    root = radicand ? rootOf(radicand) : std::nullopt;
    return root && root->z == op.getLhs() ? root : std::nullopt;
  }
  if (op.getKind() != BinaryKind::Mul) return std::nullopt;
  root = reciprocalRoot(op.getRhs());
  if (root && root->z == op.getLhs()) return root;
  root = reciprocalRoot(op.getLhs());
  return root && root->z == op.getRhs() ? root : std::nullopt;
}

/// A float tensor that varies over dims [axis, rank) only, so that it can be a norm's scale or bias.
bool isParameter(Value value, const tare::Dims &dims, int64_t axis) {
  auto own = dimsOf(value);
  if (own.size() > dims.size()) return false;
  for (size_t i = 0; i < own.size(); ++i) {
    size_t at = dims.size() - own.size() + i;
    if (!own[i].isConstant(1) && (static_cast<int64_t>(at) < axis || own[i] != dims[at])) return false;
  }
  return true;
}

/// The other operand of the only use of `value`, when that is a binary op of `kind` that keeps the type.
std::pair<BinaryOp, Value> onlyUse(Value value, BinaryKind kind) {
  if (!value.hasOneUse()) return {};
  auto user = dyn_cast<BinaryOp>(*value.getUsers().begin());
  if (!user || user.getKind() != kind || user.getType() != value.getType()) return {};
  return {user, user.getLhs() == value ? user.getRhs() : user.getLhs()};
}

struct FuseNormsPass : tare::impl::FuseNormsPassBase<FuseNormsPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    for (Operation &op : *body)
      if (auto binary = dyn_cast<BinaryOp>(op); binary && !op.use_empty())
        if (auto root = normalised(binary); root && root->z.getType() == binary.getType() && cast<RankedTensorType>(binary.getType()).getElementType().isF32()) fuse(binary, *root);
    tare::eraseDeadOps(*body);
  }

  void fuse(BinaryOp last, Root root) {
    Value x = root.z;
    bool centred = false;
    if (auto difference = tare::binaryOf(root.z, BinaryKind::Sub)) {
      auto mean = meanOf(difference->second);
      centred = mean && mean->x == difference->first && mean->axis == root.axis && difference->first.getType() == root.z.getType();
      if (centred) x = difference->first;
    }
    auto dims = dimsOf(x);
    auto [scaling, scale] = onlyUse(last.getResult(), BinaryKind::Mul);
    if (scale && !isParameter(scale, dims, root.axis)) scaling = {}, scale = {};
    auto [shifting, bias] = scaling && centred ? onlyUse(scaling.getResult(), BinaryKind::Add) : std::pair<BinaryOp, Value>();
    if (bias && !isParameter(bias, dims, root.axis)) shifting = {}, bias = {};
    if (scaling) last = scaling;
    if (shifting) last = shifting;
    OpBuilder builder(last);
    if (!scale) {
      SmallVector<tare::Dim> inner(dims.begin() + root.axis, dims.end());
      auto type = tensorType(builder.getF32Type(), inner);
      if (!type.hasStaticShape()) return;
      scale = tare::makeSplat(builder, last.getLoc(), type, 1);
    }
    auto axis = builder.getI64IntegerAttr(root.axis);
    auto epsilon = builder.getF64FloatAttr(root.epsilon);
    Operation *norm = centred ? builder.create<LayerNormOp>(last.getLoc(), last.getType(), x, scale, bias, axis, epsilon).getOperation()
                              : builder.create<RmsNormOp>(last.getLoc(), last.getType(), x, scale, axis, epsilon).getOperation();
    norm->setDiscardableAttrs(last->getDiscardableAttrDictionary());
    tare::replaceBy(last, norm->getResult(0));
  }
};

} // namespace
