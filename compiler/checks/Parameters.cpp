// Finding a layer's parameters (Parameters.h). A constant of two or more floating-point elements counts wherever it reaches the layer. One element
// counts when its name lies under the layer's path or when it multiplies the whole branch (a gate, ReZero), and never when it is the 0.5 of a GELU.
#include "compiler/checks/Parameters.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using tare::graph::BinaryKind;

namespace tare::checks {

static bool isFloat(Value v) { return isa<FloatType>(cast<RankedTensorType>(v.getType()).getElementType()); }

bool isConstantOnly(Value value) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (!seen.insert(v).second) continue;
    Operation *op = v.getDefiningOp();
    if (!op || op->getNumRegions()) return false;
    if (op->getNumOperands() == 0 && !isa<graph::ConstantOp>(op)) {
      bool sized = cast<RankedTensorType>(v.getType()).hasStaticShape();
      if (!sized || isa<graph::DimsConstantOp, graph::RangeOp>(op)) return false;
    }
    work.append(op->operand_begin(), op->operand_end());
  }
  return true;
}

static bool isOneOf(Value v, std::initializer_list<graph::UnaryKind> kinds) {
  auto op = v.getDefiningOp<graph::UnaryOp>();
  return op && llvm::is_contained(kinds, op.getKind());
}

/// 1 + erf(..) or 1 + tanh(..), possibly already multiplied with something: what a GELU's 0.5 scales.
static bool isGeluFactor(Value v, int depth = 2) {
  auto op = v.getDefiningOp<graph::BinaryOp>();
  if (!op) return false;
  if (op.getKind() == BinaryKind::Add)
    return isOneOf(op.getLhs(), {graph::UnaryKind::Erf, graph::UnaryKind::Tanh}) || isOneOf(op.getRhs(), {graph::UnaryKind::Erf, graph::UnaryKind::Tanh});
  return depth > 0 && op.getKind() == BinaryKind::Mul && (isGeluFactor(op.getLhs(), depth - 1) || isGeluFactor(op.getRhs(), depth - 1));
}

/// Constant-only factors of the whole branch: walks from the layer's output down through the residual Add, products, casts and reshapes.
static llvm::DenseSet<Value> branchFactors(graph::LayerOp layer) {
  llvm::DenseSet<Value> factors;
  Value argument = layer.getBody().getArgument(0), at = layer.getBody().front().getTerminator()->getOperand(0);
  if (auto add = at.getDefiningOp<graph::BinaryOp>(); add && add.getKind() == BinaryKind::Add) {
    if (add.getLhs() == argument)
      at = add.getRhs();
    else if (add.getRhs() == argument)
      at = add.getLhs();
  }
  while (Operation *op = at.getDefiningOp()) {
    if (isa<graph::CastOp, graph::ReshapeOp, graph::TransposeOp, graph::ExpandOp>(op) || isOneOf(at, {graph::UnaryKind::Identity, graph::UnaryKind::Neg})) {
      at = op->getOperand(0);
      continue;
    }
    auto product = dyn_cast<graph::BinaryOp>(op);
    if (!product || product.getKind() != BinaryKind::Mul) break;
    bool left = isConstantOnly(product.getLhs()), right = isConstantOnly(product.getRhs());
    if (left == right || isGeluFactor(left ? product.getRhs() : product.getLhs())) break;
    factors.insert(left ? product.getLhs() : product.getRhs());
    at = left ? product.getRhs() : product.getLhs();
  }
  return factors;
}

static std::string storageName(Type type) {
  if (type.isSignlessInteger()) return "i" + std::to_string(type.getIntOrFloatBitWidth());
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Values captured from above that only constants reach, in the order of the layer's ops.
static llvm::SetVector<Value> capturedConstants(graph::LayerOp layer) {
  llvm::SetVector<Value> captured;
  layer.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value v : op->getOperands())
      if (!layer->isAncestor(v.getParentRegion()->getParentOp()) && isConstantOnly(v)) captured.insert(v);
  });
  // Constants that were built inside (hand-written IR) count as well.
  layer.getBody().walk<WalkOrder::PreOrder>([&](graph::ConstantOp op) { captured.insert(op.getResult()); });
  return captured;
}

std::vector<Parameter> parametersOf(graph::LayerOp layer) {
  std::string path = layer.getName().str() + ".";
  llvm::DenseSet<Value> factors = branchFactors(layer);
  std::vector<Parameter> parameters;
  llvm::DenseSet<std::pair<Value, Value>> seen;
  llvm::DenseSet<Value> counted;
  auto take = [&](Value value, graph::ConstantOp constant, bool isFactor) {
    StringRef name = constant.getName();
    int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
    if (elements < 1 || (elements == 1 && !name.starts_with(path) && !isFactor)) return;
    if (!counted.insert(value).second) return;
    if (name.starts_with(path)) name = name.drop_front(path.size());
    std::string shown = name.empty() ? graph::nodeName(constant.getLoc()) : name.str();
    parameters.push_back({value, constant, shown, storageName(constant.getValue().getElementType())});
  };
  for (Value captured : capturedConstants(layer)) {
    bool isFactor = factors.contains(captured);
    SmallVector<Value> work{captured};
    while (!work.empty()) {
      Value v = work.pop_back_val();
      if (!seen.insert({captured, v}).second || !isFloat(v)) continue;
      Operation *op = v.getDefiningOp();
      if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
        take(v, constant, isFactor);
      } else if (auto dequantize = dyn_cast<graph::DequantizeOp>(op)) {
        // The decoded value counts; scale and zero point are no parameters.
        SmallVector<Value> codes{dequantize.getX()};
        while (Operation *code = codes.back().getDefiningOp()) {
          if (auto constant = dyn_cast<graph::ConstantOp>(code)) {
            take(v, constant, isFactor);
            break;
          }
          if (code->getNumOperands() == 0) break;
          codes.push_back(code->getOperand(0));
        }
      } else {
        for (Value operand : llvm::reverse(op->getOperands())) work.push_back(operand);
      }
    }
  }
  return parameters;
}

std::vector<Operation *> constantChain(graph::LayerOp layer) {
  llvm::SetVector<Operation *> ops;
  SmallVector<Value> work = capturedConstants(layer).takeVector();
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op->getNumOperands() == 0 || !ops.insert(op)) continue;
    work.append(op->operand_begin(), op->operand_end());
  }
  std::vector<Operation *> ordered(ops.begin(), ops.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b); });
  return ordered;
}

} // namespace tare::checks
