// ONNX's backend node tests through importer and reference evaluator. In: Debian's libonnx-testdata. Must hold: every test whose ops are in the op table
// gives ONNX's own results, or is listed in node-exclusions.txt with a reason; a listed test that passes is an error too.
#include "compiler/import/Import.h"
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "test/e2e/NodeData.h"
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

TEST(NodeTests, ReferenceGivesOnnxResults) { walkNodeTests("reference", runTest); }
