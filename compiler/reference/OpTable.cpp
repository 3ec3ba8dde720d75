// The table of the reference: one row per op of GraphOps.td with its forward and its VJP function. No VJP: the op's result is never
// a floating-point function of a floating-point operand (sources) or none was written (attention: made by fusion, after the checks).
#include "compiler/reference/Ops.h"

namespace tare::reference {

static constexpr Row kRows[] = {
    {"graph.constant", constant, nullptr},
    {"graph.dims_constant", dimsConstant, nullptr},
    {"graph.range", range, nullptr},
    {"graph.fill", fill, nullptr},
    {"graph.unary", unary, unaryVjp},
    {"graph.binary", binary, binaryVjp},
    {"graph.select", select, selectVjp},
    {"graph.cast", cast, castVjp},
    {"graph.dequantize", dequantize, dequantizeVjp},
    {"graph.reshape", reshape, reshapeVjp},
    {"graph.transpose", transpose, transposeVjp},
    {"graph.expand", expand, expandVjp},
    {"graph.slice", slice, sliceVjp},
    {"graph.concat", concat, concatVjp},
    {"graph.pad", pad, padVjp},
    {"graph.tile", tile, tileVjp},
    {"graph.gather", gather, gatherVjp},
    {"graph.gather_elements", gatherElements, gatherElementsVjp},
    {"graph.gather_nd", gatherND, gatherNDVjp},
    {"graph.trilu", trilu, triluVjp},
    {"graph.matmul", matmul, matmulVjp},
    {"graph.reduce", reduce, reduceVjp},
    {"graph.cumsum", cumsum, cumsumVjp},
    {"graph.softmax", softmax, softmaxVjp},
    {"graph.layer_norm", layerNorm, layerNormVjp},
    {"graph.rms_norm", rmsNorm, rmsNormVjp},
    {"graph.attention", attention, nullptr},
    {"graph.fidelity_check", fidelityCheck, fidelityCheckVjp},
};

const Row *findRow(llvm::StringRef opName) {
  for (const Row &row : kRows)
    if (row.name == opName) return &row;
  return nullptr;
}

bool hasReference(mlir::OperationName name) { return findRow(name.getStringRef()); }
bool hasVjp(mlir::OperationName name) {
  const Row *row = findRow(name.getStringRef());
  return row && row->vjp;
}

} // namespace tare::reference
