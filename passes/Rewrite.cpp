// Helpers of the rewriting passes. In: values and blocks of graph ops. Out: matched forms, constants, dead ops gone. Everything is linear in what it
// looks at, so that a chain of a million ops stays a matter of seconds.
#include "passes/Rewrite.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace tare::graph;

namespace tare {

Block *mainBody(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  return main && !main.isExternal() ? &main.getBody().front() : nullptr;
}

void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(&op)) op.erase();
}

void replaceBy(Operation *op, Value value) { op->getResult(0).replaceAllUsesWith(value); }

std::optional<unsigned> elementBytes(Type element) {
  if (element.isInteger(1)) return 1;
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits % 8) return std::nullopt;
  return bits / 8;
}

Value makeConstant(OpBuilder &builder, Location location, StringRef name, RankedTensorType type, ArrayRef<char> bytes) {
  ElementsAttr value;
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  if (plain.getNumElements() <= 64 || plain.getElementType().isInteger(1))
    value = DenseElementsAttr::getFromRawBuffer(plain, bytes);
  else
    value = DenseResourceElementsAttr::get(plain, name.empty() ? "folded" : name, HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64));
  return builder.create<ConstantOp>(location, type, builder.getStringAttr(name), value, UnitAttr());
}

Value makeSplat(OpBuilder &builder, Location location, RankedTensorType type, double value) {
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  auto splat = DenseElementsAttr::get(plain, builder.getFloatAttr(type.getElementType(), value));
  return builder.create<ConstantOp>(location, type, builder.getStringAttr(""), splat, UnitAttr());
}

static bool isLossless(Type from, Type to) {
  auto a = dyn_cast<FloatType>(from), b = dyn_cast<FloatType>(to);
  if (a && b)
    return a == b || (b.getFPMantissaWidth() >= a.getFPMantissaWidth() && APFloat::semanticsMaxExponent(b.getFloatSemantics()) >= APFloat::semanticsMaxExponent(a.getFloatSemantics()) &&
                      APFloat::semanticsMinExponent(b.getFloatSemantics()) <= APFloat::semanticsMinExponent(a.getFloatSemantics()));
  return from == to;
}

std::optional<double> oneElement(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto cast = dyn_cast<CastOp>(op);
    bool through = isa<ReshapeOp>(op) || (cast && isLossless(getElementTypeOrSelf(cast.getX()), getElementTypeOrSelf(value)));
    if (!through) break;
    value = op->getOperand(0);
  }
  auto constant = constantOf(value);
  return constant && constant.getValue().getNumElements() == 1 ? scalarValue(value) : std::nullopt;
}

bool isAbout(double value, double expected, Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  // Exporters compute constants in f32 and sometimes round once more on the way: two units in the last place of the stored type.
  double unit = !element || element.getWidth() > 32 ? 1e-7 : std::ldexp(1.0, 2 - static_cast<int>(element.getFPMantissaWidth()));
  return std::abs(value - expected) <= unit * std::abs(expected);
}

std::optional<std::pair<Value, Value>> binaryOf(Value value, BinaryKind kind) {
  auto op = value.getDefiningOp<BinaryOp>();
  if (!op || op.getKind() != kind) return std::nullopt;
  return std::make_pair<Value, Value>(op.getLhs(), op.getRhs());
}

Value unaryOf(Value value, UnaryKind kind) {
  auto op = value.getDefiningOp<UnaryOp>();
  return op && op.getKind() == kind ? Value(op.getX()) : Value();
}

static void collect(Value value, const Dims &dims, bool outermost, Product &product) {
  bool inner = outermost || (value.hasOneUse() && dimsOf(value) == dims);
  auto op = inner ? value.getDefiningOp<BinaryOp>() : BinaryOp();
  if (op && (op.getKind() == BinaryKind::Mul || op.getKind() == BinaryKind::Div)) {
    bool divides = op.getKind() == BinaryKind::Div;
    auto scalar = oneElement(op.getRhs()), front = divides ? std::nullopt : oneElement(op.getLhs());
    if (scalar && !(divides && *scalar == 0)) {
      product.factor = divides ? product.factor / *scalar : product.factor * *scalar;
      return collect(op.getLhs(), dims, false, product);
    }
    if (front) {
      product.factor *= *front;
      return collect(op.getRhs(), dims, false, product);
    }
    if (!divides) {
      collect(op.getLhs(), dims, false, product);
      return collect(op.getRhs(), dims, false, product);
    }
  }
  if (Value negated = inner && !outermost ? unaryOf(value, UnaryKind::Neg) : Value()) {
    product.factor = -product.factor;
    return collect(negated, dims, false, product);
  }
  product.terms.push_back(value);
}

Product productOf(Value value) {
  Product product;
  collect(value, dimsOf(value), true, product);
  return product;
}

std::optional<Dims> broadcast(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Dims result(a.begin(), a.end());
  for (size_t i = 0; i < b.size(); ++i) {
    Dim &d = result[a.size() - b.size() + i];
    if (b[i].isConstant(1) || d == b[i]) continue;
    if (!d.isConstant(1)) return std::nullopt;
    d = b[i];
  }
  return result;
}

} // namespace tare
