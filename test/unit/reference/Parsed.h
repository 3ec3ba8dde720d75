// Helpers of the reference's tests. In: the body of a function as MLIR text. Out: the parsed module, and runs of it on double tensors.
#pragma once
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <random>

namespace tare::reference {

struct Parsed {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  explicit Parsed(const std::string &text) {
    context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
  }
  mlir::Block &body() { return module->lookupSymbol<mlir::func::FuncOp>("main").getBody().front(); }
  mlir::Type type(const std::string &name) { return name == "f64" ? mlir::Type(mlir::Float64Type::get(&context)) : name == "f32" ? mlir::Type(mlir::Float32Type::get(&context)) : mlir::IntegerType::get(&context, std::stoi(name.substr(1))); }

  Tensor floats(std::vector<int64_t> shape, std::vector<double> values, const std::string &element = "f32") { return {type(element), std::move(shape), std::move(values), {}}; }
  Tensor ints(std::vector<int64_t> shape, std::vector<int64_t> values, const std::string &element = "i64") { return {type(element), std::move(shape), {}, std::move(values)}; }

  /// The value that main returns first.
  Tensor run(const std::vector<Tensor> &inputs) {
    auto values = evaluate(body(), inputs);
    EXPECT_TRUE(bool(values)) << llvm::toString(values.takeError());
    return (*values)[body().getTerminator()->getOperand(0)];
  }
};

inline Tensor randomLike(mlir::RankedTensorType type, std::mt19937_64 &random, double low, double high) {
  Tensor t = Tensor::zeros(type.getElementType(), type.getShape().vec());
  std::uniform_real_distribution<double> uniform(low, high);
  for (double &v : t.floats) v = uniform(random);
  for (int64_t &v : t.ints) v = static_cast<int64_t>(random() % 2);
  return t;
}

} // namespace tare::reference
