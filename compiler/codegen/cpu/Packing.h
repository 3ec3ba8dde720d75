// Weights as the kernels want them. In: a constant; out: its bytes in the plan's `packing` (compiler/plan/Plan.td). Must hold: the result depends on
// the constant alone, splats included, and sizes are checked before anything is read.
#pragma once
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tare {

/// `packing`: "raw" gives the elements row-major, little-endian; i1 takes one byte each, i4/u4 two per byte as ONNX stores them.
/// "panel32" takes [K, N] (or [.., K, N] with leading dims of 1) of f32, f16 or bf16 and gives [ceil(N/32)][K][32], zero padded.
/// "check_panel32", "check_nibble32" and "check_row32" are those of a fidelity check (Plan.td).
/// Refuses other packings, ranks and types.
llvm::Expected<std::string> packWeight(mlir::ElementsAttr value, llvm::StringRef packing);

} // namespace tare
