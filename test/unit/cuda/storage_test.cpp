// Which buffers may hold rounded values (compiler/codegen/cuda/Storage.h). In: small plans as text. Must hold: one reader
// that does not round, a second writer, an append, another kind of memory or a pitch keeps a buffer as it is; operands of
// one kernel are rounded together or not at all, however long that takes to settle.
#include "compiler/codegen/cuda/Storage.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace tare;
using namespace tare::cuda;

namespace {

/// Numbers of the rounded buffers of a plan: 0 is an input, 1 an output, the others are `buffers`. Kernels: @make writes,
/// @gemm rounds its operand 0, @attention its operands 0 to 2, @add reads in f32, @append appends.
std::vector<unsigned> rounded(const std::string &buffers, const std::string &steps) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<graph::GraphDialect, plan::PlanDialect>();
  auto buffer = [](const std::string &kind, const std::string &rest) {
    return "plan.buffer \"" + kind + "\" \"\" tensor<8xf32> <[32]>" + rest + "\n";
  };
  std::string text = "plan.program [] <[]> {\n" + buffer("input", " {tensor = 0 : i64}") + buffer("output", " {tensor = 0 : i64}");
  for (char kind : buffers)
    text += kind == 'a'   ? buffer("arena", "")
            : kind == 'p' ? buffer("arena", " {pitch = #graph.dims<[16]>}")
                          : "plan.buffer \"arena\" \"\" tensor<8xf64> <[64]>\n";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text + steps + "}\n", &context);
  EXPECT_TRUE(module) << text << steps;
  if (!module) return {};
  RoundedOperands operands;
  operands["gemm"] = {0}, operands["attention"] = {0, 1, 2}, operands["gemm_append"] = {0};
  std::vector<unsigned> numbers;
  for (unsigned i : roundedBuffers(*module->getOps<plan::ProgramOp>().begin(), operands).set_bits())
    numbers.push_back(i);
  return numbers;
}
std::string step(const std::string &kernel, const std::string &operands, const std::string &result, const std::string &kind = "gemm") {
  return "plan.dispatch @" + kernel + " \"" + kind + "\" [" + operands + "] -> [" + result + "] {flops = #graph.dims<[0]>, bytes = #graph.dims<[0]>}\n";
}
using Numbers = std::vector<unsigned>;

TEST(CudaStorage, OneReaderThatRounds) {
  EXPECT_EQ(rounded("a", step("make", "0", "2") + step("gemm", "2", "1")), Numbers{2});
  EXPECT_EQ(rounded("aa", step("make", "0", "2") + step("gemm", "2", "3") + step("gemm", "3", "1")), (Numbers{2, 3}));
}
TEST(CudaStorage, AnotherReaderNeedsAllOfIt) {
  EXPECT_EQ(rounded("aa", step("make", "0", "2") + step("gemm", "2", "3") + step("add", "2, 3", "1")), Numbers{});
  // The same kernel rounds one operand and adds the other.
  EXPECT_EQ(rounded("aa", step("make", "0", "2") + step("make", "0", "3") + step("gemm", "2, 3", "1")), Numbers{2});
  EXPECT_EQ(rounded("a", step("make", "0", "2") + step("gemm", "2, 2", "1")), Numbers{});
}
TEST(CudaStorage, WhatOthersSeeKeepsItsType) {
  EXPECT_EQ(rounded("", step("make", "0", "1") + step("gemm", "1", "1")), Numbers{}); // an output
  EXPECT_EQ(rounded("", step("gemm", "0", "1")), Numbers{});                          // an input
  EXPECT_EQ(rounded("p", step("make", "0", "2") + step("gemm", "2", "1")), Numbers{});
  EXPECT_EQ(rounded("d", step("make", "0", "2") + step("gemm", "2", "1")), Numbers{}); // f64
}
TEST(CudaStorage, OneWriter) {
  EXPECT_EQ(rounded("a", step("make", "0", "2") + step("make", "0", "2") + step("gemm", "2", "1")), Numbers{});
  EXPECT_EQ(rounded("a", step("append", "0, 0", "2", "append") + step("gemm", "2", "1")), Numbers{});
}
TEST(CudaStorage, ABufferThatNobodyReadsStays) { EXPECT_EQ(rounded("a", step("make", "0", "2")), Numbers{}); }
TEST(CudaStorage, OperandsOfOneKernelTogether) {
  std::string made = step("make", "0", "2") + step("make", "0", "3") + step("make", "0", "4");
  EXPECT_EQ(rounded("aaa", made + step("attention", "2, 3, 4", "1")), (Numbers{2, 3, 4}));
  EXPECT_EQ(rounded("aaa", made + step("attention", "2, 3, 0", "1")), Numbers{});
  // 4 is added as well, so the second attention keeps 3 and 5, and 3 the first one's 2 and 6: against the order of steps.
  made += step("make", "0", "5") + step("make", "0", "6") + step("make", "0", "7");
  EXPECT_EQ(rounded("aaaaaaa", made + step("attention", "2, 3, 6", "8") + step("attention", "3, 5, 4", "8") + step("add", "4", "1") + step("gemm", "7", "1")), Numbers{7});
}

} // namespace
