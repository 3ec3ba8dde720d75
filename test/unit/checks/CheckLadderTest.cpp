// Each step of the ladder int4, int8, f32, dense happens (spec 6): thresholds are put so close to the distance of a token near an anchor that only the wanted form
// keeps its bit, and carried bits of one check move the states of the next. Then the real models.
#include "CheckModels.h"
#include "compiler/checks/CheckLadder.h"
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipeline.h"
#include <gtest/gtest.h>
#include <random>

using namespace tare;
using checks::CheckLadder;
using checks::checkText;
using checks::CheckWeights;
using checks::randomWeights;
using reference::Tensor;

namespace {

struct Model {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp main;
  /// `body` may use %x and TYPE, which is [batch, tokens, 16], and returns %y.
  explicit Model(const std::string &body) {
    context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
    std::string text = "func.func @main(%x: TYPE {graph.name = \"x\"}) -> TYPE {\n" + body + "return %y : TYPE\n}\n";
    for (size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, "tensor<?x?x16xf32, #graph.dims<[\"batch\", \"sequence\", 16]>>");
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    main = module->lookupSymbol<mlir::func::FuncOp>("main");
  }
  CheckLadder climb(const checks::Calibration &calibration, const CompileOptions &options = {}) {
    auto ladder = checks::climbLadder(main, calibration, options);
    EXPECT_TRUE(bool(ladder)) << llvm::toString(ladder.takeError());
    return std::move(*ladder);
  }
};

double distance(const CheckWeights &w, const double *h, int64_t head) {
  double sum = 0;
  for (int64_t r = 0; r < w.rank; ++r) {
    double z = -double(w.p[head * w.rank + r]);
    for (int64_t j = 0; j < w.width; ++j) z += double(w.w[(head * w.rank + r) * w.width + j]) * h[j];
    sum += z * z;
  }
  return std::sqrt(sum);
}

/// One sample of 40 tokens with an anchor at token 20: tokens 0, 17, 18, 19 are evaluated.
checks::Calibration oneSample(mlir::MLIRContext &context) {
  checks::Calibration calibration{"file", "", 0, {}, {}};
  Tensor x = Tensor::zeros(mlir::Float32Type::get(&context), {1, 40, 16});
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  for (double &v : x.floats) v = normal(random);
  calibration.samples = {{x}};
  calibration.anchors = {{{20, -1}}};
  return calibration;
}

/// Thresholds `above` the distance of an evaluated token, another one for each head.
CheckLadder climbWithThresholds(double above, const CompileOptions &options = {}) {
  CheckWeights w = randomWeights(4);
  Model probe("%y = graph.unary <neg> %x : TYPE -> TYPE\n");
  checks::Calibration calibration = oneSample(probe.context);
  const int64_t evaluated[] = {0, 17, 18, 19};
  for (int64_t k = 0; k < 8; ++k) w.tau[k] = static_cast<float>(distance(w, &calibration.samples[0][0].floats[evaluated[k % 4] * 16], k) + above);
  Model model(checkText("y", "x", w));
  calibration.samples[0][0].element = mlir::Float32Type::get(&model.context);
  return model.climb(calibration, options);
}

} // namespace

TEST(CheckLadder, FarThresholdsTakeInt4) {
  CheckLadder ladder = climbWithThresholds(50);
  ASSERT_EQ(ladder.checks.size(), 1u);
  const checks::CheckDecision &d = ladder.checks[0];
  EXPECT_EQ(d.precision, "int4");
  EXPECT_EQ(d.name, "y");
  EXPECT_EQ(d.code + d.line + d.why, "");
  EXPECT_EQ(d.quantized.bits, 4);
  EXPECT_EQ(d.forms.size(), 1u);
  EXPECT_EQ(d.forms[0].window, std::vector<double>(8, 100));
  EXPECT_EQ(d.evaluated, 4);
  EXPECT_EQ(d.tokens, 40);
  EXPECT_EQ(ladder.anchors, "file");
  EXPECT_EQ(ladder.outputDifference, 0);
}

