// Runs that drop large values, and what is computed again from them: the same bits as when everything is kept. In: a block with a layer in it whose inner values
// are larger than its inputs. Out: values, cotangents and sizes of both kinds of run.
#include "Parsed.h"
#include "compiler/reference/Recall.h"

namespace tare::reference {
namespace {

const char *kText = R"(func.func @main(%x: tensor<?x4xf64, #graph.dims<["s", 4]>>, %w: tensor<4x4xf64>) -> tensor<?x4xf64, #graph.dims<["s", 4]>> {
  %t = graph.transpose %x [1, 0] : tensor<?x4xf64, #graph.dims<["s", 4]>> -> tensor<4x?xf64, #graph.dims<[4, "s"]>>
  %scores = graph.matmul %x, %t : tensor<?x4xf64, #graph.dims<["s", 4]>>, tensor<4x?xf64, #graph.dims<[4, "s"]>> -> tensor<?x?xf64, #graph.dims<["s", "s"]>>
  %scaled = graph.binary <mul> %scores, %scores : tensor<?x?xf64, #graph.dims<["s", "s"]>>, tensor<?x?xf64, #graph.dims<["s", "s"]>> -> tensor<?x?xf64, #graph.dims<["s", "s"]>>
  %p = graph.softmax %scaled 1 : tensor<?x?xf64, #graph.dims<["s", "s"]>> -> tensor<?x?xf64, #graph.dims<["s", "s"]>>
  %y = graph.matmul %p, %x : tensor<?x?xf64, #graph.dims<["s", "s"]>>, tensor<?x4xf64, #graph.dims<["s", 4]>> -> tensor<?x4xf64, #graph.dims<["s", 4]>>
  %z = graph.layer "l" "adapter" "path"(%y) : tensor<?x4xf64, #graph.dims<["s", 4]>> -> tensor<?x4xf64, #graph.dims<["s", 4]>> {
  ^bb0(%a: tensor<?x4xf64, #graph.dims<["s", 4]>>):
    %m = graph.matmul %a, %w : tensor<?x4xf64, #graph.dims<["s", 4]>>, tensor<4x4xf64> -> tensor<?x4xf64, #graph.dims<["s", 4]>>
    %g = graph.unary <tanh> %m : tensor<?x4xf64, #graph.dims<["s", 4]>> -> tensor<?x4xf64, #graph.dims<["s", 4]>>
    %q = graph.matmul %p, %g : tensor<?x?xf64, #graph.dims<["s", "s"]>>, tensor<?x4xf64, #graph.dims<["s", 4]>> -> tensor<?x4xf64, #graph.dims<["s", 4]>>
    graph.yield %q : tensor<?x4xf64, #graph.dims<["s", 4]>>
  }
  %r = graph.binary <add> %z, %y : tensor<?x4xf64, #graph.dims<["s", 4]>>, tensor<?x4xf64, #graph.dims<["s", 4]>> -> tensor<?x4xf64, #graph.dims<["s", 4]>>
  return %r : tensor<?x4xf64, #graph.dims<["s", 4]>>
})";

struct Both : testing::Test {
  Parsed p{kText};
  std::vector<Tensor> inputs;
  Symbols symbols;
  void SetUp() override {
    std::mt19937_64 random(7);
    auto f64 = p.type("f64");
    inputs = {randomLike(mlir::RankedTensorType::get({9, 4}, f64), random, -1, 1), randomLike(mlir::RankedTensorType::get({4, 4}, f64), random, -1, 1)};
    symbols = llvm::cantFail(bindSymbols(p.body(), inputs));
  }
  Values run(uint64_t largest, const llvm::DenseSet<mlir::Value> *keep = nullptr) {
    EvaluateOptions options;
    options.largest = largest, options.keep = keep;
    return llvm::cantFail(evaluate(p.body(), inputs, options));
  }
};

TEST_F(Both, LargeValuesGoAfterTheirLastReader) {
  Values all = run(UINT64_MAX), some = run(9 * 4 * 8), few = run(0);
  EXPECT_EQ(all.size() - some.size(), 3u); // scores, scaled, p: s*s
  llvm::DenseSet<mlir::Value> keep;
  for (auto &op : p.body()) if (op.getNumRegions()) keep.insert(op.getOperand(0));
  Values kept = run(0, &keep);
  EXPECT_EQ(kept.size(), few.size() + 1);
  EXPECT_TRUE(few.count(p.body().getTerminator()->getOperand(0))); // what leaves the block stays
  EXPECT_EQ(bytesOfRun(p.body(), symbols), 8u * (36 + 16 + 36 + 3 * 81 + 36 + 36 + 3 * 36 + 36 + 36));
}

TEST_F(Both, ComputedAgainToTheLastBit) {
  Values all = run(UINT64_MAX), few = run(0);
  Recall recall(few, nullptr, symbols);
  for (auto &[value, tensor] : all) EXPECT_EQ(llvm::cantFail(recall.find(value))->floats, tensor.floats);
}

TEST_F(Both, GradientsAreTheSame) {
  Values all = run(UINT64_MAX), few = run(0), seeds;
  auto result = p.body().getTerminator()->getOperand(0);
  seeds[result] = all[result];
  Values a = llvm::cantFail(backward(p.body(), all, seeds, symbols)), b = llvm::cantFail(backward(p.body(), few, seeds, symbols));
  ASSERT_EQ(a.size(), b.size());
  for (auto &[value, tensor] : a) EXPECT_EQ(b[value].floats, tensor.floats);
  EXPECT_GT(a.size(), 8u);
}

} // namespace
} // namespace tare::reference
