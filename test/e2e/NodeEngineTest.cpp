// ONNX's backend node tests compiled and run through engines, in one process and for one ISA level. In: Debian's libonnx-testdata. Must hold: every test
// whose ops are in the op table gives ONNX's own results and shapes and dtypes, or is listed in node-exclusions.txt; a listed one that passes is an error.
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/engine/EngineWriter.h"
#include "compiler/import/Import.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Pipeline.h"
#include "test/e2e/NodeData.h"
#include "test/support/EngineRunner.h"
#include "test/support/TempDir.h"
#include <cstdlib>

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
  auto kernels = codegen::emitKernels(*imported->module);
  if (!kernels) return "kernels: " + llvm::toString(kernels.takeError());
  auto code = compileForLevels(**kernels, options.levels, 1);
  if (!code) return "code: " + llvm::toString(code.takeError());
  EngineContents contents;
  contents.planned = *imported->module;
  contents.code = std::move(*code);
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
  auto excluded = readExclusions(TARE_SOURCE "/test/e2e/node-exclusions.txt", "engine");
  __builtin_cpu_init();
  std::string level = __builtin_cpu_supports("avx512f") ? "x86-64-v4" : "x86-64-v3";
  const char *only = std::getenv("TARE_NODE_TESTS"); // a part of the names, when looking for a fault
  TempDir dir;
  unsigned passed = 0, unsupported = 0;
  std::vector<std::string> names = nodeTestNames();
  ASSERT_GT(names.size(), 900u) << "package libonnx-testdata is not installed";
  const char *share = std::getenv("TARE_NODE_SHARE"); // "k/n": every n-th test, so that ctest can run the halves side by side
  unsigned number = 0, part = share ? unsigned(std::atoi(share)) : 0, parts = share && std::strchr(share, '/') ? unsigned(std::atoi(std::strchr(share, '/') + 1)) : 1;
  for (const std::string &name : names) {
    if (number++ % std::max(parts, 1u) != part) continue;
    if (only && name.find(only) == std::string::npos) continue;
    std::string folder = std::string(kNodeTests) + "/" + name, model = folder + "/model.onnx";
    auto coverage = importCoverage(model);
    std::string why;
    if (!coverage) why = llvm::toString(coverage.takeError());
    else if (llvm::any_of(*coverage, [](const OpCoverage &c) { return !c.supported; })) {
      ++unsupported;
      continue;
    }
    NodeTest test;
    if (why.empty()) why = readNodeTest(folder, test);
    if (why.empty()) why = compileTest(model, dir.path("x.tare"), level);
    if (why.find("depends on data") != std::string::npos && test.inputs.size() == 1 && bindConstants(model, dir.path("model.onnx"), test.inputs[0]))
      why = compileTest(dir.path("model.onnx"), dir.path("x.tare"), level);
    if (why.empty()) why = runTest(test, dir.path("x.tare"));
    bool listed = excluded.count(name);
    if (why.empty() && !listed) ++passed;
    if (!why.empty() && !listed) ADD_FAILURE() << name << ": " << why;
    if (why.empty() && listed) ADD_FAILURE() << name << " passes, but node-exclusions.txt lists it: " << excluded[name];
  }
  std::cout << passed << " pass, " << excluded.size() << " are listed with a reason, " << unsupported << " use ops that are not in the table\n";
}
