// Kernel texts as images for real GPUs. In: the texts of a program, the architectures that were asked for, a toolkit.
// Out: per architecture one cubin (or PTX) per kernel, with what ptxas says about it. Must hold: the result does not
// depend on threads, cache or folders; a text that does not compile is kept for whoever looks into it.
#pragma once
#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Toolkit.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tare::cuda {

/// What one thread, and one block, of a kernel take on one architecture, from ptxas. Bytes; `sharedBytes` is static
/// shared memory.
struct KernelResources {
  int64_t registers = 0, sharedBytes = 0, stackBytes = 0, spillStores = 0, spillLoads = 0;
};
/// From the log of `ptxas -v`; nothing when it says nothing about this kernel.
std::optional<KernelResources> parseResources(llvm::StringRef log, llvm::StringRef kernel);

/// All kernels of a program for one architecture, in the order of the texts.
struct Image {
  std::string architecture; ///< "sm_90": cubins; "compute_90": PTX, each with a final zero byte
  std::vector<std::string> binaries;
  std::vector<std::optional<KernelResources>> resources; ///< per kernel; none for PTX
};

/// What --target cuda:... adds to an engine.
struct Program {
  std::vector<KernelText> kernels;
  std::vector<Image> images; ///< ascending; PTX last
  std::string toolkit, precision = "f32";
  std::vector<std::string> warnings;
  std::string cacheTrouble; ///< for the terminal only: no engine may depend on the state of a cache
  unsigned compiled = 0, reused = 0; ///< images made, and found in the cache
};

struct ImageOptions {
  unsigned threads = 1;
  std::string cacheFolder;                            ///< empty: none
  std::function<void(const std::string &)> working{}; ///< told each "sm_90 KERNEL" as it begins, from any thread
};

/// Which images an engine for these architectures ("sm_80", ...) holds: a cubin for each and PTX of the lowest, which
/// every newer GPU can take; PTX of compute_80 and compute_90 alone when the toolkit makes no cubins. Exit 5 when it is
/// too old for one of them.
llvm::Expected<std::vector<std::string>> imagesFor(llvm::ArrayRef<std::string> architectures, const Toolkit &toolkit);
/// Fills images, toolkit and warnings of `program`, whose kernels are printed. Exit 5: a text does not compile (text
/// and log are kept, the error says where).
llvm::Error compileImages(Program &program, llvm::ArrayRef<std::string> architectures, const Toolkit &toolkit,
                          const ImageOptions &options);

/// True for kernels whose time decides: a spill there is worth a warning.
bool isHot(const KernelText &kernel);
/// Its group kind: "gemm", ...; empty for a text that belongs to no function.
std::string kindOf(const KernelText &kernel);

} // namespace tare::cuda
