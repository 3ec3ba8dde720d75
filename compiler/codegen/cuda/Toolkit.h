// The compiler of CUDA text that this machine has: NVRTC (dlopened), else nvcc, else clang-19, which makes PTX only.
// In: the environment (TARE_NVRTC, TARE_NVCC, TARE_CLANG, CUDA_HOME, PATH). Out: one Toolkit, or exit 5 that says what
// to install. Must hold: nothing of CUDA is linked; equal text, architecture and `identity` give equal bytes, whatever
// folder, time or thread.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace tare::cuda {

/// A GPU that the kernels are written for, and the first CUDA Toolkit that compiles for it.
struct Architecture {
  llvm::StringLiteral name, since;
};
/// "sm_80" and up, ascending.
llvm::ArrayRef<Architecture> knownArchitectures();
/// The number of "sm_90" or "compute_90": 90.
int architectureNumber(llvm::StringRef name);

/// One call of the compiler. With `good`, `bytes` is the cubin, or PTX text without a final zero.
struct Outcome {
  bool good = false;
  std::string bytes, log;
};

class Toolkit {
public:
  virtual ~Toolkit() = default;
  std::string name;     ///< "NVRTC 13.0", for people
  std::string identity; ///< all that the bytes depend on but text and architecture: program, exact version, flags
  std::vector<std::string>
      known; ///< architectures that it compiles for: "sm_80", ...; empty: PTX for compute_80 and compute_90
  /// `text` includes nothing; `architecture`: "sm_90" for a cubin, "compute_90" for PTX. Errors are those of the
  /// machine (no temporary folder); what the compiler has against the text is in the outcome. Called from several
  /// threads.
  virtual llvm::Expected<Outcome> compile(llvm::StringRef kernel, llvm::StringRef text,
                                          llvm::StringRef architecture) const = 0;
};

/// Tries the three in order. Exit 5 when there is none, or when a variable names one that does not work.
llvm::Expected<std::unique_ptr<Toolkit>> findToolkit();
// Each of them: null when it is not there.
llvm::Expected<std::unique_ptr<Toolkit>> findNvrtc();
llvm::Expected<std::unique_ptr<Toolkit>> findNvcc();
llvm::Expected<std::unique_ptr<Toolkit>> findClang();

/// The folders of CUDA installations, most wanted first: CUDA_HOME, then the usual places. They may not exist.
std::vector<std::string> cudaFolders();
/// Runs a program in no shell; its own temporary files go to `folder` when there is one. Out: its exit status (127 when
/// it cannot be started) and all it printed.
struct ProgramRun {
  int status = 127;
  std::string output;
};
llvm::Expected<ProgramRun> runProgram(llvm::StringRef program, llvm::ArrayRef<std::string> arguments,
                                      llvm::StringRef folder = "");

} // namespace tare::cuda
