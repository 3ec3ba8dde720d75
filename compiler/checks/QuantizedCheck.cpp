// Constants of fidelity checks in and out of the graph. In: ops. Out: numbers in f32 (stored halves are exact), integer weights as operands.
#include "compiler/checks/QuantizedCheck.h"
#include "compiler/reference/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/TypeUtilities.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tare::checks {

static bool readConstant(Value value, std::vector<float> &to) {
  while (auto cast = value.getDefiningOp<graph::CastOp>()) value = cast.getX();
  graph::ConstantOp constant = graph::constantOf(value);
  if (!constant || !isa<FloatType>(getElementTypeOrSelf(value.getType())) || !reference::bytesPresent(constant.getValue())) return false;
  reference::Tensor tensor = reference::decode(constant.getValue());
  to.assign(tensor.floats.begin(), tensor.floats.end());
  return true;
}

std::optional<CheckWeights> checkWeights(graph::FidelityCheckOp check) {
  CheckWeights weights;
  auto w = cast<RankedTensorType>(check.getW().getType()), e = cast<RankedTensorType>(check.getE().getType());
  if (!w.hasStaticShape() || !e.hasStaticShape() || w.getRank() != 3 || e.getRank() != 2) return std::nullopt;
  weights.heads = w.getDimSize(0), weights.rank = w.getDimSize(1), weights.width = w.getDimSize(2), weights.columns = e.getDimSize(1);
  bool all = readConstant(check.getW(), weights.w) && readConstant(check.getP(), weights.p) && readConstant(check.getTau(), weights.tau) && readConstant(check.getE(), weights.e);
  return all ? std::optional(std::move(weights)) : std::nullopt;
}

template <typename T> static Value constantOf(OpBuilder &b, Location loc, StringRef name, Type element, ArrayRef<int64_t> shape, const std::vector<T> &values) {
  auto type = RankedTensorType::get(shape, element);
  ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
  ElementsAttr value = type.getNumElements() <= 64 ? ElementsAttr(DenseElementsAttr::getFromRawBuffer(type, bytes))
                                                   : DenseResourceElementsAttr::get(type, name, HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64));
  return b.create<graph::ConstantOp>(loc, type, b.getStringAttr(name), value, UnitAttr());
}

void setQuantized(graph::FidelityCheckOp check, const QuantizedCheck &quantized) {
  auto shape = cast<RankedTensorType>(check.getW().getType()).getShape();
  int64_t groups = (shape[2] + quantized.group - 1) / quantized.group;
  OpBuilder b(check);
  std::string name = "check";
  if (auto own = check->getAttrOfType<StringAttr>("graph.check")) name = own.str();
  Value q = constantOf(b, check.getLoc(), name + ".W.quantized", b.getI8Type(), shape, quantized.q);
  Value scale = constantOf(b, check.getLoc(), name + ".W.scale", b.getF32Type(), {shape[0], shape[1], groups}, quantized.scale);
  check.getQuantizedMutable().assign(q);
  check.getScaleMutable().assign(scale);
  check.setPrecision(quantized.bits == 4 ? "int4" : "int8");
  check.setGroup(quantized.group);
}

QuantizedCheck roundToNearest(const CheckWeights &weights, int64_t bits, int64_t group) {
  QuantizedCheck result{bits, group, std::vector<int8_t>(weights.w.size()), {}};
  const float most = bits == 4 ? 7 : 127;
  for (int64_t row = 0; row < weights.heads * weights.rank; ++row)
    for (int64_t d = 0; d < weights.width; d += group) {
      const float *w = weights.w.data() + row * weights.width;
      int64_t end = std::min(d + group, weights.width);
      float largest = 0;
      for (int64_t i = d; i < end; ++i) largest = std::max(largest, std::fabs(w[i]));
      float scale = largest / most;
      result.scale.push_back(scale);
      for (int64_t i = d; i < end && scale > 0; ++i) result.q[row * weights.width + i] = static_cast<int8_t>(std::lround(std::clamp(w[i] / scale, -most, most)));
    }
  return result;
}

} // namespace tare::checks
