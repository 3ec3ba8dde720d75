// The weight check (Weights.h): one pass over the decoded elements in row-major order.
#include "compiler/checks/Weights.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <cmath>

using namespace mlir;

namespace tare::checks {

std::string hashOf(ElementsAttr value) {
  llvm::SHA256 hash;
  ArrayRef<char> bytes = graph::rawBytes(value);
  int64_t repeats = 1;
  if (auto dense = dyn_cast<DenseElementsAttr>(value); dense && dense.isSplat()) repeats = value.getNumElements();
  for (int64_t i = 0; i < repeats; ++i) hash.update(StringRef(bytes.data(), bytes.size()));
  return llvm::toHex(hash.final(), true);
}

static std::vector<int64_t> indexAt(int64_t offset, llvm::ArrayRef<int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; offset /= shape[d]) index[d] = offset % shape[d];
  return index;
}

TensorEvidence measureTensor(const Parameter &parameter, const reference::Tensor *decoded, double threshold) {
  TensorEvidence e;
  graph::ConstantOp constant = parameter.constant;
  e.name = parameter.name, e.storage = parameter.storage;
  e.overridable = constant.getOverridable();
  e.halfPrecision = e.storage == "f16" || e.storage == "bf16";
  e.elements = cast<RankedTensorType>(parameter.value.getType()).getNumElements();
  e.present = decoded && reference::bytesPresent(constant.getValue());
  if (!e.present) return e;
  e.sha256 = hashOf(constant.getValue());
  const float limit = static_cast<float>(threshold);
  int64_t largest = 0;
  for (int64_t i = 0; i < e.elements; ++i) {
    double v = decoded->floats[i], magnitude = std::fabs(v);
    e.nonzero += v != 0;
    e.aboveThreshold += !(static_cast<float>(magnitude) < limit);
    if (!std::isfinite(v)) {
      if (e.nonFinite++ == 0) e.nonFiniteIndex = indexAt(i, decoded->shape);
    } else if (magnitude > e.maxAbs) {
      e.maxAbs = magnitude, largest = i;
    }
  }
  e.largestIndex = indexAt(largest, decoded->shape);
  e.largestValue = e.elements && std::isfinite(decoded->floats[largest]) ? decoded->floats[largest] : 0;
  return e;
}

} // namespace tare::checks
