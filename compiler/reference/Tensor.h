// A dense tensor in the reference's own arithmetic: floats as double, integers and bools as int64. Row-major.
#pragma once
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace tare::reference {

/// `element` is the IR element type. Exactly one of `floats` (FloatType) and `ints` (IntegerType) holds elementCount() values; integer values are
/// kept wrapped to the type's width and signedness, i1 is 0 or 1. Float values are not rounded to the type unless a function says so.
struct Tensor {
  mlir::Type element;
  std::vector<int64_t> shape;
  std::vector<double> floats;
  std::vector<int64_t> ints;

  bool isFloat() const { return llvm::isa<mlir::FloatType>(element); }
  int64_t elementCount() const;
  static Tensor zeros(mlir::Type element, std::vector<int64_t> shape);
};

/// Decodes a constant (any storage type, splats expanded, i4/u4 unpacked, f16/bf16 widened exactly).
Tensor decode(mlir::ElementsAttr value);
/// False when the bytes of a dense_resource are not all there.
bool bytesPresent(mlir::ElementsAttr value);
/// `value` rounded to the type (to nearest even); `value` wrapped to the type's width and signedness.
double roundTo(mlir::FloatType type, double value);
int64_t wrapTo(mlir::IntegerType type, int64_t value);
/// Rounds every float to the element type (round to nearest even; for constant folding and for outputs of tests).
void roundToElementType(Tensor &tensor);
/// As a DenseElementsAttr of the tensor's element type (floats are rounded).
mlir::ElementsAttr encode(const Tensor &tensor);

} // namespace tare::reference
