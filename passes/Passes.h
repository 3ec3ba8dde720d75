// Every pass of a compile, made by TableGen from Passes.td, and the pipeline that orders them.
#pragma once
#include "compiler/graph/Options.h"
#include "compiler/plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tare {
#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace tare