TEST(CheckLadder, NearThresholdsTakeInt8) {
  CheckLadder ladder = climbWithThresholds(0.06);
  const checks::CheckDecision &d = ladder.checks.at(0);
  EXPECT_EQ(d.precision, "int8");
  EXPECT_EQ(d.quantized.bits, 8);
  ASSERT_EQ(d.forms.size(), 2u);
  EXPECT_LT(*std::min_element(d.forms[0].window.begin(), d.forms[0].window.end()), 98);
  EXPECT_EQ(d.forms[1].window, std::vector<double>(8, 100));
  EXPECT_EQ(d.forms[1].fidelity(), 100);
}

TEST(CheckLadder, NearestThresholdsTakeF32) {
  CheckLadder ladder = climbWithThresholds(2e-6);
  const checks::CheckDecision &d = ladder.checks.at(0);
  EXPECT_EQ(d.precision, "f32");
  EXPECT_TRUE(d.quantized.q.empty());
  ASSERT_EQ(d.forms.size(), 3u);
  EXPECT_LT(*std::min_element(d.forms[1].window.begin(), d.forms[1].window.end()), 98);
  EXPECT_EQ(d.forms[2].fidelity(), 100);
  EXPECT_LT(*std::min_element(d.forms[2].overall.begin(), d.forms[2].overall.end()), 100) << "carried bits differ from dense ones somewhere";
  EXPECT_GT(ladder.outputDifference, 0);
}

TEST(CheckLadder, AForcedPrecisionIsMeasuredAndGatesNothing) {
  CompileOptions options;
  options.checkPrecision = "int4";
  CheckLadder ladder = climbWithThresholds(2e-6, options);
  EXPECT_EQ(ladder.checks.at(0).precision, "int4");
  EXPECT_LT(ladder.checks[0].forms.at(0).fidelity(), 98);
  EXPECT_NE(ladder.checks[0].why.find("forced by --check-precision int4"), std::string::npos);
  options.checkPrecision = "dense";
  ladder = climbWithThresholds(50, options);
  EXPECT_EQ(ladder.checks.at(0).precision, "dense");
  EXPECT_EQ(ladder.checks[0].code, "");
}

TEST(CheckLadder, AThresholdOfTheFidelityDecides) {
  CompileOptions options;
  options.checkFidelity = 0;
  EXPECT_EQ(climbWithThresholds(2e-6, options).checks.at(0).precision, "int4");
}

/// Only token 0 is near the first check's prototype, and only token 0 is evaluated: carried, the bit is set everywhere, and the mean over tokens moves the
/// second check's states far away.
TEST(CheckLadder, WhatCarriedBitsMoveStaysDense) {
  CheckWeights first{1, 16, 16, 16, std::vector<float>(256), std::vector<float>(16), {1.f}, std::vector<float>(16, 100.f)}, second = first;
  for (int i = 0; i < 16; ++i) first.w[i * 17] = second.w[i * 17] = 1;
  second.tau = {200.f}; // token 0: dense 100 / 40 * 4 = 10, carried 400
  Model model(checkText("first", "x", first) + "%m = graph.reduce <mean> %first [1] keepdims true : TYPE -> tensor<?x1x16xf32, #graph.dims<[\"batch\", 1, 16]>>\n"
                                               "%h = graph.binary <add> %x, %m : TYPE, tensor<?x1x16xf32, #graph.dims<[\"batch\", 1, 16]>> -> TYPE\n" +
              checkText("y", "h", second));
  checks::Calibration calibration = oneSample(model.context);
  calibration.anchors = {{{}}};
  for (int i = 0; i < 16; ++i) calibration.samples[0][0].floats[i] = 0;
  CheckLadder ladder = model.climb(calibration);
  ASSERT_EQ(ladder.checks.size(), 2u);
  EXPECT_EQ(ladder.checks[0].precision, "int4");
  const checks::CheckDecision &d = ladder.checks[1];
  EXPECT_EQ(d.precision, "dense");
  EXPECT_EQ(d.code, "FIDELITY_BELOW_THRESHOLD");
  EXPECT_EQ(d.forms.size(), 3u);
  EXPECT_EQ(d.forms[2].window, std::vector<double>{0});
  EXPECT_EQ(d.line.rfind("[SPARSIFY_REJECTED: FIDELITY_BELOW_THRESHOLD] y: sparse f32 bits of head 0 agree with the dense ones at 0.0% of 1 evaluated tokens, wanted 98%; ", 0), 0u) << d.line;
}

