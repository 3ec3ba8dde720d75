// What whole models become. In: the exports and folders of the test models. Out: the number of groups per kind after the pipeline, layers inlined and
// unpruned. Every attention, norm and activation must be recognised in every spelling: a number that falls is a lost fusion (bugs.md, B91).
#include "Support.h"
#include "compiler/import/Import.h"

using namespace tare;
using namespace tare::testing;
using namespace tare::graph;

namespace {

struct Expected {
  const char *model;
  int attention, norms, gemm;          ///< groups; norms are row groups
  int gelu, silu;                      ///< activations inside groups
};

class ModelGroups : public ::testing::TestWithParam<Expected> {};

TEST_P(ModelGroups, EverythingIsRecognised) {
  const Expected &e = GetParam();
  Session session;
  CompileOptions options;
  options.model = std::string(TARE_TEST_DATA) + "/" + e.model;
  auto imported = importModel(session.context, options);
  ASSERT_TRUE(static_cast<bool>(imported)) << llvm::toString(imported.takeError());
  mlir::ModuleOp module = *imported->module;
  ASSERT_TRUE(mlir::succeeded(runTo(module, Phase::Fused)));
  std::map<GroupKind, int> kinds;
  int gelu = 0, silu = 0, softmax = 0, erf = 0, biggest = 0;
  module->walk([&](mlir::Operation *op) {
    if (auto group = llvm::dyn_cast<GroupOp>(op)) {
      ++kinds[group.getKind()];
      biggest = std::max<int>(biggest, static_cast<int>(group.getBody().front().getOperations().size()));
    }
    if (auto unary = llvm::dyn_cast<UnaryOp>(op)) {
      gelu += unary.getKind() == UnaryKind::GeluErf || unary.getKind() == UnaryKind::GeluTanh;
      silu += unary.getKind() == UnaryKind::Silu;
      erf += unary.getKind() == UnaryKind::Erf || unary.getKind() == UnaryKind::Tanh;
    }
    softmax += llvm::isa<SoftmaxOp>(op);
  });
  EXPECT_EQ(kinds[GroupKind::Attention], e.attention);
  EXPECT_EQ(kinds[GroupKind::Row], e.norms);
  EXPECT_EQ(kinds[GroupKind::Gemm], e.gemm);
  EXPECT_EQ(kinds[GroupKind::BatchMatmul], 0);
  EXPECT_EQ(gelu, e.gelu);
  EXPECT_EQ(silu, e.silu);
  EXPECT_EQ(softmax, 0);
  EXPECT_LE(biggest, 64);
  // No tensor over query and key positions: neither scores nor masks.
  for (auto group : mainBody(module)->getOps<GroupOp>())
    for (mlir::Value result : group.getResults()) {
      auto dims = dimsOf(result);
      if (dims.size() >= 3 && group.getKind() != GroupKind::Append) EXPECT_NE(dims[dims.size() - 1], dims[dims.size() - 2]) << nodeName(group.getLoc());
    }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGroups,
                         ::testing::Values(Expected{"contract-lm/contract-lm.onnx", 8, 17, 0, 16, 0}),
                         [](const auto &info) {
                           std::string name = info.param.model;
                           for (char &c : name)
                             if (!isalnum(c)) c = '_';
                           return name;
                         });

} // namespace
