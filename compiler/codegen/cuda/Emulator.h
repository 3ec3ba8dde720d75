// The target cuda-emu: the CUDA text of a program, compiled as C++ against kernels/cuda/emu into a code section of its
// own. In: a planned module. Out: a CodeSection of the level "cuda-emu", which any x86-64-v3 CPU runs, every access of
// every kernel checked.
#pragma once
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Toolkit.h"

namespace tare::cuda {

/// The level's name, in engines and in --target. With ":stats" the code also counts what each memory instruction costs and
/// prints a table per kernel to standard error at the end of a run (docs/kernels.md); in the engine it is the same level.
inline constexpr char kEmulatorLevel[] = "cuda-emu", kEmulatorStatsLevel[] = "cuda-emu:stats";

/// Adds to the program the memory that the emulator needs per thread (stacks, shared memory, shadow). Returns its
/// buffer index.
int64_t addEmulatorMemory(mlir::ModuleOp planned, const std::vector<KernelText> &kernels, bool stats = false);
/// The one C++ file: all kernels, and `tare_entry` (runtime/code_abi.h), which launches them in order.
std::string emulatorText(mlir::ModuleOp planned, const std::vector<KernelText> &kernels, int64_t memory,
                         bool stats = false);
/// clang-19, which compiles the text; exit 5 when there is none.
llvm::Expected<ClangProgram> emulatorCompiler();
/// Compiles it with clang-19 and links it flat. Exit 5 without a compiler, 1 when the text does not compile (it is
/// kept, and the error says where).
llvm::Expected<CodeSection> compileForEmulator(mlir::ModuleOp planned, const std::vector<KernelText> &kernels,
                                               bool stats = false);

} // namespace tare::cuda
