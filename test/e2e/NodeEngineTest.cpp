// ONNX's backend node tests compiled and run through engines, in one process and for one ISA level. In: Debian's libonnx-testdata. Must hold: every test
// whose ops are in the op table gives ONNX's own results and shapes and dtypes, or is listed in node-exclusions.txt; a listed one that passes is an error.
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/codegen/cuda/Emulator.h"
#include "compiler/engine/EngineWriter.h"
#include "compiler/import/Import.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Pipeline.h"
#include "test/e2e/NodeData.h"
#include "test/support/EngineRunner.h"
#include "test/support/TempDir.h"

using namespace tare;
using namespace tare::test;

namespace {
/// "" or what failed on the way to the engine file.
std::string compileTest(const std::string &model, const std::string &engine, const std::string &level) {
  mlir::MLIRContext context;
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) { said += d.str() + "; "; });
  CompileOptions options;
  options.model = model;
  options.levels = {level};
  options.stopAfter = Phase::Planned;
  auto imported = importModel(context, options);
  if (!imported) return "import: " + llvm::toString(imported.takeError());
  if (mlir::failed(runPipeline(*imported->module, options))) return "passes: " + said;
  EngineContents contents;
  contents.planned = *imported->module;
  if (level == cuda::kEmulatorLevel) {
    auto kernels = cuda::printKernels(*imported->module);
    if (!kernels) return "text: " + llvm::toString(kernels.takeError());
    auto code = cuda::compileForEmulator(*imported->module, *kernels);
    if (!code) return "code: " + llvm::toString(code.takeError());
    contents.code.push_back(std::move(*code));
  } else {
    auto kernels = codegen::emitKernels(*imported->module);
    if (!kernels) return "kernels: " + llvm::toString(kernels.takeError());
    auto code = compileForLevels(**kernels, options.levels, 1);
    if (!code) return "code: " + llvm::toString(code.takeError());
    contents.code = std::move(*code);
  }
  contents.certificate = "none";
  if (auto error = writeEngine(engine, contents)) return "engine: " + llvm::toString(std::move(error));
  return "";
}

std::string runTest(const NodeTest &test, const std::string &path) {
  EngineRunner runner(path);
  if (!runner.good()) return runner.error.message;
  for (size_t set = 0; set < test.outputs.size(); ++set) {
    ArrayMap inputs;
    for (auto &[name, array] : test.inputs[set]) inputs[name] = array;
    ArrayMap outputs = runner.run(inputs);
    if (outputs.empty()) return std::string("run: ") + runner.error.message;
    for (auto &[name, want] : test.outputs[set]) {
      auto got = outputs.find(name);
      if (got == outputs.end()) return "no output " + name;
      if (got->second.dtype != want.dtype) return name + ": " + dtypeName(got->second.dtype).str() + ", expected " + dtypeName(want.dtype).str();
      if (got->second.shape != want.shape) return name + ": another shape";
      if (std::string why = compareArrays(doublesOf(got->second), doublesOf(want)); !why.empty()) return name + ": " + why;
    }
  }
  return "";
}
} // namespace

TEST(NodeTests, EnginesGiveOnnxResults) {
  __builtin_cpu_init();
  std::string level = __builtin_cpu_supports("avx512f") ? "x86-64-v4" : "x86-64-v3";
  if (const char *own = std::getenv("TARE_NODE_LEVEL")) level = own; // cuda-emu: every test through CUDA text, a second or two each
  TempDir dir;
  walkNodeTests("engine", [&](const std::string &model, const NodeTest &test) {
    std::string why = compileTest(model, dir.path("x.tare"), level);
    return why.empty() ? runTest(test, dir.path("x.tare")) : why;
  });
}
