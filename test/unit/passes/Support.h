// What the pass tests share. In: MLIR text. Out: a module, the value of main by the reference on random inputs, the pipeline up to a phase.
#pragma once
#include "compiler/graph/Graph.h"
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipeline.h"
#include "passes/Rewrite.h"
#include "gtest/gtest.h"
#include <random>

namespace tare::testing {

struct Session {
  mlir::MLIRContext context;
  Session() { context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>(); }
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    mlir::ParserConfig config(&context);
    return mlir::parseSourceString<mlir::ModuleOp>(text, config);
  }
};

/// clean and fused as a compile runs them, without the checks of earlier phases.
inline mlir::LogicalResult runTo(mlir::ModuleOp module, Phase last, const CompileOptions &options = {}) {
  for (Phase phase : {Phase::Clean, Phase::Fused}) {
    if (phase > last) break;
    mlir::PassManager manager(module.getContext());
    addPhase(manager, phase, options);
    if (mlir::failed(manager.run(module)) || mlir::failed(checkPhase(phase, module))) return mlir::failure();
  }
  return mlir::success();
}

using Sizes = std::map<std::string, int64_t>;

/// Random inputs for main: floats in [-2, 2], integers 0 or 1, bools; symbols take their sizes from `sizes`.
inline std::vector<reference::Tensor> randomInputs(mlir::Block &main, const Sizes &sizes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<reference::Tensor> inputs;
  for (mlir::Value argument : main.getArguments()) {
    std::vector<int64_t> shape;
    for (const Dim &d : graph::dimsOf(argument)) shape.push_back(*d.evaluate([&](llvm::StringRef name) { return std::optional<int64_t>(sizes.at(name.str())); }));
    auto tensor = reference::Tensor::zeros(mlir::getElementTypeOrSelf(argument), shape);
    std::uniform_real_distribution<double> real(-2, 2);
    for (double &v : tensor.floats) v = real(random);
    reference::roundToElementType(tensor);
    for (int64_t &v : tensor.ints) v = static_cast<int64_t>(random() % 2);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// The results of main for these inputs. Sparse fidelity checks get an anchor behind every token: then they are the dense ones of the source.
inline std::vector<reference::Tensor> evaluateMain(mlir::ModuleOp module, llvm::ArrayRef<reference::Tensor> given) {
  mlir::Block &body = *mainBody(module);
  std::vector<reference::Tensor> inputs(given.begin(), given.end());
  if (body.getNumArguments() == given.size() + 1) {
    auto anchors = reference::Tensor::zeros(mlir::IntegerType::get(module.getContext(), 32), {given[0].shape[0], 32});
    for (size_t i = 0; i < anchors.ints.size(); ++i) anchors.ints[i] = static_cast<int64_t>(i % 32) + 1;
    inputs.push_back(std::move(anchors));
  }
  auto values = reference::evaluate(body, inputs);
  if (!values) {
    ADD_FAILURE() << llvm::toString(values.takeError());
    return {};
  }
  std::vector<reference::Tensor> results;
  for (mlir::Value value : body.getTerminator()->getOperands()) results.push_back((*values)[value]);
  return results;
}

} // namespace tare::testing
