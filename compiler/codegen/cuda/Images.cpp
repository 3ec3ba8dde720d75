// One task per kernel and architecture, on some threads; what goes wrong is told for the first such task in order.
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

llvm::Error refused(const Toolkit &toolkit, const KernelText &kernel, llvm::StringRef architecture,
                    llvm::StringRef text, llvm::StringRef log) {
  auto failure = fail(ExitCode::Environment, toolkit.name + " failed on the generated kernel " + kernel.name + " for " +
                                                 architecture.str() + ": " + reasonIn(log));
  auto folder = TemporaryFolder::create("cuda");
  if (!folder)
    return llvm::consumeError(folder.takeError()),
           failure.withHint("its text could not be kept: no temporary folder; set TMPDIR to one that can be written");
  for (auto &[name, bytes] : {std::pair(kernel.name + ".cu", text), std::pair(std::string("log"), log)})
    llvm::consumeError(folder->write(name, bytes).takeError());
  std::string source = folder->path(kernel.name + ".cu");
  return failure.inFile(source).withHint("the text and the compiler's log are kept in " + std::move(*folder).keep() +
                                         "; with a CUDA Toolkit from 11.8 on this is a bug: please report them");
}

/// A kernel for one architecture: one call of the compiler, unless the cache has all that is wanted of it.
struct Task {
  size_t kernel;
  std::vector<std::string> wanted; // images: a cubin's name first, then that of its PTX
  std::vector<CachedImage> images; // of `wanted`, in the end
  std::string log;
  std::optional<llvm::Error> error; // of the machine, not of the text
  bool made = false;
};

/// Does tasks, on any thread.
class Maker {
public:
  Maker(const Program &program, const Toolkit &toolkit, const ImageOptions &options)
      : program(program), toolkit(toolkit), options(options), cache(options.cacheFolder) {
    for (auto &k : program.kernels)
      texts.push_back(flatten("#line 1 \"" + k.name + ".cu\"\n" + k.text));
  }
  const std::string &text(size_t kernel) const { return texts[kernel]; }
  std::string complaint() const { return cache.complaint(); }
  /// False when nothing after it needs to be tried.
  bool run(Task &task) { return reuse(task) || make(task); }

private:
  std::string keyOf(const Task &task, const std::string &image) const {
    return CubinCache::key({texts[task.kernel], image, toolkit.identity});
  }
  bool reuse(Task &task) const {
    for (auto &image : task.wanted) {
      auto found = cache.find(keyOf(task, image));
      if (!found) return task.images.clear(), false;
      task.images.push_back(std::move(*found));
    }
    return true;
  }
  bool make(Task &task) {
    const std::string &name = program.kernels[task.kernel].name;
    if (options.working) options.working(task.wanted.front() + " " + name);
    auto outcome = toolkit.compile(name, texts[task.kernel], task.wanted.front());
    if (!outcome) return task.error = outcome.takeError(), false;
    task.log = std::move(outcome->log);
    if (!outcome->good) return false;
    for (auto &image : task.wanted) {
      const bool isPtx = image[0] == 'c';
      std::string &bytes = isPtx ? outcome->ptx : outcome->cubin;
      if (!isImage(bytes, image, name)) {
        task.log = (bytes.empty() ? "the compiler left no result\n" : "the result is neither a cubin nor PTX of this kernel\n") + task.log;
        return task.images.clear(), false;
      }
      if (isPtx) bytes.push_back('\0');
      task.images.push_back({std::move(bytes), isPtx ? std::nullopt : parseResources(task.log, name)});
    }
    task.made = true;
    for (size_t i = 0; i < task.wanted.size(); ++i)
      cache.keep(keyOf(task, task.wanted[i]), task.images[i]);
    return true;
  }

  const Program &program;
  const Toolkit &toolkit;
  const ImageOptions &options;
  CubinCache cache;
  std::vector<std::string> texts;
};

/// One per kernel and architecture that is compiled for, architecture by architecture. The PTX of an engine comes from
/// the calls that make its cubins of the same architecture.
std::vector<Task> tasksFor(llvm::ArrayRef<std::string> images, size_t kernels) {
  std::vector<std::vector<std::string>> calls;
  for (auto &image : images) {
    auto cubin = llvm::find_if(calls, [&](auto &call) {
      return architectureNumber(call.front()) == architectureNumber(image);
    });
    if (cubin != calls.end())
      cubin->push_back(image);
    else
      calls.push_back({image});
  }
  std::vector<Task> tasks;
  for (auto &call : calls)
    for (size_t kernel = 0; kernel < kernels; ++kernel) {
      tasks.emplace_back();
      tasks.back().kernel = kernel, tasks.back().wanted = call;
    }
  return tasks;
}

void runAll(Maker &maker, std::vector<Task> &tasks, size_t threads) {
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  auto work = [&] {
    for (size_t i; !stop && (i = next++) < tasks.size();)
      if (!maker.run(tasks[i])) stop = true;
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(threads, tasks.size()); ++i)
    helpers.emplace_back(work);
  work();
  for (auto &helper : helpers)
    helper.join();
}

/// What went wrong in the first task in order.
llvm::Error firstError(const Maker &maker, const Program &program, const Toolkit &toolkit, std::vector<Task> &tasks) {
  std::optional<llvm::Error> first;
  for (Task &task : tasks) {
    if (first && task.error)
      llvm::consumeError(std::move(*task.error));
    else if (task.error)
      first = std::move(task.error);
    else if (!first && task.images.empty() && !task.log.empty())
      first = refused(toolkit, program.kernels[task.kernel], task.wanted.front(), maker.text(task.kernel), task.log);
  }
  return first ? std::move(*first) : llvm::Error::success();
}

std::string spillWarning(const KernelText &kernel, const std::string &architecture, const KernelResources &r) {
  return kernel.name + " spills registers on " + architecture + ": " + std::to_string(r.spillStores) +
         " bytes stored, " + std::to_string(r.spillLoads) + " loaded per thread";
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
  Maker maker(program, toolkit, options);
  std::vector<Task> tasks = tasksFor(*names, program.kernels.size());
  runAll(maker, tasks, options.threads);
  if (auto error = firstError(maker, program, toolkit, tasks)) return error;

  for (auto &name : *names)
    program.images.push_back({name, {}, {}});
  for (Task &task : tasks)
    for (size_t i = 0; i < task.wanted.size(); ++i) {
      (task.made ? program.compiled : program.reused) += 1;
      const KernelText &kernel = program.kernels[task.kernel];
      if (auto &r = task.images[i].resources; r && r->spillStores + r->spillLoads > 0 && isHot(kernel))
        program.warnings.push_back(spillWarning(kernel, task.wanted[i], *r));
      Image &image = *llvm::find_if(program.images, [&](auto &one) { return one.architecture == task.wanted[i]; });
      image.resources.push_back(task.images[i].resources);
      image.binaries.push_back(std::move(task.images[i].bytes));
    }
  if (toolkit.known.empty())
    program.warnings.push_back(
        "no CUDA Toolkit was found: " + toolkit.name + " made PTX of " + llvm::join(*names, ", ") +
        " only, which the driver compiles when the engine is opened; no cubins, no resource report");
  if (std::string complaint = maker.complaint(); !complaint.empty())
    program.cacheTrouble = "kernels were not kept in the cache: " + complaint;
  return llvm::Error::success();
}

} // namespace tare::cuda
