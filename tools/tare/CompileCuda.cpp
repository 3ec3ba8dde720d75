// Texts, images, report (CompileCuda.h). The printer works on the planned module before any target adds to it.
#include "tools/tare/CompileCuda.h"
#include "compiler/codegen/cuda/Emulator.h"
#include "compiler/report/Writers.h"
#include "tools/tare/Progress.h"
#include <fmt/format.h>

namespace tare::cli {

std::vector<std::string> cudaArchitectures(const CompileOptions &options) {
  std::vector<std::string> names;
  for (llvm::StringRef level : options.levels)
    if (level.starts_with("sm_")) names.push_back(level.str());
  return names;
}

static report::Cuda reportOf(const cuda::Program &program) {
  report::Cuda r;
  r.toolkit = program.toolkit, r.precision = program.precision;
  for (auto &image : program.images)
    r.images.push_back(image.architecture);
  bool any = false;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    report::CudaKernel kernel{
        program.kernels[k].name, cuda::kindOf(program.kernels[k]), program.kernels[k].sharedBytes, {}};
    for (auto &image : program.images)
      if (auto &u = image.resources[k])
        kernel.resources.push_back(
            {image.architecture, u->registers, u->sharedBytes, u->stackBytes, u->spillStores, u->spillLoads});
    any |= !kernel.resources.empty();
    r.kernels.push_back(std::move(kernel));
  }
  if (!any)
    r.why = program.kernels.empty()
                ? "the plan has no kernels"
                : "the compiler makes PTX only: the driver's own ptxas decides on registers and spills";
  return r;
}

llvm::Expected<std::unique_ptr<cuda::Toolkit>> findCudaCompiler(const CompileOptions &options, Console &console) {
  std::vector<std::string> architectures = cudaArchitectures(options), passedOver;
  if (architectures.empty()) return nullptr;
  auto toolkit = cuda::findToolkit(passedOver);
  if (!toolkit) return toolkit.takeError();
  if (auto images = cuda::imagesFor(architectures, **toolkit); !images) return images.takeError();
  for (auto &why : passedOver)
    console.warn(report::escapeTerminal(why) + "; " + (*toolkit)->name + " compiles instead");
  return toolkit;
}

llvm::Expected<std::string> cudaCompilers(const CompileOptions &options, const cuda::Toolkit *toolkit) {
  std::string identity = toolkit ? toolkit->identity : "";
  if (!llvm::is_contained(options.levels, cuda::kEmulatorLevel) && !llvm::is_contained(options.levels, cuda::kEmulatorStatsLevel)) return identity;
  auto emulator = cuda::emulatorCompiler();
  if (!emulator) return emulator.takeError();
  return identity + " emulator: " + emulator->version;
}

llvm::Error compileCuda(ImportedModel &model, const CompileOptions &options, const cuda::Toolkit &toolkit,
                        const std::string &cacheFolder, Compiled &compiled, Console &console, Progress *progress) {
  std::vector<std::string> architectures = cudaArchitectures(options);
  if (progress) progress->stage(7);
  auto kernels = cuda::printKernels(*model.module, cuda::precisionOf(options.precision).value_or(cuda::Precision::F32));
  if (!kernels) return kernels.takeError();
  cuda::Program program;
  program.kernels = std::move(*kernels), program.precision = options.precision;
  cuda::ImageOptions how;
  how.threads = options.threads, how.cacheFolder = cacheFolder;
  if (progress) how.working = [progress](const std::string &what) { progress->working(what); };
  if (auto error = cuda::compileImages(program, architectures, toolkit, how)) return error;
  for (auto &warning : program.warnings) {
    console.warn(warning);
    compiled.report.warnings.push_back(warning);
  }
  if (!program.cacheTrouble.empty()) console.warn(program.cacheTrouble);
  if (!cacheFolder.empty())
    console.note(fmt::format("CUDA kernels: {} images compiled, {} from the cache", program.compiled, program.reused));
  compiled.report.cuda = reportOf(program);
  compiled.cuda = std::move(program);
  return llvm::Error::success();
}

} // namespace tare::cli
