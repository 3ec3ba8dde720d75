// nvcc and clang-19 as programs: text in a temporary folder, the result beside it. The folder's name is in no result:
// texts name their own files by #line.
#include "compiler/codegen/cuda/KernelSources.h"
#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Toolkit.h"
#include "compiler/graph/Failure.h"
#include "compiler/graph/TemporaryFolder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include <cstdlib>

namespace tare::cuda {
namespace {

class Program : public Toolkit {
public:
  std::string path;
  std::vector<std::string> flags;
  virtual std::vector<std::string> target(llvm::StringRef architecture) const = 0;

  llvm::Expected<Outcome> compile(llvm::StringRef, llvm::StringRef text, llvm::StringRef architecture) const override {
    auto folder = TemporaryFolder::create("cuda");
    if (!folder) return folder.takeError();
    auto source = folder->write("kernel.cu", text);
    if (!source) return source.takeError();
    const std::string result = folder->path("kernel.out");
    std::vector<std::string> arguments(flags);
    for (auto &word : target(architecture))
      arguments.push_back(word);
    for (auto &word : {*source, std::string("-o"), result})
      arguments.push_back(word);
    auto run = runProgram(path, arguments, folder->path());
    if (!run) return run.takeError();
    Outcome outcome;
    outcome.log = std::move(run->output);
    if (run->status != 0) {
      if (outcome.log.empty()) outcome.log = "status " + std::to_string(run->status);
      return outcome;
    }
    auto bytes = llvm::MemoryBuffer::getFile(result, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    outcome.good = bytes && (*bytes)->getBufferSize() > 0;
    if (outcome.good)
      outcome.bytes = (*bytes)->getBuffer().str();
    else
      outcome.log += "the compiler left no result";
    return outcome;
  }
};

class Nvcc : public Program {
public:
  std::vector<std::string> target(llvm::StringRef architecture) const override {
    return {"-arch=" + architecture.str(), architecture.starts_with("sm_") ? "-cubin" : "-ptx"};
  }
};

class Clang : public Program {
public:
  std::vector<std::string> target(llvm::StringRef architecture) const override {
    // The oldest PTX version that has the architecture, so that old drivers take it; not what a CUDA installation
    // nearby suggests.
    bool hopper = architectureNumber(architecture) >= 90;
    return {hopper ? "--cuda-gpu-arch=sm_90" : "--cuda-gpu-arch=sm_80",
            hopper ? "--cuda-feature=+ptx78" : "--cuda-feature=+ptx70"};
  }
  llvm::Expected<Outcome> compile(llvm::StringRef kernel, llvm::StringRef text,
                                  llvm::StringRef architecture) const override {
    return Program::compile(kernel, (kernelSource("kernels/cuda/clang.cuh") + "\n" + text).str(), architecture);
  }
};

/// The program that an environment variable names, else the first that PATH and `folders` have; "" when there is none.
llvm::Expected<std::string> locate(const char *variable, const char *name, const std::vector<std::string> &folders) {
  const char *own = std::getenv(variable);
  if (own && llvm::StringRef(own) == "none") return "";
  if (own && *own) {
    auto found = llvm::sys::findProgramByName(own);
    if (found && llvm::sys::fs::can_execute(*found)) return *found;
    return fail(ExitCode::Environment, std::string("the compiler that ") + variable + " names is not there")
        .inFile(own)
        .withHint(std::string("name ") + name + " of an installation, or \"none\" to do without");
  }
  auto found = llvm::sys::findProgramByName(name);
  std::vector<llvm::StringRef> places(folders.begin(), folders.end());
  if (!found) found = llvm::sys::findProgramByName(name, places);
  return found ? *found : "";
}
llvm::Error broken(const char *name, const std::string &path, const ProgramRun &run) {
  return fail(ExitCode::Environment, std::string(name) + " does not say its version (status " +
                                         std::to_string(run.status) +
                                         "): " + llvm::StringRef(run.output).trim().split('\n').first.str())
      .inFile(path)
      .withHint(std::string("repair the installation, or set TARE_") +
                (llvm::StringRef(name) == "nvcc" ? "NVCC" : "CLANG") + "=none to do without");
}
} // namespace

llvm::Expected<std::unique_ptr<Toolkit>> findNvcc() {
  std::vector<std::string> folders;
  for (auto &folder : cudaFolders())
    folders.push_back(folder + "/bin");
  auto path = locate("TARE_NVCC", "nvcc", folders);
  if (!path) return path.takeError();
  if (path->empty()) return nullptr;
  auto version = runProgram(*path, {"--version"});
  if (!version) return version.takeError();
  llvm::SmallVector<llvm::StringRef> number;
  if (version->status != 0 || !llvm::Regex("release ([0-9.]+)").match(version->output, &number))
    return broken("nvcc", *path, *version);
  auto toolkit = std::make_unique<Nvcc>();
  toolkit->name = "nvcc " + number[1].str();
  auto list = runProgram(*path, {"--list-gpu-arch"}); // since CUDA 11.0
  if (!list) return list.takeError();
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(list->output).split(lines, '\n');
  for (auto line : lines)
    if (line.trim().starts_with("compute_"))
      toolkit->known.push_back("sm_" + std::to_string(architectureNumber(line.trim())));
  if (list->status != 0 || toolkit->known.empty()) return broken("nvcc", *path, *list);
  toolkit->path = *path;
  toolkit->flags = {"-std=c++17", "-w", "-Xptxas", "-v"};
  toolkit->identity = version->output + " " + llvm::join(toolkit->flags, " ");
  return toolkit;
}

llvm::Expected<std::unique_ptr<Toolkit>> findClang() {
  auto path = locate("TARE_CLANG", "clang-19", {"/usr/lib/llvm-19/bin"});
  if (!path) return path.takeError();
  if (path->empty()) return nullptr;
  auto version = runProgram(*path, {"--version"});
  if (!version) return version.takeError();
  llvm::SmallVector<llvm::StringRef> number;
  if (version->status != 0 || !llvm::Regex("version ([0-9.]+)").match(version->output, &number))
    return broken("clang-19", *path, *version);
  auto toolkit = std::make_unique<Clang>();
  toolkit->name = "clang " + number[1].str();
  toolkit->path = *path;
  toolkit->flags = {"-x",
                    "cuda",
                    "-std=c++17",
                    "-O2",
                    "--cuda-device-only",
                    "-nocudainc",
                    "-nocudalib",
                    "--cuda-path=/nonexistent",
                    "-fno-ident",
                    "-w",
                    "-S"};
  toolkit->identity = llvm::StringRef(version->output).split('\n').first.str() + " " + llvm::join(toolkit->flags, " ") +
                      " " + kernelSource("kernels/cuda/clang.cuh").str();
  return toolkit;
}

} // namespace tare::cuda
