// Engines for cuda-emu, compiled in the test's process with choices that the command line does not have. In: a model,
// how its kernels are printed. Out: an engine file, the texts and the plan; or why there is none.
#pragma once
#include "compiler/codegen/cuda/Emulator.h"
#include "compiler/engine/EngineWriter.h"
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Pipeline.h"

namespace tare::test {

inline std::string testData(const std::string &name) { return name.empty() ? "" : std::string(TARE_TEST_DATA) + "/" + name; }

/// A model up to its plan.
struct PlannedModel {
  mlir::MLIRContext context;
  std::optional<ImportedModel> imported; // has the weights that the module names
  std::string error;

  /// `calibration` may be empty.
  explicit PlannedModel(const std::string &path, const std::string &calibration = "") {
    CompileOptions options;
    options.model = path;
    if (!calibration.empty()) options.calibration = calibration;
    options.levels = {cuda::kEmulatorLevel};
    options.stopAfter = Phase::Planned;
    auto model = importModel(context, options);
    if (!model) error = llvm::toString(model.takeError());
    else if (mlir::failed(runPipeline(*model->module, options))) error = "the pipeline fails";
    else imported = std::move(*model);
  }
  bool good() const { return imported.has_value(); }
  mlir::ModuleOp module() { return *imported->module; }
  std::string text() {
    std::string words;
    llvm::raw_string_ostream stream(words);
    module().print(stream);
    return words;
  }
  plan::ProgramOp program() { return *module().getOps<plan::ProgramOp>().begin(); }
};

/// The engine of these kernels; `driver` (may be null) are launches for a driver as well. "", or what went wrong.
inline std::string writeEmulatorEngine(PlannedModel &model, const std::vector<cuda::KernelText> &kernels, const std::string &path, const cuda::Program *driver = nullptr) {
  auto code = cuda::compileForEmulator(model.module(), kernels);
  if (!code) return llvm::toString(code.takeError());
  EngineContents contents;
  contents.planned = model.module();
  contents.code.push_back(std::move(*code));
  contents.cudaSource = cuda::sourceSection(kernels);
  contents.cuda = driver;
  contents.certificate = "none";
  if (auto error = writeEngine(path, contents)) return llvm::toString(std::move(error));
  return "";
}

} // namespace tare::test
