// What must hold at each phase border (docs/architecture.md, "Phases").
#pragma once
#include "compiler/graph/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace tare {
/// Checks what `phase` promises about the module after it. On a breach: an error at the op's own location that names the pass that owed it.
mlir::LogicalResult checkContract(Phase phase, mlir::ModuleOp module);
} // namespace tare
