// The compiler of CUDA text that this machine has: NVRTC (dlopened), else nvcc, else clang-19, which makes PTX only.
// In: the environment (TARE_NVRTC, TARE_NVCC, TARE_CLANG, CUDA_HOME, PATH). Out: one Toolkit that has compiled an empty
// kernel, or exit 5 that says what to install. Must hold: nothing of CUDA is linked; equal text, architecture and `identity` give equal bytes, whatever
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

/// One call of the compiler. With `good`: a cubin, where a real architecture was asked for, and the PTX of the same run
/// of its front end, without a final zero.
struct Outcome {
  bool good = false;
  std::string cubin, ptx, log;
};

class Toolkit {
public:
  virtual ~Toolkit() = default;
  std::string name;     ///< "NVRTC 13.0", for people
  std::string place;    ///< its file
  std::string identity; ///< all that the bytes depend on but text and architecture: program, exact version, flags
  std::vector<std::string>
      known; ///< architectures that it compiles for: "sm_80", ...; empty: PTX for compute_80 and compute_90
  /// `text` includes nothing; `architecture`: one of `known`, for a cubin and its PTX, or "compute_90", for PTX, when
  /// `known` is empty. Errors are those of the machine (no temporary folder); what the compiler has against the text is
  /// in the outcome. Called from several threads.
  virtual llvm::Expected<Outcome> compile(llvm::StringRef kernel, llvm::StringRef text,
                                          llvm::StringRef architecture) const = 0;
};

/// Tries the three in order; `passedOver` gets a line for each that is there and does not work. Exit 5 when none works,
/// or when a variable names one that does not.
llvm::Expected<std::unique_ptr<Toolkit>> findToolkit(std::vector<std::string> &passedOver);
/// One of the three.
struct Compiler {
  const char *variable;                 ///< names one in the environment, or is "none"
  std::vector<std::string> (*places)(); ///< where it usually is, most wanted first
  /// What is there; null when nothing is, exit 5 when it is broken.
  llvm::Expected<std::unique_ptr<Toolkit>> (*take)(const std::string &place);
};
Compiler nvrtcCompiler();
Compiler nvccCompiler();
Compiler clangCompiler();
/// clang-19 itself, which the emulator's text is compiled with, too. Empty path: it is not there.
struct ClangProgram {
  std::string path, number, version; ///< "19.1.7", and the line that says so
};
llvm::Expected<ClangProgram> findClangProgram();

/// A cubin is an ELF file, PTX names its entry.
bool isImage(llvm::StringRef bytes, llvm::StringRef architecture, llvm::StringRef kernel);
/// The line of a compiler's log that says why.
std::string reasonIn(llvm::StringRef log);

/// The folders of CUDA installations, most wanted first: CUDA_HOME, then the usual places. They may not exist.
std::vector<std::string> cudaFolders();
/// Runs a program in no shell; its own temporary files go to `folder` when there is one. Out: its exit status (127 or
/// negative when it cannot be started, crashes or takes too long) and all it printed.
struct ProgramRun {
  int status = 127;
  std::string output;
};
llvm::Expected<ProgramRun> runProgram(llvm::StringRef program, llvm::ArrayRef<std::string> arguments,
                                      llvm::StringRef folder = "", unsigned seconds = 600);
/// What it says to `--version` and the like, which takes no time.
llvm::Expected<ProgramRun> askProgram(llvm::StringRef program, const char *question);

} // namespace tare::cuda
