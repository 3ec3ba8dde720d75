// What whole models become. In: the exports and folders of the test models, unpruned. Out: the number of groups per kind after the pipeline, and the same
// values as the imported graph by the reference on random ids and masks (two rows of five tokens). Every attention, norm and activation must be
// recognised in every spelling: a number that falls is a lost fusion (bugs.md, B91).
#include "Support.h"
#include "compiler/import/Import.h"
#include <cmath>

using namespace tare;
using namespace tare::testing;
using namespace tare::graph;

namespace {

struct Expected {
  const char *model;
  int attention, norms, gemm;          ///< groups; norms are row groups
  int gelu, silu;                      ///< activations inside groups
};

/// Both modules compute the same, up to the rounding of narrow outputs.
void expectSameValues(mlir::ModuleOp source, mlir::ModuleOp fused) {
  Sizes sizes;
  for (mlir::Value argument : mainBody(source)->getArguments())
    for (const Dim &d : dimsOf(argument))
      for (auto &symbol : d.symbols()) sizes[symbol] = symbol == "batch" ? 2 : symbol.find("past") != std::string::npos ? 3 : 5;
  auto inputs = randomInputs(*mainBody(source), sizes, 7);
  auto before = evaluateMain(source, inputs), after = evaluateMain(fused, inputs);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(before[i].shape, after[i].shape);
    ASSERT_EQ(before[i].ints, after[i].ints);
    double tolerance = before[i].element.isF32() ? 1e-6 : 1e-2, largest = 0, difference = 0;
    for (size_t j = 0; j < before[i].floats.size(); ++j) {
      ASSERT_EQ(std::isnan(before[i].floats[j]), std::isnan(after[i].floats[j]));
      if (std::isnan(before[i].floats[j])) continue;
      largest = std::max(largest, std::abs(before[i].floats[j]));
      difference = std::max(difference, std::abs(before[i].floats[j] - after[i].floats[j]));
    }
    EXPECT_LE(difference, tolerance * std::max(1.0, largest)) << "result " << i;
  }
}

class ModelGroups : public ::testing::TestWithParam<Expected> {};

TEST_P(ModelGroups, EverythingIsRecognised) {
  const Expected &e = GetParam();
  Session session;
  CompileOptions options;
  options.model = std::string(TARE_TEST_DATA) + "/" + e.model;
  auto imported = importModel(session.context, options);
  ASSERT_TRUE(static_cast<bool>(imported)) << llvm::toString(imported.takeError());
  mlir::ModuleOp module = *imported->module;
  mlir::OwningOpRef<mlir::ModuleOp> source = module.clone();
  options.checkPrecision = "f32"; // integer weights may flip a bit; whether they may is the ladder's question, not this test's
  ASSERT_TRUE(mlir::succeeded(runTo(module, Phase::Fused, options)));
  expectSameValues(*source, module);
  std::map<GroupKind, int> kinds;
  int gelu = 0, silu = 0, softmax = 0, erf = 0, biggest = 0, checks = 0;
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
    if (auto check = llvm::dyn_cast<FidelityCheckOp>(op)) { // in every spelling: part of the FFN-up product's kernel
      ++checks;
      auto group = check->getParentOfType<GroupOp>();
      EXPECT_TRUE(group && group.getKind() == GroupKind::Gemm);
    }
  });
  EXPECT_EQ(kinds[GroupKind::Attention], e.attention);
  EXPECT_EQ(kinds[GroupKind::Row], e.norms);
  EXPECT_EQ(kinds[GroupKind::Gemm], e.gemm);
  EXPECT_EQ(kinds[GroupKind::BatchMatmul], 0);
  EXPECT_EQ(gelu, e.gelu);
  EXPECT_EQ(silu, e.silu);
  EXPECT_EQ(checks, llvm::StringRef(e.model).contains("contract-lm") ? 3 : 0);
  EXPECT_EQ(softmax, 0);
  EXPECT_LE(biggest, 64);
  // No tensor over query and key positions: neither scores nor masks.
  for (auto group : mainBody(module)->getOps<GroupOp>())
    for (mlir::Value result : group.getResults()) {
      auto dims = dimsOf(result);
      if (dims.size() >= 3) EXPECT_TRUE(dims[dims.size() - 1].constant() || dims[dims.size() - 2].constant()) << nodeName(group.getLoc());
    }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGroups,
                         ::testing::Values(Expected{"contract-lm/contract-lm.onnx", 8, 17, 65, 16, 0}, Expected{"contract-lm/contract-lm-f16.onnx", 8, 17, 65, 16, 0},
                                           Expected{"contract-lm/contract-lm-kv.onnx", 8, 17, 65, 16, 0}, Expected{"contract-lm/contract-lm-dynamo.onnx", 8, 17, 65, 16, 0},
                                           Expected{"contract-lm/contract-lm-legacy.onnx", 8, 17, 65, 16, 0}, Expected{"bert-tiny", 3, 7, 19, 3, 0},
                                           Expected{"bert-tiny/export-legacy.onnx", 3, 7, 18, 3, 0}, Expected{"bert-tiny/export-dynamo.onnx", 3, 7, 18, 3, 0},
                                           Expected{"distilbert-tiny/export-legacy.onnx", 3, 7, 18, 3, 0}, Expected{"distilbert-tiny/export-dynamo.onnx", 3, 7, 18, 3, 0},
                                           Expected{"llama-pro-tiny", 8, 17, 57, 0, 8}, Expected{"llama-pro-tiny/export-legacy.onnx", 8, 17, 57, 0, 8},
                                           Expected{"llama-pro-tiny/export-dynamo.onnx", 8, 17, 57, 0, 8}),
                         [](const auto &info) {
                           std::string name = info.param.model;
                           for (char &c : name)
                             if (!isalnum(c)) c = '_';
                           return name;
                         });

} // namespace
