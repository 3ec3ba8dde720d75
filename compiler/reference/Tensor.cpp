// Decoding and encoding of constants: every storage type that a checkpoint may have to double or int64 and back.
// Raw bytes of a dense_resource are row-major little-endian as in ONNX (i4/u4 packed two to a byte, low nibble first; bool one byte each).
// A constant whose bytes are not there decodes to NaN (floats), never to zeros: a missing tensor must not look dead.
#include "compiler/reference/Tensor.h"
#include "compiler/graph/Graph.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace tare::reference {

int64_t Tensor::elementCount() const {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

Tensor Tensor::zeros(Type element, std::vector<int64_t> shape) {
  Tensor t;
  t.element = element;
  t.shape = std::move(shape);
  if (t.isFloat())
    t.floats.assign(t.elementCount(), 0);
  else
    t.ints.assign(t.elementCount(), 0);
  return t;
}

namespace {

double toDouble(APFloat v) {
  bool lost;
  v.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return v.convertToDouble();
}

double fromHalf(uint16_t h) {
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY) : exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
  return std::copysign(magnitude, h & 0x8000 ? -1.0 : 1.0);
}

template <typename T> T load(const char *bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
  return value;
}

/// One float of `type` at index i of row-major bytes.
double loadFloat(FloatType type, const char *bytes, int64_t i) {
  if (type.isF32()) return load<float>(bytes, i);
  if (type.isF64()) return load<double>(bytes, i);
  if (type.isF16()) return fromHalf(load<uint16_t>(bytes, i));
  if (type.isBF16()) return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(bytes, i)) << 16);
  return toDouble(APFloat(type.getFloatSemantics(), APInt(type.getWidth(), static_cast<uint8_t>(bytes[i])))); // the f8 types
}

int64_t loadInteger(IntegerType type, const char *bytes, int64_t i) {
  bool isUnsigned = type.isUnsigned();
  switch (type.getWidth()) {
  case 1: return bytes[i] != 0;
  case 4: {
    int nibble = (bytes[i / 2] >> (i % 2 * 4)) & 15;
    return isUnsigned || nibble < 8 ? nibble : nibble - 16;
  }
  case 8: return isUnsigned ? load<uint8_t>(bytes, i) : load<int8_t>(bytes, i);
  case 16: return isUnsigned ? load<uint16_t>(bytes, i) : load<int16_t>(bytes, i);
  case 32: return isUnsigned ? static_cast<int64_t>(load<uint32_t>(bytes, i)) : load<int32_t>(bytes, i);
  default: return load<int64_t>(bytes, i);
  }
}

void decodeDense(DenseElementsAttr dense, Tensor &t) {
  if (t.isFloat()) {
    auto type = cast<FloatType>(t.element);
    if (dense.isSplat()) return t.floats.assign(t.elementCount(), toDouble(dense.getSplatValue<APFloat>()));
    for (int64_t i = 0, n = t.elementCount(); i < n; ++i) t.floats[i] = loadFloat(type, dense.getRawData().data(), i);
    return;
  }
  bool isUnsigned = t.element.isUnsignedInteger() || t.element.isInteger(1);
  auto value = [&](const APInt &v) { return isUnsigned ? static_cast<int64_t>(v.getZExtValue()) : v.getSExtValue(); };
  if (dense.isSplat()) return t.ints.assign(t.elementCount(), value(dense.getSplatValue<APInt>()));
  for (auto [i, v] : llvm::enumerate(dense.getValues<APInt>())) t.ints[i] = value(v);
}

} // namespace

bool bytesPresent(ElementsAttr value) {
  if (isa<DenseElementsAttr>(value)) return true;
  auto element = value.getElementType();
  uint64_t bits = element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth();
  return graph::rawBytes(value).size() >= (static_cast<uint64_t>(value.getNumElements()) * bits + 7) / 8;
}

Tensor decode(ElementsAttr value) {
  Tensor t = Tensor::zeros(value.getElementType(), value.getShapedType().getShape().vec());
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (t.elementCount()) decodeDense(dense, t);
    return t;
  }
  if (!bytesPresent(value)) {
    t.floats.assign(t.floats.size(), NAN);
    return t;
  }
  const char *bytes = graph::rawBytes(value).data();
  for (size_t i = 0; i < t.floats.size(); ++i) t.floats[i] = loadFloat(cast<FloatType>(t.element), bytes, i);
  for (size_t i = 0; i < t.ints.size(); ++i) t.ints[i] = loadInteger(cast<IntegerType>(t.element), bytes, i);
  return t;
}

double roundTo(FloatType type, double value) {
  if (type.isF64()) return value;
  if (type.isF32()) return static_cast<float>(value);
  APFloat wide(value);
  bool lost;
  wide.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  return toDouble(wide);
}

int64_t wrapTo(IntegerType type, int64_t value) {
  unsigned width = type.getWidth();
  if (width == 1) return value & 1;
  if (width >= 64) return value;
  uint64_t kept = static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
  if (type.isUnsigned() || !(kept >> (width - 1))) return static_cast<int64_t>(kept);
  return static_cast<int64_t>(kept | ~((uint64_t(1) << width) - 1));
}

void roundToElementType(Tensor &tensor) {
  auto type = dyn_cast<FloatType>(tensor.element);
  if (!type || type.isF64()) return;
  for (double &v : tensor.floats) v = roundTo(type, v);
}

ElementsAttr encode(const Tensor &tensor) {
  auto type = RankedTensorType::get(tensor.shape, tensor.element);
  if (auto element = dyn_cast<FloatType>(tensor.element)) {
    if (element.isF32()) {
      std::vector<float> narrow(tensor.floats.begin(), tensor.floats.end());
      return DenseElementsAttr::get(type, ArrayRef<float>(narrow));
    }
    SmallVector<APFloat> values;
    values.reserve(tensor.floats.size());
    for (double v : tensor.floats) {
      APFloat f(v);
      bool lost;
      f.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      values.push_back(f);
    }
    return DenseElementsAttr::get(type, values);
  }
  unsigned width = cast<IntegerType>(tensor.element).getWidth();
  SmallVector<APInt> values;
  values.reserve(tensor.ints.size());
  for (int64_t v : tensor.ints) values.push_back(APInt(width, static_cast<uint64_t>(v)));
  return DenseElementsAttr::get(type, values);
}

} // namespace tare::reference
