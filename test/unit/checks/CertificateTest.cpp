// A certificate holds for the model that it was made from, and fails as soon as one weight, threshold, seed, count, number or verdict is another one.
// Each tampering names what differs.
#include "Layers.h"
#include "compiler/checks/Certificate.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "mlir/Pass/PassManager.h"

using namespace tare;
using namespace tare::checks;
using nlohmann::json;

namespace {

const char *kModel = R"(
func.func @main(%x: tensor<3x4xf32> {graph.name = "x"}) -> (tensor<3x4xf32> {graph.name = "r"}) {
  %zero = graph.constant "dead.w" dense<0.0> : tensor<4x4xf32> -> tensor<4x4xf32>
  %v = graph.constant "live.v" dense<VALUE> : tensor<4x4xf32> -> tensor<4x4xf32>
  %o = graph.constant "head" dense<OTHER> : tensor<4xf32> -> tensor<4xf32>
  %a = graph.layer "dead" "adapter" "path"(%x) : tensor<3x4xf32> -> tensor<3x4xf32> {
  ^bb0(%in: tensor<3x4xf32>):
    %h = graph.matmul %in, %zero : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %m = graph.matmul %h, %zero : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %y = graph.binary <add> %in, %m : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    graph.yield %y : tensor<3x4xf32>
  }
  %b = graph.layer "live" "adapter" "path"(%a) : tensor<3x4xf32> -> tensor<3x4xf32> {
  ^bb0(%in: tensor<3x4xf32>):
    %m = graph.matmul %in, %v : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %y = graph.binary <add> %in, %m : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    graph.yield %y : tensor<3x4xf32>
  }
  %r = graph.binary <mul> %b, %o : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
})";

struct Source {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  ImportedModel model;
  CompileOptions options;
  Source(const std::string &value = "0.5", const std::string &other = "1.0") {
    context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
    std::string text = kModel;
    text.replace(text.find("VALUE"), 5, value);
    text.replace(text.find("OTHER"), 5, other);
    model.module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    model.sha256 = "abc";
    options.samples = 2, options.cotangents = 2, options.measureAll = true;
  }
  json certificate() {
    mlir::PassManager manager(&context);
    addPhase(manager, Phase::Checked, options);
    mlir::OwningOpRef<mlir::ModuleOp> copy = model.module->clone();
    EXPECT_TRUE(succeeded(manager.run(*copy)));
    return makeCertificate(*copy, options, model.sha256);
  }
};

std::string verify(const json &certificate, Source &source) {
  llvm::Error error = verifyCertificate(certificate, source.model);
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(Certificate, HoldsForItsSource) {
  for (Policy policy : {Policy::Strict, Policy::Inference, Policy::Proved}) {
    Source source;
    source.options.policy = policy;
    json c = source.certificate();
    EXPECT_EQ(c["layers"].size(), 2u);
    EXPECT_EQ(c["layers"][0]["verdict"], "pruned");
    EXPECT_EQ(verify(c, source), "");
    EXPECT_EQ(c.dump(), source.certificate().dump());
    EXPECT_EQ(verify(json::parse(c.dump()), source), "");
  }
}

TEST(Certificate, NoticesAnAlteredWeight) {
  Source source;
  json c = source.certificate();
  Source altered("0.25"), elsewhere("0.5", "1.5");
  EXPECT_NE(verify(c, altered).find("live: the bytes of v"), std::string::npos) << verify(c, altered);
  EXPECT_NE(verify(c, elsewhere).find("a weight of the model was changed"), std::string::npos) << verify(c, elsewhere);
  altered.model.sha256 = "def";
  EXPECT_NE(verify(c, altered).find("SHA-256"), std::string::npos);
}

TEST(Certificate, NoticesEveryTampering) {
  Source source;
  const json good = source.certificate();
  struct Tampering {
    const char *pointer;
    json value;
    const char *named;
  };
  const Tampering kTamperings[] = {
      {"/thresholds/weight", 0.75, "above_threshold"},
      {"/thresholds/weight", 1e-300, "above_threshold"},
      {"/policy", "proved", "live: the code is 'NOT_PROVED'"},
      {"/nan_mode", "strict", "dead: the verdict is rejected (NAN_ASSUMPTION_REFUSED)"},
      {"/keep", json::array({"dead"}), "KEPT_BY_USER"},
      {"/calibration/seed", 5, "live: forward_l2"},
      {"/calibration/samples", 1, ""},
      {"/layers/0/verdict", "rejected", "dead: the verdict is pruned"},
      {"/layers/0/basis", "evidence", "dead: the basis"},
      {"/layers/0/proved", false, "dead: it is proved"},
      {"/layers/1/verdict", "pruned", "live: the verdict is rejected"},
      {"/layers/1/code", "GRADIENT_NONZERO", "live: the code is"},
      {"/layers/1/proved", true, "live: it is not proved"},
      {"/layers/1/forward_l2", 0.0, "live: forward_l2"},
      {"/layers/1/gradient_branch", 0.0, "live: gradient_branch"},
      {"/layers/1/gradient_parameters", 1.0, "live: gradient_parameters"},
      {"/layers/1/name", "other", "live"},
      {"/layers/1/role", "gate", "live: its role"},
      {"/layers/0/witnesses/0/nonzero", 1, "dead: w: nonzero"},
      {"/layers/0/witnesses/0/sha256", "00", "the bytes of w"},
      {"/layers/1/witnesses/0/max_abs", 0.6, "max_abs"},
      {"/layers/1/witnesses/0/storage", "f16", "is stored as"},
      {"/constants_sha256", "00", "a weight of the model was changed"},
  };
  for (const Tampering &t : kTamperings) {
    json bad = good;
    bad[json::json_pointer(t.pointer)] = t.value;
    std::string said = verify(bad, source);
    if (std::string(t.named).empty()) continue; // fewer samples may give the same maxima
    EXPECT_NE(said.find(t.named), std::string::npos) << t.pointer << ": " << said;
  }
  json cut = good;
  cut["layers"].erase(1);
  EXPECT_NE(verify(cut, source).find("live"), std::string::npos);
}

TEST(Certificate, RefusesWhatIsNotWellFormed) {
  Source source;
  json c = source.certificate();
  EXPECT_NE(verify(json(5), source), "");
  EXPECT_NE(verify(json::object(), source).find("not well-formed"), std::string::npos);
  c["layers"][0]["witnesses"][0].erase("nonzero");
  EXPECT_NE(verify(c, source).find("not well-formed"), std::string::npos);
  json big = source.certificate();
  big["calibration"]["cotangents"] = 1 << 30;
  EXPECT_NE(verify(big, source).find("out of range"), std::string::npos);
}

} // namespace
