// Which compilers there are, in order of preference, and how a program is run. The temporary folder of a run is gone
// when it ends.
#include "compiler/codegen/cuda/Toolkit.h"
#include "compiler/graph/Failure.h"
#include "compiler/graph/TemporaryFolder.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <unistd.h>
#include <cstdlib>

namespace tare::cuda {

llvm::ArrayRef<Architecture> knownArchitectures() {
  static constexpr Architecture known[] = {
      {"sm_80", "11.0"},  {"sm_86", "11.1"},  {"sm_87", "11.4"},  {"sm_89", "11.8"},  {"sm_90", "11.8"},
      {"sm_100", "12.8"}, {"sm_103", "12.9"}, {"sm_110", "13.0"}, {"sm_120", "12.8"}, {"sm_121", "12.9"}};
  return known;
}

int architectureNumber(llvm::StringRef name) {
  int number = 0;
  name.rsplit('_').second.getAsInteger(10, number);
  return number;
}

std::vector<std::string> cudaFolders() {
  std::vector<std::string> folders;
  if (const char *home = std::getenv("CUDA_HOME"); home && *home) folders.push_back(home);
  folders.push_back("/usr/local/cuda");
  folders.push_back("/opt/cuda");
  return folders;
}

llvm::Expected<std::unique_ptr<Toolkit>> findToolkit() {
  for (auto *find : {findNvrtc, findNvcc, findClang}) {
    auto found = find();
    if (!found || *found) return found;
  }
  return fail(ExitCode::Environment,
              "the target cuda needs a compiler of CUDA text, and there is none: no libnvrtc, no nvcc, no clang-19")
      .withHint("install the CUDA Toolkit 11.8 or later (CUDA_HOME names its folder), or for PTX without cubins "
                "clang-19 (Debian: apt install "
                "clang-19); TARE_NVRTC, TARE_NVCC, TARE_CLANG name other ones");
}

llvm::Expected<ProgramRun> runProgram(llvm::StringRef program, llvm::ArrayRef<std::string> arguments,
                                      llvm::StringRef folder) {
  llvm::SmallString<128> log;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile(temporaryName("cuda"), "log", log))
    return fail(ExitCode::Io, "cannot make a temporary file: " + error.message())
        .withHint("set TMPDIR to a folder that can be written");
  auto cleanUp = llvm::make_scope_exit([&] { llvm::sys::fs::remove(log); });
  std::vector<llvm::StringRef> list{program};
  list.insert(list.end(), arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string message;
  ProgramRun run;
  const std::string temporaries = ("TMPDIR=" + folder).str();
  std::optional<std::vector<llvm::StringRef>> variables;
  if (!folder.empty()) {
    variables.emplace({llvm::StringRef(temporaries)});
    for (char **v = environ; *v; ++v)
      if (!llvm::StringRef(*v).starts_with("TMPDIR=")) variables->push_back(*v);
  }
  std::optional<llvm::ArrayRef<llvm::StringRef>> environment;
  if (variables) environment = *variables;
  run.status = llvm::sys::ExecuteAndWait(program, list, environment, redirects, /*SecondsToWait=*/600, 0, &message);
  if (auto said = llvm::MemoryBuffer::getFile(log)) run.output = (*said)->getBuffer().str();
  if (run.output.empty()) run.output = message;
  return run;
}

} // namespace tare::cuda
