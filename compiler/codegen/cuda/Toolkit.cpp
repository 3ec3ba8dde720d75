// Which compilers there are, in order of preference, and how a program is run. The temporary folder of a run is gone
// when it ends.
#include "compiler/codegen/cuda/Toolkit.h"
#include "compiler/graph/Failure.h"
#include "compiler/graph/TemporaryFolder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
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

bool isImage(llvm::StringRef bytes, llvm::StringRef architecture, llvm::StringRef kernel) {
  constexpr llvm::StringLiteral elf = "\x7f"
                                      "ELF";
  return architecture.starts_with("sm_") ? bytes.starts_with(elf) : bytes.contains((".entry " + kernel).str());
}

std::string reasonIn(llvm::StringRef log) {
  llvm::SmallVector<llvm::StringRef> lines;
  log.split(lines, '\n', -1, false);
  for (auto line : lines)
    if (line.contains("error") || line.contains("fatal")) return line.trim().str();
  return lines.empty() ? "no message" : lines.front().trim().str();
}

/// A compiler that says its version may still not work: nvcc without a host compiler, NVRTC without its second library,
/// a program that does nothing. An empty kernel takes all of them through every stage.
static llvm::Error compilesNothing(const Toolkit &toolkit, const char *variable) {
  std::string architecture = toolkit.known.empty() ? "compute_80" : toolkit.known.front();
  for (auto &ours : llvm::reverse(knownArchitectures()))
    if (llvm::is_contained(toolkit.known, ours.name)) architecture = ours.name.str();
  auto outcome = toolkit.compile("tare_probe", "extern \"C\" __global__ void tare_probe() {}\n", architecture);
  if (!outcome) return outcome.takeError();
  bool works = outcome->good && isImage(outcome->ptx, "compute_80", "tare_probe") &&
               (toolkit.known.empty() || isImage(outcome->cubin, architecture, "tare_probe"));
  if (works) return llvm::Error::success();
  return fail(ExitCode::Environment, toolkit.name + " does not compile an empty kernel for " + architecture + ": " +
                                         (outcome->good ? "no result" : reasonIn(outcome->log)))
      .inFile(toolkit.place)
      .withHint(std::string("repair the installation (nvcc needs a host compiler, g++, in PATH), or set ") + variable +
                "=none to do without");
}

static llvm::Expected<std::unique_ptr<Toolkit>> takeWorking(const Compiler &compiler, const std::string &place) {
  auto found = compiler.take(place);
  if (!found || !*found) return found;
  if (auto error = compilesNothing(**found, compiler.variable)) return error;
  return found;
}

/// Of one kind: the one that is named, else the first that works, or null; in `passedOver` what is wrong with others.
static llvm::Expected<std::unique_ptr<Toolkit>> find(const Compiler &compiler, std::vector<std::string> &passedOver) {
  const char *own = std::getenv(compiler.variable);
  if (own && llvm::StringRef(own) == "none") return nullptr;
  if (own && *own) {
    auto named = takeWorking(compiler, own);
    if (!named || *named) return named;
    return fail(ExitCode::Environment, std::string("the compiler that ") + compiler.variable + " names is not there")
        .inFile(own)
        .withHint("name one that is, or \"none\" to do without");
  }
  for (auto &place : compiler.places()) {
    auto found = takeWorking(compiler, place);
    if (found && *found) return found;
    if (found) continue;
    Failure why(ExitCode::Internal, "");
    llvm::handleAllErrors(found.takeError(), [&](const Failure &failure) { why = failure; });
    if (why.code != ExitCode::Environment) return llvm::make_error<Failure>(why); // not the compiler's fault
    passedOver.push_back(why.message + " (" + why.file + ")");
  }
  return nullptr;
}

llvm::Expected<std::unique_ptr<Toolkit>> findToolkit(std::vector<std::string> &passedOver) {
  for (const Compiler &compiler : {nvrtcCompiler(), nvccCompiler(), clangCompiler()}) {
    auto found = find(compiler, passedOver);
    if (!found || *found) return found;
  }
  return fail(ExitCode::Environment,
              "the target cuda needs a compiler of CUDA text, and " +
                  (passedOver.empty() ? "there is none: no libnvrtc, no nvcc, no clang-19"
                                      : "none works: " + llvm::join(passedOver, "; ")))
      .withHint("install the CUDA Toolkit 11.8 or later (CUDA_HOME names its folder), or for PTX without cubins "
                "clang-19 (Debian: apt install "
                "clang-19); TARE_NVRTC, TARE_NVCC, TARE_CLANG name other ones");
}

llvm::Expected<ProgramRun> runProgram(llvm::StringRef program, llvm::ArrayRef<std::string> arguments,
                                      llvm::StringRef folder, unsigned seconds) {
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
  run.status = llvm::sys::ExecuteAndWait(program, list, environment, redirects, seconds, 0, &message);
  if (auto said = llvm::MemoryBuffer::getFile(log)) run.output = (*said)->getBuffer().str();
  if (run.output.empty()) run.output = message;
  return run;
}

llvm::Expected<ProgramRun> askProgram(llvm::StringRef program, const char *question) {
  return runProgram(program, {question}, "", 60);
}

} // namespace tare::cuda
