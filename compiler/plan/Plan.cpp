// Definitions behind Plan.h: dialect registration and stored sizes.
#include "compiler/plan/Plan.h"
#include "mlir/IR/DialectImplementation.h"

#include "compiler/plan/PlanDialect.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/plan/PlanOps.cpp.inc"

namespace tare::plan {

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/plan/PlanOps.cpp.inc"
      >();
}

Dim storedBytes(mlir::Type element, const Dim &elements) {
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits == 4) return Dim::floorDiv(elements + 1, 2);
  return elements * Dim((bits + 7) / 8);
}

std::string capacitySymbol(unsigned number) { return "capacity." + std::to_string(number); }

} // namespace tare::plan
