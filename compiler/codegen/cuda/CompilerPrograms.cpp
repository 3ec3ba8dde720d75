// nvcc and clang-19 as programs: text in a temporary folder, the result beside it. The folder's name is in no result:
// texts name their own files by #line.
#include "compiler/codegen/cuda/KernelSources.h"
#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Toolkit.h"
#include "compiler/graph/Failure.h"
#include "compiler/graph/TemporaryFolder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include <cstdlib>

namespace tare::cuda {
namespace {

std::string contentsOf(const std::string &file) {
  auto bytes = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return bytes ? (*bytes)->getBuffer().str() : "";
}

class Program : public Toolkit {
public:
  std::vector<std::string> flags;

protected:
  /// Runs it on `text` in `folder`; the result is kernel.out there. Out: good and log.
  llvm::Expected<Outcome> run(const TemporaryFolder &folder, llvm::StringRef text,
                              llvm::ArrayRef<std::string> target) const {
    auto source = folder.write("kernel.cu", text);
    if (!source) return source.takeError();
    std::vector<std::string> arguments(flags);
    arguments.insert(arguments.end(), target.begin(), target.end());
    for (auto &word : {*source, std::string("-o"), folder.path("kernel.out")})
      arguments.push_back(word);
    auto run = runProgram(place, arguments, folder.path());
    if (!run) return run.takeError();
    Outcome outcome;
    outcome.good = run->status == 0;
    outcome.log = std::move(run->output);
    if (!outcome.good && outcome.log.empty()) outcome.log = "status " + std::to_string(run->status);
    return outcome;
  }
};

class Nvcc : public Program {
public:
  /// The cubin; the PTX that it is assembled from is kept beside it.
  llvm::Expected<Outcome> compile(llvm::StringRef, llvm::StringRef text, llvm::StringRef architecture) const override {
    auto folder = TemporaryFolder::create("cuda");
    if (!folder) return folder.takeError();
    auto outcome =
        run(*folder, text, {"-arch=" + architecture.str(), "-cubin", "--keep", "--keep-dir=" + folder->path()});
    if (!outcome || !outcome->good) return outcome;
    outcome->cubin = contentsOf(folder->path("kernel.out"));
    outcome->ptx = contentsOf(folder->path("kernel.ptx"));
    return outcome;
  }
};

class Clang : public Program {
public:
  llvm::Expected<Outcome> compile(llvm::StringRef, llvm::StringRef text, llvm::StringRef architecture) const override {
    auto folder = TemporaryFolder::create("cuda");
    if (!folder) return folder.takeError();
    // The oldest PTX version that has the architecture, so that old drivers take it; not what a CUDA installation
    // nearby suggests.
    bool hopper = architectureNumber(architecture) >= 90;
    auto outcome = run(*folder, (kernelSource("kernels/cuda/clang.cuh") + "\n" + text).str(),
                       {hopper ? "--cuda-gpu-arch=sm_90" : "--cuda-gpu-arch=sm_80",
                        hopper ? "--cuda-feature=+ptx78" : "--cuda-feature=+ptx70"});
    if (outcome && outcome->good) outcome->ptx = contentsOf(folder->path("kernel.out"));
    return outcome;
  }
};

/// The programs of that name in PATH and in `folders`, each file once.
std::vector<std::string> programs(const char *name, const std::vector<std::string> &folders) {
  std::vector<std::string> paths, files;
  std::vector<llvm::StringRef> places(folders.begin(), folders.end());
  auto add = [&](llvm::ErrorOr<std::string> found) {
    llvm::SmallString<128> file;
    if (!found || llvm::sys::fs::real_path(*found, file) || llvm::is_contained(files, file.str())) return;
    paths.push_back(*found), files.push_back(file.str().str());
  };
  add(llvm::sys::findProgramByName(name));
  for (auto &place : places)
    add(llvm::sys::findProgramByName(name, place));
  return paths;
}
/// A file by a name that may lack its folder; "" when it cannot be run.
std::string runnable(const std::string &name) {
  auto found = llvm::sys::findProgramByName(name);
  return found && llvm::sys::fs::can_execute(*found) ? *found : "";
}
llvm::Error broken(const char *name, const std::string &path, const ProgramRun &run) {
  std::string said = llvm::StringRef(run.output).trim().split('\n').first.str();
  return fail(ExitCode::Environment, std::string(name) + " does not say its version (status " +
                                         std::to_string(run.status) + ")" + (said.empty() ? "" : ": " + said))
      .inFile(path)
      .withHint(std::string("repair the installation, or set TARE_") +
                (llvm::StringRef(name) == "nvcc" ? "NVCC" : "CLANG") + "=none to do without");
}

std::vector<std::string> nvccPlaces() {
  std::vector<std::string> folders;
  for (auto &folder : cudaFolders())
    folders.push_back(folder + "/bin");
  return programs("nvcc", folders);
}
std::vector<std::string> clangPlaces() { return programs("clang-19", {"/usr/lib/llvm-19/bin", "/usr/bin"}); }

llvm::Expected<std::unique_ptr<Toolkit>> takeNvcc(const std::string &place) {
  std::string path = runnable(place);
  if (path.empty()) return nullptr;
  auto version = askProgram(path, "--version");
  if (!version) return version.takeError();
  llvm::SmallVector<llvm::StringRef> number;
  if (version->status != 0 || !llvm::Regex("release ([0-9.]+)").match(version->output, &number))
    return broken("nvcc", path, *version);
  auto toolkit = std::make_unique<Nvcc>();
  toolkit->name = "nvcc " + number[1].str();
  auto list = askProgram(path, "--list-gpu-arch"); // since CUDA 11.0
  if (!list) return list.takeError();
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(list->output).split(lines, '\n');
  for (auto line : lines)
    if (line.trim().starts_with("compute_"))
      toolkit->known.push_back("sm_" + std::to_string(architectureNumber(line.trim())));
  if (list->status != 0 || toolkit->known.empty()) return broken("nvcc", path, *list);
  toolkit->place = path;
  toolkit->flags = {"-std=c++17", "-w", "-fmad=false", "-Xptxas", "-v"};
  toolkit->identity = version->output + " " + llvm::join(toolkit->flags, " ");
  return toolkit;
}

llvm::Expected<ClangProgram> takeClangProgram(const std::string &place) {
  std::string path = runnable(place);
  if (path.empty()) return ClangProgram{};
  auto version = askProgram(path, "--version");
  if (!version) return version.takeError();
  llvm::SmallVector<llvm::StringRef> number;
  if (version->status != 0 || !llvm::Regex("clang version ([0-9.]+)").match(version->output, &number))
    return broken("clang-19", path, *version);
  return ClangProgram{path, number[1].str(), llvm::StringRef(version->output).split('\n').first.str()};
}

llvm::Expected<std::unique_ptr<Toolkit>> takeClang(const std::string &place) {
  auto program = takeClangProgram(place);
  if (!program) return program.takeError();
  if (program->path.empty()) return nullptr;
  auto toolkit = std::make_unique<Clang>();
  toolkit->name = "clang " + program->number;
  toolkit->place = program->path;
  toolkit->flags = {"-x",
                    "cuda",
                    "-std=c++17",
                    "-O2",
                    "--cuda-device-only",
                    "-nocudainc",
                    "-nocudalib",
                    "--cuda-path=/nonexistent",
                    "-ffp-contract=off",
                    "-fno-ident",
                    "-w",
                    "-S"};
  toolkit->identity = program->version + " " + llvm::join(toolkit->flags, " ") + " " + kernelSource("kernels/cuda/clang.cuh").str();
  return toolkit;
}
} // namespace

Compiler nvccCompiler() { return {"TARE_NVCC", nvccPlaces, takeNvcc}; }
Compiler clangCompiler() { return {"TARE_CLANG", clangPlaces, takeClang}; }

llvm::Expected<ClangProgram> findClangProgram() {
  const char *own = std::getenv("TARE_CLANG");
  if (own && llvm::StringRef(own) == "none") return ClangProgram{};
  if (own && *own) {
    auto named = takeClangProgram(own);
    if (!named || !named->path.empty()) return named;
    return fail(ExitCode::Environment, "the compiler that TARE_CLANG names is not there").inFile(own);
  }
  auto places = clangPlaces();
  if (places.empty()) return ClangProgram{};
  return takeClangProgram(places.front());
}

} // namespace tare::cuda
