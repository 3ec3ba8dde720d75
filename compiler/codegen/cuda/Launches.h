// The launches of a program, in order: which kernel, over which blocks, with which arguments. In: a planned module's
// program and its kernel texts. Out: one list that the engine writer (engine.fbs Cuda) and the emulator's entry both
// use. Must hold: arguments have the order of the kernel's parameters.
#pragma once
#include "compiler/codegen/cuda/Kernels.h"

namespace tare::cuda {

/// Threads of every block.
inline constexpr unsigned kBlockThreads = 128;

/// One argument; the kinds are those of engine.fbs CudaArgumentKind.
struct LaunchArgument {
  enum Kind { Buffer, Dim, Check, Fault, Step, Anchors } kind;
  unsigned position = 0; ///< Buffer, Check, Anchors: in the step's list, operands then results
  int64_t buffer = -1;   ///< the same as an index of the program's buffers
  mlir::Type type;       ///< the tensor that the kernel sees there
  mlir::Type stored;     ///< its element type in device memory
  bool written = false;  ///< a result
  tare::Dim dim;         ///< Dim: a size of the run
};

struct Launch {
  unsigned step = 0; ///< number of the dispatch
  const KernelText *kernel = nullptr;
  std::vector<LaunchArgument> arguments;
};

/// A step whose kernel has several texts is launched once for each, in the order of `kernels`.
std::vector<Launch> launchesOf(mlir::ModuleOp planned, const std::vector<KernelText> &kernels);

} // namespace tare::cuda
