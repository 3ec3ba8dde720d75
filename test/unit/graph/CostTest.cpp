// The formulas of compiler/graph/Cost.h. In: ops with symbolic shapes. Out: FLOPs and bytes as polynomials, compared with formulas written by hand.
#include "compiler/graph/Cost.h"
#include "compiler/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace tare;

/// FLOPs and bytes of the last op in front of the return.
static std::pair<std::string, std::string> costOf(const std::string &arguments, const std::string &result, const std::string &body) {
  mlir::MLIRContext context;
  context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>("func.func @main(" + arguments + ") -> " + result + " {\n" + body + "\nreturn %r : " + result + "\n}", &context);
  if (!module) return {"no module", ""};
  auto &block = module->lookupSymbol<mlir::func::FuncOp>("main").getBody().front();
  mlir::Operation *last = block.getTerminator()->getPrevNode();
  return {flopsOf(last).str(), bytesOf(last).str()};
}

static std::string dim(const char *text) { return Dim::parse(text)->str(); }

TEST(Cost, MatmulCountsAMultiplyAddAsTwo) {
  auto [flops, bytes] = costOf("%x: tensor<?x?x128xf32, #graph.dims<[\"b\", \"s\", 128]>>, %w: tensor<128x512xf16>", "tensor<?x?x512xf32, #graph.dims<[\"b\", \"s\", 512]>>",
                               "%r = graph.matmul %x, %w : tensor<?x?x128xf32, #graph.dims<[\"b\", \"s\", 128]>>, tensor<128x512xf16> -> tensor<?x?x512xf32, #graph.dims<[\"b\", \"s\", 512]>>");
  EXPECT_EQ(flops, dim("b*s*131072"));
  EXPECT_EQ(bytes, dim("b*s*2560 + 131072"));
}

TEST(Cost, AttentionIsQuadraticInTheLength) {
  std::string t = "tensor<?x?x4x32xf32, #graph.dims<[\"b\", \"s\", 4, 32]>>";
  auto [flops, bytes] = costOf("%q: " + t + ", %k: " + t + ", %v: " + t, t, "%r = graph.attention %q, %k, %v {layout = \"ssss\", scale = 1.0 : f64} : (" + t + ", " + t + ", " + t + ") -> " + t);
  EXPECT_EQ(flops, dim("b*s*s*532")); // 4 heads * (2 * (32 + 32) + 5)
  EXPECT_EQ(bytes, dim("b*s*2048"));
}

TEST(Cost, ViewsAreFreeAndTablesCountWhatIsRead) {
  auto [viewFlops, viewBytes] = costOf("%x: tensor<6xf32>", "tensor<2x3xf32>", "%r = graph.reshape %x : tensor<6xf32> -> tensor<2x3xf32>");
  EXPECT_EQ(viewFlops, "0");
  EXPECT_EQ(viewBytes, "0");
  std::string ids = "tensor<?xi64, #graph.dims<[\"s\"]>>", rows = "tensor<?x8xf32, #graph.dims<[\"s\", 8]>>";
  auto [flops, bytes] = costOf("%t: tensor<1000x8xf32>, %i: " + ids, rows, "%r = graph.gather %t[%i] 0 : tensor<1000x8xf32>, " + ids + " -> " + rows);
  EXPECT_EQ(flops, "0");
  EXPECT_EQ(bytes, dim("s*72")); // 32 read, 32 written, 8 for the index
}

TEST(Cost, GroupsReadAndWriteOnce) {
  std::string t = "tensor<?x8xf32, #graph.dims<[\"n\", 8]>>";
  auto [flops, bytes] = costOf("%x: " + t, t, "%r = graph.group <pointwise>(%x) : (" + t + ") -> " + t + " {\n^bb0(%a: " + t + "):\n%1 = graph.unary <exp> %a : " + t + " -> " + t +
                                                 "\n%2 = graph.binary <add> %1, %a : " + t + ", " + t + " -> " + t + "\ngraph.yield %2 : " + t + "\n}");
  EXPECT_EQ(flops, dim("n*16"));
  EXPECT_EQ(bytes, dim("n*64"));
}

TEST(Cost, ChecksCountBothProducts) {
  std::string h = "tensor<?x128xf32, #graph.dims<[\"n\", 128]>>", r = "tensor<?x512xf32, #graph.dims<[\"n\", 512]>>";
  auto [flops, bytes] = costOf("%h: " + h + ", %w: tensor<3x64x128xf32>, %p: tensor<3x64xf32>, %t: tensor<3xf32>, %e: tensor<3x512xf32>", r,
                               "%r = graph.fidelity_check %h, %w, %p, %t, %e : (" + h + ", tensor<3x64x128xf32>, tensor<3x64xf32>, tensor<3xf32>, tensor<3x512xf32>) -> " + r);
  EXPECT_EQ(flops, dim("n*52806")); // 2*3*64*128 + 3*3*64 + 2*3 + 2*3*512
}
