// DequantizeLinear: per tensor, per axis, per block; int4 to uint16 and int32 inputs.
#include "compiler/import/ops/Ops.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;

namespace tare::ops {

/// Refuses scales that are zero, negative or not finite when they are small constants (larger ones are checked by the weight check).
static void checkScale(NodeImport &n) {
  auto constant = graph::constantOf(n.in(1));
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !isa<FloatType>(elements.getElementType())) return;
  for (const llvm::APFloat &v : elements.getValues<llvm::APFloat>())
    if (!v.isFinite() || v.isNegative() || v.isZero()) {
      llvm::SmallString<32> shown;
      v.toString(shown);
      return n.fail("scale '" + n.proto.input(1) + "' contains " + shown.str().str() + ": scales must be positive and finite");
    }
}

void dequantizeLinear(NodeImport &n) {
  int64_t rank = n.rank(0), axis = n.integer("axis", 1), block = n.version >= 21 ? n.integer("block_size", 0) : 0;
  if (n.version >= 23) n.ignoreAttribute("output_dtype");
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
  n.out(0, n.emit<graph::DequantizeOp>(n.type(n.element(1), x), n.in(0), n.in(1), n.in(2), axis, block));
}

} // namespace tare::ops
