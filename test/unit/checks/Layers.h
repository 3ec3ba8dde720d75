// Helpers for tests on hand-written layers. In: the constants and the body of one layer as MLIR text. Out: a parsed module with that layer between
// input and output, measured on random inputs, and verdicts under each policy.
#pragma once
#include "compiler/checks/Calibration.h"
#include "compiler/checks/Measure.h"
#include "compiler/checks/Parameters.h"
#include "compiler/checks/Verdict.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace tare::checks {

struct Layers {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompileOptions options;
  std::vector<graph::LayerOp> layers;
  std::vector<Evidence> evidence;

  explicit Layers(const std::string &text) {
    context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    if (module) module->walk<mlir::WalkOrder::PreOrder>([&](graph::LayerOp l) { layers.push_back(l); });
    options.samples = 2, options.cotangents = 2, options.measureAll = true;
  }
  mlir::func::FuncOp main() { return module->lookupSymbol<mlir::func::FuncOp>("main"); }

  void measure() {
    auto calibration = loadCalibration(main(), options);
    ASSERT_TRUE(bool(calibration)) << llvm::toString(calibration.takeError());
    auto measured = measureLayers(main(), layers, *calibration, options);
    ASSERT_TRUE(bool(measured)) << llvm::toString(measured.takeError());
    evidence = std::move(*measured);
  }
  /// "proved" or "evidence" when pruned, else the code.
  std::string verdict(size_t layer, Policy policy) {
    CompileOptions o = options;
    o.policy = policy;
    Verdict v = decide(evidence[layer], layers[layer].getName(), o, evidence[layer].needsFinite);
    return v.pruned ? v.basis : v.code;
  }
};

/// A module with one layer "l" on tensor<3x4xf32>: `constants` stand before it, `body` computes %y from %in.
inline std::string oneLayer(const std::string &constants, const std::string &body) {
  return "func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {\n" + constants +
         "\n  %l = graph.layer \"l\" \"adapter\" \"path\"(%x) : tensor<3x4xf32> -> tensor<3x4xf32> {\n  ^bb0(%in: tensor<3x4xf32>):\n" + body +
         "\n    graph.yield %y : tensor<3x4xf32>\n  }\n  %r = graph.unary <tanh> %l : tensor<3x4xf32> -> tensor<3x4xf32>\n  return %r : tensor<3x4xf32>\n}\n";
}

} // namespace tare::checks
