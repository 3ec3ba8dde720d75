// The checks against the float64 oracle of contract-lm (expected-checks*.json): every graph, every policy. Names differ per graph, so candidates are
// compared by layer number, and parameters by what they are (pos, fc1.weight, fc2.weight, fc2.bias), told apart by their sizes where names are anonymous.
#include "compiler/checks/Measure.h"
#include "compiler/checks/Recheck.h"
#include "compiler/checks/Verdict.h"
#include "compiler/import/Import.h"
#include "passes/Pipeline.h"
#include "mlir/IR/MLIRContext.h"
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

using namespace tare;
using nlohmann::json;

namespace {

const std::string kFolder = std::string(TARE_TEST_DATA) + "/contract-lm/";

json readJson(const std::string &name) { return json::parse(std::ifstream(kFolder + name)); }

struct Graph {
  const char *file, *namePattern; ///< $N: the layer's number
};
void PrintTo(const Graph &g, std::ostream *os) { *os << g.file; }

std::string nameOf(const Graph &graph, int layer) { return std::regex_replace(std::string(graph.namePattern), std::regex("N"), std::to_string(layer)); }

class ContractLm : public testing::TestWithParam<Graph> {
protected:
  void SetUp() override {
    context.disableMultithreading();
    options.model = kFolder + GetParam().file;
    options.calibration = kFolder + "calibration.npz";
    options.measureAll = true;
    options.threads = 2;
    // Whether a gradient is zero shows with the first cotangent; all eight run on one graph only.
    if (std::string(GetParam().file) != "contract-lm.onnx") options.cotangents = 1;
    options.stopAfter = Phase::Marked;
    auto imported = importModel(context, options);
    ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
    model = std::move(*imported);
    ASSERT_TRUE(succeeded(runPipeline(*model.module, options)));
    main = model.module->lookupSymbol<mlir::func::FuncOp>("main");
    main.walk([&](graph::LayerOp layer) { (layer.getRole() == "fidelity_check" ? fidelityChecks : layers).push_back(layer); });
    ASSERT_EQ(layers.size(), 8u);
    EXPECT_FALSE(model.module->getOperation()->hasAttr("graph.rejected"));
    auto calibration = checks::loadCalibration(main, options);
    ASSERT_TRUE(bool(calibration)) << llvm::toString(calibration.takeError());
    auto measured = checks::measureLayers(main, layers, *calibration, options);
    ASSERT_TRUE(bool(measured)) << llvm::toString(measured.takeError());
    evidence = std::move(*measured);
  }

  std::string verdict(int layer, Policy policy) {
    CompileOptions o = options;
    o.policy = policy;
    checks::Verdict v = checks::decide(evidence[layer], layers[layer].getName(), o, evidence[layer].needsFinite);
    return v.pruned ? "pruned" : v.code;
  }

  mlir::MLIRContext context;
  CompileOptions options;
  ImportedModel model;
  mlir::func::FuncOp main;
  std::vector<graph::LayerOp> layers, fidelityChecks;
  std::vector<checks::Evidence> evidence;
};


TEST_P(ContractLm, MatchesTheOracle) {
  bool half = std::string(GetParam().file).find("f16") != std::string::npos;
  json expected = readJson("expected-checks.json")["candidates"], expectedHalf = readJson("expected-checks-f16.json");
  EXPECT_EQ(fidelityChecks.size(), 3u);
  for (int n = 0; n < 8; ++n) {
    SCOPED_TRACE(n);
    const checks::Evidence &e = evidence[n];
    std::string canonical = "layers." + std::to_string(n) + ".pos_enc";
    EXPECT_EQ(layers[n].getName().str(), nameOf(GetParam(), n));
    EXPECT_EQ(layers[n].getRole().str(), "position_encoding_enhancer");
    const json &want = expected[canonical];
    ASSERT_EQ(e.tensors.size(), want["parameters"].size());

    // Counts and maxima: the multiset of (elements, nonzero, above, max) per layer; in half precision only the zero pattern is the oracle's.
    std::multiset<std::tuple<int64_t, int64_t, int64_t, double>> got, oracle;
    for (auto &t : e.tensors) got.insert({t.elements, t.nonzero, t.aboveThreshold, t.maxAbs});
    for (auto &[name, t] : want["parameters"].items())
      oracle.insert({t["elements"].get<int64_t>(), t["nonzero"].get<int64_t>(), t["above_1e-6"].get<int64_t>(), t["max_abs"].get<double>()});
    if (!half) EXPECT_EQ(got, oracle);
    for (auto &t : e.tensors) EXPECT_EQ(t.storage, half ? "f16" : "f32");

    for (auto [name, policy] : {std::pair("strict", Policy::Strict), {"inference", Policy::Inference}, {"proved", Policy::Proved}})
      EXPECT_EQ(verdict(n, policy), half ? expectedHalf[name][canonical].get<std::string>() : want["verdict"][name].get<std::string>()) << name;

    // The cache graph gets no cache from the calibration file: a first pass over an empty one.
    ASSERT_TRUE(e.forward && e.branch && e.parameters) << e.forwardWhy << e.gradientWhy;
    double forward = want["forward_l2"];
    if (!half) EXPECT_NEAR(*e.forward, forward, std::max(1e-3 * forward, 1e-12));
    // Layer 7 of the half-precision graph has three tiny weights whose branch is multiplied with zero; its gradient may be anything small.
    if (half && n == 7) continue;
    EXPECT_EQ(*e.branch == 0, want["grad_branch"].get<double>() == 0) << *e.branch;
    EXPECT_EQ(*e.parameters == 0, want["grad_parameters"].get<double>() == 0) << *e.parameters;
    EXPECT_EQ(e.proved, n != 0 && n != 3);
  }
  if (half) {
    const checks::TensorEvidence *noisy = nullptr;
    for (auto &t : evidence[7].tensors)
      if (t.name == "fc1.weight") noisy = &t;
    ASSERT_TRUE(noisy);
    EXPECT_EQ(noisy->nonzero, 3);
    EXPECT_NEAR(noisy->maxAbs, 1.1920929e-07, 1e-14);
    EXPECT_EQ(noisy->elements, 81920);
    checks::Verdict v = checks::decide(evidence[7], layers[7].getName(), options, true);
    EXPECT_EQ(v.line.rfind("[PRUNING_REJECTED: WEIGHT_NOISE_DETECTED] layers.7.pos_enc: 3 of 81920 elements of fc1.weight (f16) are non-zero, largest 1.19e-07 at [", 0), 0u)
        << v.line;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, ContractLm,
                         testing::Values(Graph{"contract-lm.onnx", "layers.N.pos_enc"}, Graph{"contract-lm-balanced.onnx", "layers.N.pos_enc"},
                                         Graph{"contract-lm-anonymous.onnx", "layer_N.pos_enc"}, Graph{"contract-lm-kv.onnx", "layers.N.pos_enc"},
                                         Graph{"contract-lm-legacy.onnx", "m.layers.N.pos_enc"}, Graph{"contract-lm-dynamo.onnx", "m.layers.N.pos_enc"},
                                         Graph{"contract-lm-f16.onnx", "layers.N.pos_enc"}),
                         [](const testing::TestParamInfo<Graph> &info) { return std::regex_replace(std::string(info.param.file), std::regex("[^a-z0-9]"), "_"); });

} // namespace
