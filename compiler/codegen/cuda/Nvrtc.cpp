// NVRTC by dlopen: no header and no library of CUDA is needed to build. The declarations are those of nvrtc.h, which
// has kept them since CUDA 11.2.
#include "compiler/codegen/cuda/Toolkit.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <dlfcn.h>

namespace tare::cuda {
namespace {

struct Functions {
  int (*version)(int *, int *);
  int (*countArchitectures)(int *);
  int (*architectures)(int *);
  int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(void *, int, const char *const *);
  int (*destroy)(void **);
  int (*logSize)(void *, size_t *);
  int (*log)(void *, char *);
  int (*cubinSize)(void *, size_t *);
  int (*cubin)(void *, char *);
  int (*ptxSize)(void *, size_t *);
  int (*ptx)(void *, char *);
  const char *(*errorText)(int);
};

constexpr llvm::StringLiteral flags[] = {"--std=c++17", "--fmad=false", "--ptxas-options=-v", "--disable-warnings"};

class Nvrtc : public Toolkit {
public:
  explicit Nvrtc(const Functions &f) : f(f) {}

  llvm::Expected<Outcome> compile(llvm::StringRef kernel, llvm::StringRef text,
                                  llvm::StringRef architecture) const override {
    Outcome outcome;
    void *program = nullptr;
    std::string file = kernel.str() + ".cu", target = "--gpu-architecture=" + architecture.str();
    if (int code = f.create(&program, text.str().c_str(), file.c_str(), 0, nullptr, nullptr)) {
      outcome.log = f.errorText(code);
      return outcome;
    }
    std::vector<const char *> options{target.c_str()};
    for (auto &flag : flags)
      options.push_back(flag.data());
    int code = f.compile(program, static_cast<int>(options.size()), options.data());
    outcome.log = read(program, f.logSize, f.log);
    if (outcome.log.empty() && code) outcome.log = f.errorText(code);
    if (!code) outcome.cubin = read(program, f.cubinSize, f.cubin), outcome.ptx = read(program, f.ptxSize, f.ptx);
    outcome.ptx = llvm::StringRef(outcome.ptx).rtrim('\0').str();
    outcome.good = !code;
    f.destroy(&program);
    return outcome;
  }

private:
  static std::string read(void *program, int (*size)(void *, size_t *), int (*get)(void *, char *)) {
    size_t bytes = 0;
    std::string text;
    if (size(program, &bytes) || !bytes) return text;
    text.resize(bytes);
    if (get(program, text.data())) text.clear();
    return text;
  }
  Functions f;
};

/// Files of the CUDA installations, each once, then what the loader finds by itself.
std::vector<std::string> nvrtcPlaces() {
  std::vector<std::string> names, files;
  for (auto &folder : cudaFolders())
    for (const char *inside : {"/lib64/", "/lib/"})
      for (const char *file : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) {
        llvm::SmallString<128> real;
        if (llvm::sys::fs::real_path(folder + inside + file, real) || llvm::is_contained(files, real.str())) continue;
        names.push_back(folder + inside + file), files.push_back(real.str().str());
      }
  for (const char *file : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    names.push_back(file);
  return names;
}

/// The version has no third number; builds differ in their files.
std::string buildOf(const Functions &f) {
  llvm::sys::fs::file_status status;
  Dl_info place{};
  if (!dladdr(reinterpret_cast<void *>(f.version), &place) || llvm::sys::fs::status(place.dli_fname, status)) return "";
  return std::to_string(status.getSize()) + " " +
         std::to_string(status.getLastModificationTime().time_since_epoch().count());
}

/// The library stays loaded: threads of NVRTC may outlive a call.
llvm::Expected<std::unique_ptr<Toolkit>> takeNvrtc(const std::string &place) {
  void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library && place.find('/') == std::string::npos) return nullptr;
  if (!library) {
    const char *why = dlerror();
    return fail(ExitCode::Environment, std::string("this NVRTC cannot be loaded: ") + (why ? why : "unknown reason"))
        .inFile(place)
        .withHint("name libnvrtc.so of a CUDA Toolkit with TARE_NVRTC, or \"none\" to use nvcc or clang-19");
  }
  Functions f{};
  bool whole = true;
  auto find = [&](auto &to, const char *symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    whole &= to != nullptr;
  };
  find(f.version, "nvrtcVersion"), find(f.create, "nvrtcCreateProgram"), find(f.compile, "nvrtcCompileProgram"),
      find(f.destroy, "nvrtcDestroyProgram");
  find(f.logSize, "nvrtcGetProgramLogSize"), find(f.log, "nvrtcGetProgramLog"), find(f.ptxSize, "nvrtcGetPTXSize"),
      find(f.ptx, "nvrtcGetPTX");
  find(f.cubinSize, "nvrtcGetCUBINSize"), find(f.cubin, "nvrtcGetCUBIN"), find(f.errorText, "nvrtcGetErrorString");
  find(f.countArchitectures, "nvrtcGetNumSupportedArchs"), find(f.architectures, "nvrtcGetSupportedArchs");
  int major = 0, minor = 0, count = 0;
  if (!whole || f.version(&major, &minor) || f.countArchitectures(&count) || count < 1)
    return fail(ExitCode::Environment, "this NVRTC is older than CUDA 11.2, or damaged")
        .inFile(place)
        .withHint("install the CUDA Toolkit 11.8 or later, or set TARE_NVRTC=none to use nvcc or clang-19");
  std::vector<int> numbers(static_cast<size_t>(count));
  f.architectures(numbers.data());
  auto toolkit = std::make_unique<Nvrtc>(f);
  for (int number : numbers)
    toolkit->known.push_back("sm_" + std::to_string(number));
  toolkit->name = "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
  toolkit->place = place;
  toolkit->identity = toolkit->name + " " + buildOf(f) + " " + llvm::join(std::begin(flags), std::end(flags), " ");
  return toolkit;
}
} // namespace

Compiler nvrtcCompiler() { return {"TARE_NVRTC", nvrtcPlaces, takeNvrtc}; }

} // namespace tare::cuda
