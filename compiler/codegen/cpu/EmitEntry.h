// The entry function: every step in order, with stamps, barriers and fault words.
#pragma once
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace tare::codegen {

/// Trailing arguments of a kernel after buffers and capacities: dims, thread, threads, scratch, fault, step.
inline constexpr unsigned kTrailingArguments = 6;

/// Adds `tare_entry(args, thread) -> i64` (runtime/code_abi.h) to `target`, which already holds the kernels.
void emitEntry(mlir::ModuleOp target, plan::ProgramOp program);

} // namespace tare::codegen
