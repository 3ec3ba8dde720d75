// DequantizeLinear: per tensor, per axis, per block; int4 to uint16 and int32 inputs.
#include "compiler/import/ops/Ops.h"
#include "llvm/Support/Endian.h"
#include <cmath>

using namespace mlir;

namespace tare::ops {

/// The value of a stored float, whatever its width.
static double floatAt(ArrayRef<char> bytes, Type element, size_t i) {
  using namespace llvm::support::endian;
  const char *p = bytes.data();
  const llvm::fltSemantics &semantics = cast<FloatType>(element).getFloatSemantics();
  unsigned width = element.getIntOrFloatBitWidth();
  uint64_t bits = width == 16 ? read16le(p + 2 * i) : width == 32 ? read32le(p + 4 * i) : read64le(p + 8 * i);
  llvm::APFloat value(semantics, llvm::APInt(width, bits));
  bool lost;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}

/// Refuses constant scales that are zero, negative or not finite (bad-inputs B66).
static void checkScale(NodeImport &n) {
  auto constant = graph::constantOf(n.in(1));
  if (!constant) return;
  ArrayRef<char> bytes = graph::rawBytes(constant.getValue());
  size_t count = bytes.size() / (n.element(1).getIntOrFloatBitWidth() / 8);
  for (size_t i = 0; i < count; ++i)
    if (double v = floatAt(bytes, n.element(1), i); !(v > 0) || !std::isfinite(v))
      return n.fail("scale '" + n.proto.input(1) + "' contains " + std::to_string(v) + " at " + std::to_string(i) + ": scales must be positive and finite");
}

void dequantizeLinear(NodeImport &n) {
  int64_t rank = n.rank(0), axis = n.integer("axis", 1), block = n.version >= 21 ? n.integer("block_size", 0) : 0;
  int64_t outputType = n.version >= 23 ? n.integer("output_dtype", 0) : 0;
  bool perTensor = elementCount(n.dims(1)).constant() == 1 && n.rank(1) <= 1;
  axis = perTensor && block == 0 ? 0 : n.axis(axis, rank);
  if (n.failed()) return;
  if (!isa<IntegerType>(n.element(0)) || n.element(0).isInteger(1)) return n.fail("element type " + typeName(n.element(0)) + " is not supported");
  if (!isa<FloatType>(n.element(1))) return n.fail("scale must be a float tensor");
  if (n.in(2) && n.element(2) != n.element(0)) return n.fail("zero_point has element type " + typeName(n.element(2)) + ", the input " + typeName(n.element(0)));
  if (n.in(2) && !(n.dims(2) == n.dims(1))) return n.fail("zero_point " + text(n.dims(2)) + " and scale " + text(n.dims(1)) + " have different shapes");
  ArrayRef<Dim> x = n.dims(0), s = n.dims(1);
  if (block < 0) return n.fail("attribute 'block_size' is negative");
  if (block > 0) {
    Dims expected(x);
    expected[axis] = Dim::floorDiv(x[axis] + block - 1, block);
    if (!(ArrayRef<Dim>(expected) == s)) return n.fail("scale " + text(s) + " does not fit blocks of " + std::to_string(block) + " along axis " + std::to_string(axis) + " of " + text(x));
  } else if (!perTensor && (s.size() != 1 || !(s[0] == x[axis]))) {
    return n.fail("scale " + text(s) + " does not fit dimension " + std::to_string(axis) + " of " + text(x));
  }
  checkScale(n);
  if (n.failed()) return;
  Type result = outputType ? elementType(n.g.context, static_cast<int32_t>(outputType)) : n.element(1);
  if (!result || !isa<FloatType>(result)) return n.fail("attribute 'output_dtype' = " + std::to_string(outputType) + " is not a supported float type");
  n.out(0, n.cast(n.emit<graph::DequantizeOp>(n.type(n.element(1), x), n.in(0), n.in(1), n.in(2), axis, block), result));
}

} // namespace tare::ops
