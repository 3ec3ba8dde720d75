// Loops over the scalar math functions of kernels.h vectorise after inlining, at 16 floats for the AVX-512 levels and 8 for AVX2: checked on the optimised IR,
// for every f32 function generated code uses in pointwise kernels. Nothing may remain a call, and no fma may stay scalar inside the loop.
#include "compiler/codegen/cpu/Backend.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace {

std::string loopOver(const std::string &function) {
  return "llvm.func @" + function + R"((f32) -> f32
llvm.func @tare_entry(%args: !llvm.ptr, %thread: i64) -> i64 {
  %buffers = llvm.load %args : !llvm.ptr -> !llvm.ptr
  %a = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %p1 = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %b = llvm.load %p1 : !llvm.ptr -> !llvm.ptr
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^loop(%zero : i64)
^loop(%i: i64):
  %x = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %x : !llvm.ptr -> f32
  %r = llvm.call @)" + function + R"((%v) : (f32) -> f32
  %y = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %r, %y : f32, !llvm.ptr
  %next = llvm.add %i, %one : i64
  %more = llvm.icmp "slt" %next, %thread : i64
  llvm.cond_br %more, ^loop(%next : i64), ^done
^done:
  llvm.return %zero : i64
})";
}

class Vectorise : public testing::TestWithParam<const char *> {};

TEST_P(Vectorise, AtTheLevelsWidth) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::LLVM::LLVMDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(loopOver(GetParam()), &context);
  ASSERT_TRUE(module);
  for (auto [level, width] : {std::pair("x86-64-v4", "<16 x float>"), std::pair("x86-64-v3", "<8 x float>")}) {
    auto ir = tare::optimisedIr(*module, level);
    ASSERT_TRUE(bool(ir)) << llvm::toString(ir.takeError());
    const std::string entry = ir->substr(ir->find("@tare_entry("), ir->find("\n}", ir->find("@tare_entry(")) - ir->find("@tare_entry("));
    EXPECT_NE(entry.find(width), std::string::npos) << GetParam() << " at " << level;
    EXPECT_EQ(entry.find("@tare_", 5), std::string::npos) << GetParam() << " at " << level;
  }
}
INSTANTIATE_TEST_SUITE_P(Math, Vectorise, testing::Values("tare_expf", "tare_logf", "tare_log1pf", "tare_erff", "tare_tanhf", "tare_sigmoidf", "tare_softplusf", "tare_siluf", "tare_gelu_erff", "tare_gelu_tanhf"),
                         [](const auto &info) { return std::string(info.param); });

// Through double: half the lanes.
TEST(VectoriseThroughDouble, SineAndCosine) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::LLVM::LLVMDialect>();
  for (const char *name : {"tare_sinf", "tare_cosf"}) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(loopOver(name), &context);
    auto ir = tare::optimisedIr(*module, "x86-64-v4");
    ASSERT_TRUE(bool(ir)) << llvm::toString(ir.takeError());
    EXPECT_NE(ir->find("<8 x double> @llvm.fma"), std::string::npos) << name;
  }
}

} // namespace