TEST(CheckLadder, SeededAnchorsAndBatches) {
  Model model(checkText("y", "x", randomWeights(1)));
  CompileOptions options;
  options.sequence = 200;
  auto calibration = checks::loadCalibration(model.main, options);
  ASSERT_TRUE(bool(calibration)) << llvm::toString(calibration.takeError());
  CheckLadder ladder = model.climb(*calibration);
  EXPECT_EQ(ladder.anchors, "seeded");
  EXPECT_EQ(ladder.checks.at(0).tokens, 800);
  EXPECT_GT(ladder.checks[0].evaluated, 4 * 4); // four anchors a sample, three tokens each, and the first token
  EXPECT_LE(ladder.checks[0].evaluated, 4 * 13);
  options.threads = 3;
  CheckLadder again = model.climb(*calibration, options);
  EXPECT_EQ(again.checks[0].quantized.q, ladder.checks[0].quantized.q);
  EXPECT_EQ(again.checks[0].forms[0].overall, ladder.checks[0].forms[0].overall);

  calibration->anchors = {{{1}, {2}}, {}, {}, {}};
  auto refused = checks::climbLadder(model.main, *calibration, options);
  ASSERT_FALSE(bool(refused));
  EXPECT_NE(llvm::toString(refused.takeError()).find("anchors are for 2 sequences, the model sees 1"), std::string::npos);
}

/// contract-lm takes int4 by itself; the thresholds of -balanced sit among the states.
TEST(CheckLadder, ContractLm) {
  for (std::string name : {"contract-lm", "contract-lm-balanced"}) {
    SCOPED_TRACE(name);
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    CompileOptions options;
    options.model = std::string(TARE_TEST_DATA) + "/contract-lm/" + name + ".onnx", options.calibration = std::string(TARE_TEST_DATA) + "/contract-lm/calibration.npz";
    options.threads = 2, options.stopAfter = Phase::Marked;
    auto model = importModel(context, options);
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    ASSERT_TRUE(succeeded(runPipeline(*model->module, options)));
    auto main = model->module->lookupSymbol<mlir::func::FuncOp>("main");
    auto calibration = checks::loadCalibration(main, options);
    ASSERT_TRUE(bool(calibration)) << llvm::toString(calibration.takeError());
    auto ladder = checks::climbLadder(main, *calibration, options);
    ASSERT_TRUE(bool(ladder)) << llvm::toString(ladder.takeError());
    ASSERT_EQ(ladder->checks.size(), 3u);
    int narrower = 0;
    for (const checks::CheckDecision &d : ladder->checks) {
      SCOPED_TRACE(d.name);
      EXPECT_EQ(d.heads, 3);
      EXPECT_EQ(d.rank, 64);
      EXPECT_EQ(d.tokens, 4 * 201);
      EXPECT_EQ(d.evaluated, 22); // the first token and three before each anchor
      for (double percent : d.forms.back().window) EXPECT_GE(percent, 98);
      if (name == "contract-lm") EXPECT_EQ(d.precision, "int4");
      else EXPECT_NE(d.precision, "dense");
      narrower += d.precision == "int4" || d.precision == "int8";
    }
    EXPECT_GE(narrower, 2);
  }
}
