// NVRTC by dlopen: no header and no library of CUDA is needed to build. The declarations are those of nvrtc.h, which
// has kept them since CUDA 11.2.
#include "compiler/codegen/cuda/Toolkit.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <cstdlib>
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

constexpr llvm::StringLiteral flags[] = {"--std=c++17", "--ptxas-options=-v", "--disable-warnings"};

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
    bool ptx = architecture.starts_with("compute_");
    if (!code) outcome.bytes = ptx ? read(program, f.ptxSize, f.ptx) : read(program, f.cubinSize, f.cubin);
    if (ptx) outcome.bytes = llvm::StringRef(outcome.bytes).rtrim('\0').str();
    outcome.good = !code && !outcome.bytes.empty();
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

/// The library stays loaded: threads of NVRTC may outlive a call.
void *open(const std::vector<std::string> &names, std::string &opened) {
  for (auto &name : names)
    if (void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      opened = name;
      return library;
    }
  return nullptr;
}
} // namespace

llvm::Expected<std::unique_ptr<Toolkit>> findNvrtc() {
  const char *own = std::getenv("TARE_NVRTC");
  if (own && llvm::StringRef(own) == "none") return nullptr;
  std::vector<std::string> names;
  if (own && *own)
    names.push_back(own);
  else {
    for (auto &folder : cudaFolders())
      for (const char *inside : {"/lib64/", "/lib/"})
        for (const char *file : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"})
          names.push_back(folder + inside + file);
    for (const char *file : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      names.push_back(file); // wherever the loader finds it
  }
  std::string opened;
  void *library = open(names, opened);
  if (!library && own && *own) {
    const char *why = dlerror();
    return fail(ExitCode::Environment,
                std::string("TARE_NVRTC names a library that cannot be loaded: ") + (why ? why : "unknown reason"))
        .inFile(own)
        .withHint("name libnvrtc.so of a CUDA Toolkit, or \"none\" to use nvcc or clang-19");
  }
  if (!library) return nullptr;
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
    return fail(ExitCode::Environment, "this NVRTC is older than CUDA 11.2")
        .inFile(opened)
        .withHint("install the CUDA Toolkit 11.8 or later, or set TARE_NVRTC=none to use nvcc or clang-19");
  std::vector<int> numbers(static_cast<size_t>(count));
  f.architectures(numbers.data());
  auto toolkit = std::make_unique<Nvrtc>(f);
  for (int number : numbers)
    toolkit->known.push_back("sm_" + std::to_string(number));
  toolkit->name = "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
  // The version has no third number, builds differ in their files.
  llvm::sys::fs::file_status status;
  Dl_info place{};
  std::string build;
  if (dladdr(reinterpret_cast<void *>(f.version), &place) && !llvm::sys::fs::status(place.dli_fname, status))
    build = std::to_string(status.getSize()) + " " +
            std::to_string(status.getLastModificationTime().time_since_epoch().count());
  toolkit->identity = toolkit->name + " " + build + " " + llvm::join(std::begin(flags), std::end(flags), " ");
  return toolkit;
}

} // namespace tare::cuda
