// What a certificate says about fidelity checks holds for its source and plan, and fails, naming the check, as soon as one form, code, number or setting is another
// one. The model: a check beside its product, and one that is added to nothing of its own.
#include "CheckModels.h"
#include "compiler/checks/Certificate.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include <gtest/gtest.h>
#include <set>

using namespace tare;
using namespace tare::checks;
using nlohmann::json;

namespace {

struct Source {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompileOptions options;
  /// Thresholds near the distances of random states: bits of both kinds.
  explicit Source(float tau = 5.5f, CompileOptions settings = {}) : options(settings) {
    context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
    CheckWeights a = randomWeights(4), b = randomWeights(5);
    std::fill(a.tau.begin(), a.tau.end(), tau), std::fill(b.tau.begin(), b.tau.end(), tau);
    std::vector<float> up = randomWeights(6).w;
    up.resize(256);
    std::string text = "func.func @main(%x: TYPE {graph.name = \"x\"}) -> (TYPE {graph.name = \"y\"}) {\n%m = graph.constant \"up\" " + hex(up) + " : tensor<16x16xf32> -> tensor<16x16xf32>\n" +
                       checkText("a", "x", a) + "%u = graph.matmul %x, %m : TYPE, tensor<16x16xf32> -> TYPE\n%v = graph.binary <add> %u, %a : TYPE, TYPE -> TYPE\n" + checkText("b", "v", b) +
                       "%y = graph.binary <add> %v, %b : TYPE, TYPE -> TYPE\nreturn %y : TYPE\n}\n";
    for (size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, "tensor<?x?x16xf32, #graph.dims<[\"batch\", \"sequence\", 16]>>");
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    options.samples = 3, options.sequence = 90;
  }
  json certificate() {
    mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
    CompileOptions to = options;
    to.stopAfter = Phase::Clean;
    json c;
    EXPECT_TRUE(succeeded(runPipeline(*copy, to, [&](Phase phase, mlir::ModuleOp at) {
      if (phase == Phase::Checked) c = makeCertificate(at, options, "abc");
      if (phase == Phase::Clean) c["fidelity_checks"] = certifyChecks(at, options);
    })));
    return c;
  }
  /// What the plan of such a certificate has.
  std::vector<PlannedCheck> plan(const json &c) const {
    std::vector<PlannedCheck> planned;
    for (auto &check : c["fidelity_checks"]["checks"])
      if (check["form"] == "sparse") planned.push_back({check["precision"], 8, 4, options.checkWindow});
    return planned;
  }
  std::string verify(const json &c, const std::vector<PlannedCheck> &planned) {
    mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
    EXPECT_TRUE(succeeded(bringToChecks(*copy, options)));
    llvm::Error error = verifyFidelityChecks(c, *copy, planned, "", 2);
    return error ? llvm::toString(std::move(error)) : "";
  }
};

TEST(FidelityCertificate, HoldsForEverySetting) {
  std::set<std::string> codes, precisions;
  for (const char *forced : {"", "int4", "int8", "f32", "dense"})
    for (auto [fidelity, tau] : {std::pair(98.0, 5.5f), {100.0, 0.01f}, {60.0, 5.5f}}) {
      CompileOptions options;
      options.checkPrecision = forced, options.checkFidelity = fidelity, options.checkWindow = fidelity < 98 ? 5 : 3;
      Source source(tau, options);
      json c = source.certificate();
      ASSERT_EQ(c["fidelity_checks"]["checks"].size(), 2u);
      for (auto &check : c["fidelity_checks"]["checks"]) codes.insert(check["code"]), precisions.insert(check["precision"]);
      EXPECT_EQ(source.verify(json::parse(c.dump()), source.plan(c)), "") << forced << " " << fidelity << "\n" << c["fidelity_checks"].dump(1);
    }
  EXPECT_EQ(precisions, (std::set<std::string>{"int4", "int8", "f32"}));
  EXPECT_TRUE(codes.count("CHECK_NOT_FUSABLE"));
}

TEST(FidelityCertificate, NoticesEveryTampering) {
  Source source;
  const json good = source.certificate();
  const std::vector<PlannedCheck> planned = source.plan(good);
  ASSERT_EQ(planned.size(), 1u);
  ASSERT_EQ(source.verify(good, planned), "");
  struct Tampering {
    const char *pointer;
    json value;
    const char *named;
  };
  const Tampering kTamperings[] = {
      {"/checks/0/name", "other", "a: the certificate lists other in its place"},
      {"/checks/0/form", "dense", "a: its form is 'sparse'"},
      {"/checks/0/code", "CHECK_NOT_FUSABLE", "a: its code is ''"},
      {"/checks/0/precision", "none", "a: its precision is '"},
      {"/checks/0/anchors", "file", "a: its anchors is 'seeded'"},
      {"/checks/0/evaluated", 1, "a: evaluated is "},
      {"/checks/0/tokens", 1, "a: tokens is 270"},
      {"/checks/0/output_difference", 0.0, "a: output_difference is "},
      {"/checks/0/tried/0/precision", "int2", "a: form int4 was tried"},
      {"/checks/0/tried/0/window_agreement/3", 12.5, "a: window_agreement of int4 is "},
      {"/checks/0/tried/0/overall_agreement/7", 12.5, "a: overall_agreement of int4 is "},
      {"/checks/0/tried/0/overall_agreement", json::array({1.0}), "a: overall_agreement of int4 is "},
      {"/checks/1/code", "", "b: its code is 'CHECK_NOT_FUSABLE'"},
      {"/checks/1/form", "sparse", "b: its form is 'dense'"},
      {"/window", 60, "a: evaluated is "},
      {"/window", 0, "out of range"},
      {"/fidelity_threshold", 101, "out of range"},
      {"/forced", "dense", "a: its form is 'dense'"},
      {"/forced", "int3", "unknown precision"},
      {"/checks/0/tokens", nullptr, "a: tokens is 270"},
      {"/checks/0/form", 5, "not well-formed"},
  };
  for (const Tampering &t : kTamperings) {
    json bad = good;
    bad["fidelity_checks"][json::json_pointer(t.pointer)] = t.value;
    std::string said = source.verify(bad, planned);
    EXPECT_NE(said.find(t.named), std::string::npos) << t.pointer << ": " << said;
  }
  json seed = good;
  seed["calibration"]["seed"] = 7;
  EXPECT_NE(source.verify(seed, planned).find("a: "), std::string::npos);
  json cut = good;
  cut["fidelity_checks"]["checks"].erase(1);
  EXPECT_NE(source.verify(cut, planned).find("b: the certificate does not list it"), std::string::npos);
  cut.erase("fidelity_checks");
  EXPECT_NE(source.verify(cut, planned).find("a: the certificate says nothing"), std::string::npos);
  json more = good;
  more["fidelity_checks"]["checks"].push_back(more["fidelity_checks"]["checks"][0]);
  EXPECT_NE(source.verify(more, planned).find("a: the model has no such"), std::string::npos);
  EXPECT_NE(source.verify(json{{"fidelity_checks", 5}}, planned).find("not well-formed"), std::string::npos);
  Source other(5.4f);
  EXPECT_NE(other.verify(good, planned).find("a: "), std::string::npos);
}

TEST(FidelityCertificate, ThePlanIsWhatTheEvidenceSpeaksOf) {
  Source source;
  json c = source.certificate();
  std::vector<PlannedCheck> planned = source.plan(c);
  auto said = [&](auto change) {
    std::vector<PlannedCheck> bad = planned;
    change(bad);
    return source.verify(c, bad);
  };
  std::string other = planned[0].precision == "int8" ? "int4" : "int8";
  EXPECT_NE(said([&](auto &p) { p[0].precision = other; }).find("a: it is " + planned[0].precision + " with 8 heads of rank 4, the engine's plan has " + other), std::string::npos);
  EXPECT_NE(said([](auto &p) { p[0].heads = 7; }).find("a: it is"), std::string::npos);
  EXPECT_NE(said([](auto &p) { p[0].rank = 7; }).find("a: it is"), std::string::npos);
  EXPECT_NE(said([](auto &p) { p[0].window = 4; }).find("a: its window is 3, the engine's plan has 4"), std::string::npos);
  EXPECT_NE(said([](auto &p) { p.clear(); }).find("a: the engine's plan has no such check"), std::string::npos);
  EXPECT_NE(said([](auto &p) { p.push_back(p[0]); }).find("the engine's plan has 2 sparse fidelity checks, the source gives 1"), std::string::npos);
}

} // namespace
