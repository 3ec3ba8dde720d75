// ONNX's backend node tests through importer and reference evaluator. In: Debian's libonnx-testdata. Must hold: every test whose ops are in the op table
// gives ONNX's own results, or is listed in node-exclusions.txt with a reason; a listed test that passes is an error too.
#include "compiler/import/Import.h"
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "test/e2e/NodeData.h"
#include "test/support/TempDir.h"
#include <gtest/gtest.h>

using namespace tare;
using namespace tare::test;

namespace {
reference::Tensor toTensor(const Array &array, mlir::Type element) {
  reference::Tensor t{element, array.shape, {}, {}};
  if (t.isFloat()) t.floats = doublesOf(array);
  else if (array.dtype == 7 || array.dtype == 13) {
    t.ints.resize(array.bytes.size() / 8);
    std::memcpy(t.ints.data(), array.bytes.data(), array.bytes.size());
  } else
    for (double v : doublesOf(array)) t.ints.push_back(int64_t(v));
  return t;
}

/// "" when the results are ONNX's, else what differs.
std::string evaluateTest(ImportedModel &model, const NodeTest &test) {
  auto main = model.module->lookupSymbol<mlir::func::FuncOp>("main");
  for (size_t set = 0; set < test.outputs.size(); ++set) {
    std::vector<reference::Tensor> inputs;
    if (main.getNumArguments() != test.inputs[set].size()) return "the graph has " + std::to_string(main.getNumArguments()) + " inputs, the data " + std::to_string(test.inputs[set].size());
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      inputs.push_back(toTensor(test.inputs[set][i].second, llvm::cast<mlir::RankedTensorType>(main.getArgument(i).getType()).getElementType()));
    auto values = reference::evaluate(main.getBody().front(), inputs);
    if (!values) return llvm::toString(values.takeError());
    mlir::Operation *end = main.getBody().front().getTerminator();
    for (unsigned i = 0; i < end->getNumOperands() && i < test.outputs[set].size(); ++i) {
      const reference::Tensor &got = (*values)[end->getOperand(i)];
      const Array &want = test.outputs[set][i].second;
      std::string name = "output " + std::to_string(i) + ": ";
      if (got.shape != want.shape) return name + "another shape";
      std::vector<double> numbers = got.floats;
      for (int64_t v : got.ints) numbers.push_back(double(v));
      if (std::string why = compareArrays(numbers, doublesOf(want)); !why.empty()) return name + why;
    }
  }
  return "";
}
std::string runTest(const std::string &path, const NodeTest &test) {
  mlir::MLIRContext context;
  CompileOptions options;
  options.model = path;
  auto model = importModel(context, options);
  return model ? evaluateTest(*model, test) : llvm::toString(model.takeError());
}
} // namespace

TEST(NodeTests, ReferenceGivesOnnxResults) {
  auto excluded = readExclusions(TARE_SOURCE "/test/e2e/node-exclusions.txt", "reference");
  TempDir dir;
  unsigned passed = 0, unsupported = 0;
  std::vector<std::string> names = nodeTestNames();
  ASSERT_GT(names.size(), 900u) << "package libonnx-testdata is not installed";
  for (const std::string &name : names) {
    std::string folder = std::string(kNodeTests) + "/" + name;
    auto coverage = importCoverage(folder + "/model.onnx");
    std::string why;
    if (!coverage) why = llvm::toString(coverage.takeError());
    else if (llvm::any_of(*coverage, [](const OpCoverage &c) { return !c.supported; })) {
      ++unsupported;
      continue;
    }
    NodeTest test;
    if (why.empty()) why = readNodeTest(folder, test);
    if (why.empty()) {
      why = runTest(folder + "/model.onnx", test);
      if (why.find("depends on data") != std::string::npos && test.inputs.size() == 1 && bindConstants(folder + "/model.onnx", dir.path("model.onnx"), test.inputs[0]))
        why = runTest(dir.path("model.onnx"), test);
    }
    bool listed = excluded.count(name);
    if (why.empty() && !listed) ++passed;
    if (!why.empty() && !listed) ADD_FAILURE() << name << ": " << why;
    if (why.empty() && listed) ADD_FAILURE() << name << " passes, but node-exclusions.txt lists it: " << excluded[name];
  }
  std::cout << passed << " pass, " << excluded.size() << " are listed with a reason, " << unsupported << " use ops that are not in the table\n";
  RecordProperty("passed", int(passed));
}
