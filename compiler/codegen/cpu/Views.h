// Strided views of a kernel's buffers, and how drivers of kernels/cpu/kernels.h are called: structs of 8-byte words, plain C calls.
#pragma once
#include "compiler/codegen/cpu/Kinds.h"

namespace tare::codegen {

struct View {
  Memory memory;
  llvm::SmallVector<mlir::Value> strides; // in elements, one per dim of the viewed value
};

/// A value as a strided view of one buffer: a block argument behind transposes, expands and reshapes that only need strides. Nothing when elements
/// would have to move.
std::optional<View> viewOf(Emitter &e, mlir::Value value);

/// An array of these words (integers, pointers, doubles) on the kernel's stack.
mlir::Value packWords(Emitter &e, llvm::ArrayRef<mlir::Value> words);

/// Calls a microkernel that returns nothing.
void callDriver(Emitter &e, Kernel &k, llvm::StringRef name, llvm::ArrayRef<mlir::Value> arguments);

} // namespace tare::codegen
