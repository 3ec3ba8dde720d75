// Estimates for grouping. In: an op. Out: the cost of one element in additions, measured roughly on AVX2 (docs/performance.md); only the order of
// magnitude matters. Must hold: moving ops are nearly free, transcendental functions are not.
#include "passes/GroupCost.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tare::graph;

namespace tare {

static double unaryCost(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::Neg: case UnaryKind::Abs: case UnaryKind::Relu: case UnaryKind::Not: case UnaryKind::Identity: case UnaryKind::Floor:
  case UnaryKind::Ceil: case UnaryKind::Round: case UnaryKind::Sign: case UnaryKind::IsNaN: case UnaryKind::IsInf:
    return 1;
  case UnaryKind::Sqrt: case UnaryKind::Rsqrt: case UnaryKind::Reciprocal:
    return 4;
  default: return 18;
  }
}

static double binaryCost(BinaryOp op) {
  bool isInteger = !isa<FloatType>(getElementTypeOrSelf(op.getLhs()));
  switch (op.getKind()) {
  case BinaryKind::Div: return isInteger ? 8 : 4;
  case BinaryKind::Mod: case BinaryKind::Fmod: return 8;
  case BinaryKind::Pow: return 25;
  default: return 1;
  }
}

/// A reshape that only adds or removes dims of size 1 costs nothing; others divide indices.
static double reshapeCost(ReshapeOp op) {
  auto wide = [](Value v) {
    Dims dims = dimsOf(v);
    llvm::erase_if(dims, [](const Dim &d) { return d.isConstant(1); });
    return dims;
  };
  return wide(op.getX()) == wide(op.getResult()) ? 0.25 : 3;
}

double elementCost(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([](UnaryOp o) { return unaryCost(o.getKind()); })
      .Case([](BinaryOp o) { return binaryCost(o); })
      .Case([](ReshapeOp o) { return reshapeCost(o); })
      .Case<SelectOp, CastOp>([](auto) { return 1.0; })
      .Case<TransposeOp, ExpandOp, SliceOp, RangeOp, FillOp, ConstantOp>([](auto) { return 0.25; })
      .Case<DequantizeOp, GatherNDOp>([](auto) { return 3.0; })
      .Case<TileOp>([](auto) { return 4.0; })
      .Default([](Operation *) { return 2.0; });
}

double typicalElements(Value value) {
  double product = 1;
  for (const Dim &d : dimsOf(value)) product *= static_cast<double>(std::max<int64_t>(1, d.evaluate([](StringRef) { return std::optional<int64_t>(64); }).value_or(64)));
  return product;
}

} // namespace tare
