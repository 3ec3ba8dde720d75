// Shape arithmetic leaves the graph. In: small integer ops over symbolic sizes. Out: dims_constant where the content is symbolic, plain constants where
// it is a number. Must hold: a size that only a run knows stays symbolic, it is never frozen (B29); integer division is exact or rounds as ONNX does.
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_FOLDSHAPESPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;
using tare::Dim;
using tare::Dims;

namespace {

constexpr int64_t kLargest = 64;

bool isSmallInteger(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getRank() <= 1 && tensor.getNumElements() <= kLargest &&
         (tensor.getElementType().isSignlessInteger(64) || tensor.getElementType().isSignlessInteger(32));
}

struct FoldShapesPass : tare::impl::FoldShapesPassBase<FoldShapesPass> {
  llvm::DenseMap<Value, Dims> contents;

  const Dims *contentOf(Value value) {
    auto found = contents.find(value);
    return found == contents.end() ? nullptr : &found->second;
  }

  void runOnOperation() override {
    contents.clear();
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    OpBuilder builder(&getContext());
    for (Operation &op : body->without_terminator()) {
      if (op.getNumResults() != 1 || !isSmallInteger(op.getResult(0).getType())) continue;
      auto content = evaluate(&op);
      if (!content || static_cast<int64_t>(content->size()) != cast<RankedTensorType>(op.getResult(0).getType()).getNumElements()) continue;
      contents[op.getResult(0)] = *content;
      bool isNumber = llvm::all_of(*content, [](const Dim &d) { return d.constant().has_value(); });
      if (isa<ConstantOp>(op) || (isa<DimsConstantOp>(op) && !isNumber)) continue;
      builder.setInsertionPoint(&op);
      Value folded = isNumber ? number(builder, &op, *content) : builder.create<DimsConstantOp>(op.getLoc(), op.getResult(0).getType(), DimsAttr::get(&getContext(), *content));
      if (!folded) continue;
      contents[folded] = *content;
      tare::replaceBy(&op, folded);
    }
    tare::eraseDeadOps(*body);
  }

  Value number(OpBuilder &builder, Operation *op, const Dims &content) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<Attribute> values;
    for (auto &d : content) values.push_back(builder.getIntegerAttr(type.getElementType(), *d.constant()));
    return builder.create<ConstantOp>(op->getLoc(), type, builder.getStringAttr(""), DenseElementsAttr::get(type, values), UnitAttr());
  }

  std::optional<Dims> evaluate(Operation *op) {
    if (auto dims = dyn_cast<DimsConstantOp>(op)) return dims.getContent().dims();
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (constant.getOverridable() || !dense) return std::nullopt;
      Dims result;
      for (const APInt &value : dense.getValues<APInt>()) result.push_back(value.getSExtValue());
      return result;
    }
    SmallVector<const Dims *> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(contentOf(operand));
      if (!operands.back()) return std::nullopt;
    }
    if (operands.empty()) return std::nullopt;
    if (isa<ReshapeOp>(op)) return *operands[0];
    if (auto cast = dyn_cast<CastOp>(op)) return isSmallInteger(cast.getX().getType()) && getElementTypeOrSelf(cast).isInteger(64) ? std::optional(*operands[0]) : std::nullopt;
    if (isa<ConcatOp>(op)) {
      Dims all;
      for (auto *part : operands) all.append(*part);
      return all;
    }
    if (auto gather = dyn_cast<GatherOp>(op)) return select(*operands[0], *operands[1]);
    if (auto slice = dyn_cast<SliceOp>(op)) {
      auto start = slice.getStarts().dims()[0].constant();
      if (!start) return std::nullopt;
      Dims indices;
      for (int64_t i = 0; i < cast<RankedTensorType>(slice.getType()).getDimSize(0); ++i) indices.push_back(*start + i * slice.getSteps()[0]);
      return select(*operands[0], indices);
    }
    if (auto binary = dyn_cast<BinaryOp>(op)) return combine(binary.getKind(), *operands[0], *operands[1]);
    return std::nullopt;
  }

  static std::optional<Dims> select(const Dims &from, const Dims &indices) {
    Dims result;
    for (auto &index : indices) {
      auto i = index.constant();
      if (i && *i < 0) *i += static_cast<int64_t>(from.size());
      if (!i || *i < 0 || *i >= static_cast<int64_t>(from.size())) return std::nullopt;
      result.push_back(from[*i]);
    }
    return result;
  }

  static std::optional<Dims> combine(BinaryKind kind, const Dims &a, const Dims &b) {
    Dims result;
    if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return std::nullopt;
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      auto d = combine(kind, a.size() == 1 ? a[0] : a[i], b.size() == 1 ? b[0] : b[i]);
      if (!d) return std::nullopt;
      result.push_back(*d);
    }
    return result;
  }

  static bool isSize(const Dim &d) { return !d.constant() || (*d.constant() < (int64_t(1) << 31) && *d.constant() > -(int64_t(1) << 31)); }

  static std::optional<Dim> combine(BinaryKind kind, const Dim &a, const Dim &b) {
    if (!isSize(a) || !isSize(b)) return std::nullopt; // numbers that may wrap are the constant folder's business
    switch (kind) {
    case BinaryKind::Add: return a + b;
    case BinaryKind::Sub: return a - b;
    case BinaryKind::Mul: return a * b;
    case BinaryKind::Min: return Dim::min(a, b);
    case BinaryKind::Max: return Dim::max(a, b);
    case BinaryKind::Div: // ONNX truncates: the same as floor when neither side is negative
      if (auto exact = b.isConstant(0) ? std::nullopt : a.dividedBy(b)) return exact;
      return a.provablyNonNegative() && b.provablyPositive() && b.constant() ? std::optional(Dim::floorDiv(a, b)) : std::nullopt;
    case BinaryKind::Mod: return b.constant() && *b.constant() > 0 ? std::optional(Dim::mod(a, b)) : std::nullopt;
    default: return std::nullopt;
    }
  }
};

} // namespace
