// From plan to code: one LLVM function per kernel and the entry function that runtime/code_abi.h describes.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace tare::codegen {

/// `planned`: a module with one plan.program and its kernel functions (Plan.td). Returns a module of LLVM dialect only, with `tare_entry`, the kernels
/// (internal) and declarations of the microkernels they call. Fails with a tare::Failure that names the op an emitter is missing for.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(mlir::ModuleOp planned);

} // namespace tare::codegen
