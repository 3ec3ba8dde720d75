// Ops whose operands are constants become constants. In: ops of main. Out: constants; what stays because of --fold-limit is listed in the module attribute
// `graph.not_folded` (node, bytes, why). Must hold: overridable constants are never folded; the result is rounded to its element type; weights keep
// their storage type (a widening cast of a big one stays); growth counts net of what disappears (B92).
#include "compiler/graph/Checked.h"
#include "compiler/reference/Evaluator.h"
#include "passes/FoldBytes.h"
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_FOLDCONSTANTSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;

namespace {

/// Vectors (biases, scales) up to this length and tensors up to 64 elements are decoded at compile time; matrices stay as stored.
constexpr int64_t kDecodedVector = 1 << 14, kDecodedTensor = 64;

/// Bytes of operands that folding decodes at most; each element becomes a float64 for the while.
constexpr uint64_t kMostRead = uint64_t(256) << 20;

bool staysAsStored(RankedTensorType type) {
  auto wide = llvm::count_if(type.getShape(), [](int64_t d) { return d != 1; });
  return type.getNumElements() > (wide <= 1 ? kDecodedVector : kDecodedTensor);
}

uint64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto count = tare::checkedProduct(tensor.getShape());
  unsigned bits = tensor.getElementType().isInteger(1) ? 8 : tensor.getElementType().getIntOrFloatBitWidth();
  auto total = count ? tare::checkedMul(*count, bits) : std::nullopt;
  return total ? *total / 8 : UINT64_MAX;
}

struct FoldConstantsPass : tare::impl::FoldConstantsPassBase<FoldConstantsPass> {
  using FoldConstantsPassBase::FoldConstantsPassBase;

  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    OpBuilder builder(&getContext());
    SmallVector<Attribute> kept;
    for (Operation &op : llvm::make_early_inc_range(body->without_terminator())) {
      if (!isCandidate(&op)) continue;
      std::string why = reasonToKeep(&op);
      if (!why.empty()) {
        kept.push_back(builder.getDictionaryAttr({builder.getNamedAttr("node", builder.getStringAttr(nodeName(op.getLoc()))),
                                                  builder.getNamedAttr("bytes", builder.getI64IntegerAttr(static_cast<int64_t>(bytesOf(op.getResult(0).getType())))),
                                                  builder.getNamedAttr("why", builder.getStringAttr(why))}));
        continue;
      }
      builder.setInsertionPoint(&op);
      if (Value folded = fold(&op, builder)) {
        tare::replaceBy(&op, folded);
        dropOperands(&op);
      }
    }
    tare::eraseDeadOps(*body);
    if (!kept.empty()) getOperation()->setAttr("graph.not_folded", builder.getArrayAttr(kept));
  }

  /// Erases the folded op and those of its constants that nothing else uses, so that later folds count the net growth.
  static void dropOperands(Operation *op) {
    SmallVector<Operation *> constants;
    for (Value operand : op->getOperands()) constants.push_back(operand.getDefiningOp());
    op->erase();
    llvm::SmallPtrSet<Operation *, 4> seen;
    for (Operation *constant : constants)
      if (seen.insert(constant).second && constant->use_empty()) constant->erase();
  }

  static bool isCandidate(Operation *op) {
    if (isa<ConstantOp, LayerOp, GroupOp>(op) || op->getNumResults() != 1 || op->getNumRegions() || op->use_empty()) return false;
    if (!tare::reference::hasReference(op->getName())) return false;
    if (!cast<RankedTensorType>(op->getResult(0).getType()).hasStaticShape()) return false;
    if (!llvm::all_of(op->getOperands(), [](Value v) { return static_cast<bool>(constantOf(v)); })) return false;
    // Ops with symbolic attributes have a value only when a run binds the symbols.
    return llvm::all_of(op->getAttrs(), [](NamedAttribute attribute) {
      auto dims = dyn_cast<DimsAttr>(attribute.getValue());
      return !dims || llvm::all_of(dims.dims(), [](const tare::Dim &d) { return d.constant().has_value(); });
    });
  }

  std::string reasonToKeep(Operation *op) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t elements = type.getNumElements();
    if ((isa<DequantizeOp>(op) || isWidening(op)) && staysAsStored(type)) return "weights keep their storage type";
    if (op->getNumOperands() == 0 && elements > 64) return "a computed tensor is smaller as an op than as data";
    // Whatever feeds a matmul is packed anyway: transposing it costs nothing in the engine.
    if (isa<TransposeOp, ReshapeOp>(op) && llvm::all_of(op->getUsers(), [](Operation *user) { return isa<MatmulOp, TransposeOp, ReshapeOp>(user); })) return "";
    uint64_t made = bytesOf(op->getResult(0).getType()), gone = 0;
    llvm::SmallPtrSet<Operation *, 4> seen;
    for (Value operand : op->getOperands())
      if (seen.insert(operand.getDefiningOp()).second && llvm::all_of(operand.getUsers(), [&](Operation *user) { return user == op; })) gone += bytesOf(operand.getType());
    uint64_t read = 0;
    for (Value operand : op->getOperands()) read += bytesOf(operand.getType());
    if (read > kMostRead && !isa<TransposeOp, ReshapeOp>(op)) return "its operands are too large to evaluate at compile time";
    if (made <= gone || made - gone <= limit) return "";
    return "would add " + std::to_string(made - gone) + " bytes, more than --fold-limit " + std::to_string(limit);
  }

  static bool isWidening(Operation *op) {
    auto cast = dyn_cast<CastOp>(op);
    return cast && isa<FloatType>(getElementTypeOrSelf(cast.getX())) && bytesOf(cast.getX().getType()) < bytesOf(cast.getType());
  }

  static Value fold(Operation *op, OpBuilder &builder) {
    if (Value moved = tare::foldBytes(op, builder)) return moved;
    SmallVector<tare::reference::Tensor> operands;
    SmallVector<const tare::reference::Tensor *> pointers;
    for (Value operand : op->getOperands()) operands.push_back(tare::reference::decode(constantOf(operand).getValue()));
    for (auto &operand : operands) pointers.push_back(&operand);
    auto results = tare::reference::evaluateOp(op, pointers, {});
    if (!results) {
      // An op that has no value for these operands (an index out of range) stays and fails in the run as it would have.
      llvm::consumeError(results.takeError());
      return {};
    }
    tare::reference::Tensor &result = results->front();
    tare::reference::roundToElementType(result);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (ArrayRef<int64_t>(result.shape) != type.getShape()) return {};
    ElementsAttr value = tare::reference::encode(result);
    auto dense = dyn_cast<DenseElementsAttr>(value);
    StringRef name = isa<CastOp>(op) ? constantOf(op->getOperand(0)).getName() : "";
    if (dense && !dense.isSplat()) return tare::makeConstant(builder, op->getLoc(), name, type, dense.getRawData());
    return builder.create<ConstantOp>(op->getLoc(), type, builder.getStringAttr(name), value, UnitAttr());
  }
};

} // namespace
