// One task per image of a kernel, on some threads; what goes wrong is told for the first such task in order.
#include "compiler/codegen/cuda/Images.h"
#include "compiler/codegen/cuda/CubinCache.h"
#include "compiler/graph/Failure.h"
#include "compiler/graph/TemporaryFolder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include <atomic>
#include <set>
#include <thread>

namespace tare::cuda {
namespace {

/// The line of a log that says why.
std::string reason(llvm::StringRef log) {
  llvm::SmallVector<llvm::StringRef> lines;
  log.split(lines, '\n', -1, false);
  for (auto line : lines)
    if (line.contains("error") || line.contains("fatal")) return line.trim().str();
  return lines.empty() ? "no message" : lines.front().trim().str();
}

llvm::Error refused(const Toolkit &toolkit, const KernelText &kernel, llvm::StringRef architecture,
                    llvm::StringRef text, llvm::StringRef log) {
  auto failure = fail(ExitCode::Environment, toolkit.name + " failed on the generated kernel " + kernel.name + " for " +
                                                 architecture.str() + ": " + reason(log));
  auto folder = TemporaryFolder::create("cuda");
  if (!folder)
    return llvm::consumeError(folder.takeError()),
           failure.withHint("its text could not be kept: no temporary folder; set TMPDIR to one that can be written");
  for (auto &[name, bytes] : {std::pair(kernel.name + ".cu", text), std::pair(std::string("log"), log)})
    llvm::consumeError(folder->write(name, bytes).takeError());
  std::string source = folder->path(kernel.name + ".cu");
  return failure.inFile(source).withHint("the text and the compiler's log are kept in " + std::move(*folder).keep() +
                                         "; nvcc needs a host compiler (g++) in PATH; else, with a CUDA Toolkit from 11.8 on, "
                                         "this is a bug: please report them");
}

/// Cubins are ELF files, PTX names its entry.
bool looksRight(llvm::StringRef bytes, llvm::StringRef architecture, llvm::StringRef kernel) {
  return architecture.starts_with("sm_") ? bytes.starts_with("\x7f"
                                                             "ELF")
                                         : bytes.contains((".entry " + kernel).str());
}
} // namespace

std::string kindOf(const KernelText &kernel) {
  mlir::func::FuncOp function = kernel.function;
  if (!function) return "";
  auto kind = function->getAttrOfType<mlir::StringAttr>(plan::kKindAttr);
  return kind ? kind.str() : "";
}
bool isHot(const KernelText &kernel) { return llvm::is_contained({"gemm", "attention"}, kindOf(kernel)); }

std::optional<KernelResources> parseResources(llvm::StringRef log, llvm::StringRef kernel) {
  size_t at = log.find(("Compiling entry function '" + kernel + "'").str());
  if (at == llvm::StringRef::npos) return std::nullopt;
  llvm::StringRef own = log.substr(at + 1);
  own = own.take_front(own.find("Compiling entry function '"));
  llvm::SmallVector<llvm::StringRef> m;
  KernelResources r;
  if (!llvm::Regex("Used ([0-9]+) registers([^\n]*)").match(own, &m) || m[1].getAsInteger(10, r.registers))
    return std::nullopt;
  llvm::StringRef used = m[2];
  if (llvm::Regex("([0-9]+) bytes smem").match(used, &m)) m[1].getAsInteger(10, r.sharedBytes);
  if (llvm::Regex("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads").match(own, &m))
    m[1].getAsInteger(10, r.stackBytes), m[2].getAsInteger(10, r.spillStores), m[3].getAsInteger(10, r.spillLoads);
  return r;
}

llvm::Expected<std::vector<std::string>> imagesFor(llvm::ArrayRef<std::string> architectures, const Toolkit &toolkit) {
  std::set<int> numbers, texts;
  for (auto &a : architectures) {
    numbers.insert(architectureNumber(a));
    texts.insert(architectureNumber(a) >= 90 ? 90 : 80);
    if (toolkit.known.empty() || llvm::is_contained(toolkit.known, a)) continue;
    auto row = llvm::find_if(knownArchitectures(), [&](auto &k) { return k.name == a; });
    return fail(ExitCode::Environment,
                toolkit.name + " cannot compile for " + a + "; it knows " + llvm::join(toolkit.known, ", "))
        .withHint("install the CUDA Toolkit " +
                  (row == knownArchitectures().end() ? "of that GPU" : row->since.str() + " or later") +
                  ", or take architectures that this one knows: PTX of the lowest runs on every newer GPU");
  }
  std::vector<std::string> images;
  if (toolkit.known.empty())
    for (int n : texts)
      images.push_back("compute_" + std::to_string(n));
  else {
    for (int n : numbers)
      images.push_back("sm_" + std::to_string(n));
    images.push_back("compute_" + std::to_string(*numbers.begin()));
  }
  return images;
}

llvm::Error compileImages(Program &program, llvm::ArrayRef<std::string> architectures, const Toolkit &toolkit,
                          const ImageOptions &options) {
  auto names = imagesFor(architectures, toolkit);
  if (!names) return names.takeError();
  program.toolkit = toolkit.name;
  std::vector<std::string> texts;
  for (auto &k : program.kernels)
    texts.push_back(flatten("#line 1 \"" + k.name + ".cu\"\n" + k.text));
  struct Task {
    std::optional<CachedImage> image;
    std::string log;
    std::optional<llvm::Error> error; // of the machine, not of the text
    bool made = false;
  };
  const size_t kernels = texts.size(), count = kernels * names->size();
  std::vector<Task> tasks(count);
  CubinCache cache(options.cacheFolder);
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  auto work = [&] {
    for (size_t i; !stop && (i = next++) < count;) {
      Task &task = tasks[i];
      const std::string &architecture = (*names)[i / kernels], &text = texts[i % kernels],
                        &name = program.kernels[i % kernels].name;
      std::string key = CubinCache::key({text, architecture, toolkit.identity});
      task.image = cache.find(key);
      if (task.image) continue;
      if (options.working) options.working(architecture + " " + name);
      auto outcome = toolkit.compile(name, text, architecture);
      if (!outcome) {
        task.error = outcome.takeError();
        stop = true;
        continue;
      }
      task.log = std::move(outcome->log);
      if (outcome->good && !looksRight(outcome->bytes, architecture, name))
        outcome->good = false, task.log = "the result is neither a cubin nor PTX of this kernel\n" + task.log;
      if (!outcome->good) {
        stop = true;
        continue;
      }
      bool ptx = architecture[0] == 'c';
      if (ptx) outcome->bytes.push_back('\0');
      task.image = CachedImage{std::move(outcome->bytes), ptx ? std::nullopt : parseResources(task.log, name)};
      task.made = true;
      cache.keep(key, *task.image);
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>(options.threads, count); ++i)
    helpers.emplace_back(work);
  work();
  for (auto &helper : helpers)
    helper.join();

  std::optional<llvm::Error> first;
  for (size_t i = 0; i < count; ++i) {
    Task &task = tasks[i];
    if (first && task.error)
      llvm::consumeError(std::move(*task.error));
    else if (task.error)
      first = std::move(task.error);
    else if (!first && !task.image && !task.log.empty())
      first = refused(toolkit, program.kernels[i % kernels], (*names)[i / kernels], texts[i % kernels], task.log);
  }
  if (first) return std::move(*first);

  for (size_t a = 0; a < names->size(); ++a) {
    Image image{(*names)[a], {}, {}};
    for (size_t k = 0; k < kernels; ++k) {
      Task &task = tasks[a * kernels + k];
      (task.made ? program.compiled : program.reused) += 1;
      if (auto &r = task.image->resources; r && r->spillStores + r->spillLoads > 0 && isHot(program.kernels[k]))
        program.warnings.push_back(program.kernels[k].name + " spills registers on " + image.architecture + ": " +
                                   std::to_string(r->spillStores) + " bytes stored, " + std::to_string(r->spillLoads) +
                                   " loaded per thread");
      image.resources.push_back(task.image->resources);
      image.binaries.push_back(std::move(task.image->bytes));
    }
    program.images.push_back(std::move(image));
  }
  if (toolkit.known.empty())
    program.warnings.push_back(
        "no CUDA Toolkit was found: " + toolkit.name + " made PTX of " + llvm::join(*names, ", ") +
        " only, which the driver compiles when the engine is opened; no cubins, no resource report");
  if (!cache.complaint().empty())
    program.cacheTrouble = "kernels were not kept in the cache: " + cache.complaint();
  return llvm::Error::success();
}

} // namespace tare::cuda
