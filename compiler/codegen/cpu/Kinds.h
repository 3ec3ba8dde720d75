// One emitter per group kind (docs/architecture.md "Fusion groups"). In: an Emitter in the kernel's LLVM function and the kernel's graph body. Out: the
// function's code up to its return. Each has its own file.
#pragma once
#include "compiler/codegen/cpu/Emitter.h"

namespace tare::codegen {

struct Kernel {
  mlir::func::FuncOp body;                     // graph ops, arguments = operands
  mlir::LLVM::LLVMFuncOp function;             // being emitted
  llvm::SmallVector<Memory> operands, results; // by position
  llvm::SmallVector<std::pair<std::string, mlir::Value>> capacities; // symbol, value
  llvm::ArrayRef<Dim> table;
};

/// True when no op of the body is beyond the pulling emitter; else `why` names the first one.
bool canEmit(mlir::func::FuncOp body, std::string &why);

void emitPointwise(Emitter &e, Kernel &k); ///< also `reduce`, and any kind whose fast form does not apply
void emitRow(Emitter &e, Kernel &k);
void emitGemm(Emitter &e, Kernel &k);
void emitBatchMatmul(Emitter &e, Kernel &k);
void emitAttention(Emitter &e, Kernel &k);
void emitAppend(Emitter &e, Kernel &k);

/// An iteration space with one store per target and element; targets have these dims, their memory is addressed at index + offset.
struct Target {
  mlir::Value value;
  Memory memory;
  llvm::SmallVector<Dim> offset; // empty: 0
};
void emitNest(Emitter &e, llvm::ArrayRef<Target> targets);

/// A function that a microkernel calls back, with its own Emitter. The environment pointer carries the kernel's arguments.
class Hook {
public:
  /// `arguments` follow the environment pointer.
  Hook(Emitter &outer, Kernel &k, llvm::StringRef suffix, llvm::ArrayRef<mlir::Type> arguments, llvm::function_ref<void(Emitter &, Kernel &, mlir::ValueRange)> body);
  mlir::Value function, environment; ///< pointers in the outer function
};

/// Flag and fault store around code that gathers: null when the body has no checked index.
void beginFault(Emitter &e, mlir::func::FuncOp body);
void endFault(Emitter &e);

} // namespace tare::codegen
