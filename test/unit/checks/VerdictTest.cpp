// Verdicts on small layers of every kind that bugs.md and spec 1 to 3 speak of. Expected codes follow from the texts, not from our own output.
#include "Layers.h"
#include "compiler/checks/Recheck.h"
#include <cmath>

using namespace tare;
using namespace tare::checks;

namespace {

const std::string T = "tensor<3x4xf32>", M = "tensor<4x4xf32>";
std::string constant(const std::string &id, const std::string &name, const std::string &value, const std::string &type, const std::string &flag = "") {
  return "  %" + id + " = graph.constant \"" + name + "\" " + flag + value + " : " + type + " -> " + type + "\n";
}
std::string matmul(const std::string &to, const std::string &from, const std::string &weight) {
  return "    %" + to + " = graph.matmul %" + from + ", %" + weight + " : " + T + ", " + M + " -> " + T + "\n";
}
std::string binary(const std::string &to, const std::string &kind, const std::string &a, const std::string &b, const std::string &bType = "tensor<3x4xf32>") {
  return "    %" + to + " = graph.binary <" + kind + "> %" + a + ", %" + b + " : " + T + ", " + bType + " -> " + T + "\n";
}
std::string unary(const std::string &to, const std::string &kind, const std::string &a) { return "    %" + to + " = graph.unary <" + kind + "> %" + a + " : " + T + " -> " + T + "\n"; }

struct Case {
  const char *name;
  std::string constants, body;
  size_t parameters;
  const char *strict, *inference, *proved;
};
void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

const std::string zeroW = constant("w", "l.w", "dense<0.0>", M), liveW = constant("v", "l.v", "dense<0.5>", M);

const Case kCases[] = {
    {"all_zero", zeroW + constant("u", "l.u", "dense<0.0>", M), matmul("h", "in", "w") + matmul("m", "h", "u") + binary("y", "add", "in", "m"), 2, "proved", "proved", "proved"},
    // -0.0 is zero.
    {"minus_zero", constant("w", "l.w", "dense<-0.0>", M) + constant("u", "l.u", "dense<-0.0>", M),
     matmul("h", "in", "w") + matmul("m", "h", "u") + binary("y", "add", "in", "m"), 2, "proved", "proved", "proved"},
    // One zero matrix alone is trainable: its gradient is not 0.
    {"one_matrix", zeroW, matmul("m", "in", "w") + binary("y", "add", "in", "m"), 1, "GRADIENT_NONZERO", "proved", "proved"},
    {"output_bias", zeroW + constant("b", "l.b", "dense<0.0>", "tensor<4xf32>"), matmul("h", "in", "w") + matmul("m", "h", "w") + binary("s", "add", "m", "b", "tensor<4xf32>") + binary("y", "add", "in", "s"), 2,
     "GRADIENT_NONZERO", "proved", "proved"},
    // LLaMA-Pro, LoRA with B = 0: exact, but the first matrix is alive.
    {"zero_projection", zeroW + liveW, matmul("h", "in", "v") + unary("t", "gelu_erf", "h") + matmul("m", "t", "w") + binary("y", "add", "in", "m"), 2, "WEIGHT_ABOVE_THRESHOLD", "proved", "proved"},
    {"overflow_before_a_zero_projection", zeroW + liveW, matmul("h", "in", "v") + unary("t", "exp", "h") + matmul("m", "t", "w") + binary("y", "add", "in", "m"), 2, "WEIGHT_ABOVE_THRESHOLD", "proved", "proved"},
    // A dead ReLU is dead on this data only (first facts; B71).
    {"dead_relu", liveW + constant("b", "l.b", "dense<-100.0>", "tensor<4xf32>"),
     matmul("h", "in", "v") + binary("s", "add", "h", "b", "tensor<4xf32>") + unary("t", "relu", "s") + matmul("m", "t", "v") + binary("y", "add", "in", "m"), 2, "WEIGHT_ABOVE_THRESHOLD",
     "WEIGHT_ABOVE_THRESHOLD", "NOT_PROVED"},
    {"second_bias", zeroW + constant("b", "l.b", "dense<0.3>", "tensor<4xf32>"), matmul("m", "in", "w") + binary("s", "add", "m", "b", "tensor<4xf32>") + binary("y", "add", "in", "s"), 2,
     "WEIGHT_ABOVE_THRESHOLD", "WEIGHT_ABOVE_THRESHOLD", "NOT_PROVED"},
    {"not_finite", zeroW + constant("v", "l.v", "dense<0x7FC00000>", M), matmul("h", "in", "v") + matmul("m", "h", "w") + binary("y", "add", "in", "m"), 2, "WEIGHT_NOT_FINITE", "WEIGHT_NOT_FINITE", "WEIGHT_NOT_FINITE"},
    {"overridable", constant("w", "l.w", "dense<0.0>", M, "overridable "), matmul("m", "in", "w") + binary("y", "add", "in", "m"), 1, "WEIGHT_OVERRIDABLE", "WEIGHT_OVERRIDABLE", "WEIGHT_OVERRIDABLE"},
    // f32(1e-6) is not below 1e-6, compared in f32 (first facts, 3); 9.9e-7 is.
    {"at_the_threshold", constant("w", "l.w", "dense<1.0e-6>", M), matmul("m", "in", "w") + binary("y", "add", "in", "m"), 1, "WEIGHT_ABOVE_THRESHOLD", "WEIGHT_ABOVE_THRESHOLD", "NOT_PROVED"},
    {"below_the_threshold", constant("w", "l.w", "dense<9.9e-7>", M), matmul("m", "in", "w") + binary("y", "add", "in", "m"), 1, "FORWARD_NOT_IDENTITY", "FORWARD_NOT_IDENTITY", "NOT_PROVED"},
    {"tiny", constant("w", "l.w", "dense<1.0e-12>", M), matmul("m", "in", "w") + binary("y", "add", "in", "m"), 1, "GRADIENT_NONZERO", "GRADIENT_NONZERO", "NOT_PROVED"},
    // Gates and ReZero: one element counts when it scales the whole branch, or lies under the layer's path.
    {"rezero", liveW + constant("g", "alpha", "dense<0.0>", "tensor<1xf32>"), matmul("h", "in", "v") + binary("m", "mul", "h", "g", "tensor<1xf32>") + binary("y", "add", "in", "m"), 2, "WEIGHT_ABOVE_THRESHOLD",
     "proved", "proved"},
    {"sigmoid_gate", constant("g", "l.g", "dense<0.0>", "tensor<1xf32>") + "  %s = graph.unary <sigmoid> %g : tensor<1xf32> -> tensor<1xf32>\n", binary("y", "mul", "in", "s", "tensor<1xf32>"), 1, "FORWARD_NOT_IDENTITY",
     "FORWARD_NOT_IDENTITY", "NOT_PROVED"},
    {"tanh_gate", liveW + constant("g", "gate", "dense<0.0>", "tensor<1xf32>") + "  %s = graph.unary <tanh> %g : tensor<1xf32> -> tensor<1xf32>\n",
     matmul("h", "in", "v") + binary("m", "mul", "h", "s", "tensor<1xf32>") + binary("y", "add", "m", "in"), 2, "WEIGHT_ABOVE_THRESHOLD", "proved", "proved"},
    // (1 + w) * x with w = 0 is the identity, though it is no residual.
    {"one_plus_scale", constant("w", "l.w", "dense<0.0>", "tensor<4xf32>") + constant("one", "", "dense<1.0>", "tensor<1xf32>"),
     "    %s = graph.binary <add> %w, %one : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>\n" + binary("y", "mul", "in", "s", "tensor<4xf32>"), 1, "GRADIENT_NONZERO", "proved", "proved"},
    // The written-out GELU's constants are no parameters, even at the end of the branch.
    {"written_gelu", zeroW + constant("root", "sqrt2", "dense<1.41421354>", "tensor<f32>") + constant("one", "one", "dense<1.0>", "tensor<f32>") + constant("half", "half", "dense<0.5>", "tensor<f32>"),
     matmul("h", "in", "w") + binary("d", "div", "h", "root", "tensor<f32>") + unary("e", "erf", "d") + binary("p", "add", "e", "one", "tensor<f32>") + binary("q", "mul", "h", "p") +
         binary("m", "mul", "q", "half", "tensor<f32>") + binary("y", "add", "in", "m"), 1, "GRADIENT_NONZERO", "proved", "proved"},
    // Weights through Transpose, Cast and DequantizeLinear count once, as decoded; codes equal to the zero point are zeros.
    {"transposed", zeroW + "  %t = graph.transpose %w [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>\n", matmul("h", "in", "t") + matmul("m", "h", "t") + binary("y", "add", "in", "m"), 1, "proved", "proved", "proved"},
    {"quantised_zero", "  %c = graph.constant \"l.w\" dense<7> : tensor<4x4xi8> -> tensor<4x4xi8>\n  %s = graph.constant \"l.s\" dense<0.25> : tensor<f32> -> tensor<f32>\n  %z = graph.constant \"l.z\" dense<7> : tensor<i8> -> tensor<i8>\n"
                       "  %w = graph.dequantize %c, %s, %z {axis = 0 : i64} : (tensor<4x4xi8>, tensor<f32>, tensor<i8>) -> tensor<4x4xf32>\n",
     matmul("h", "in", "w") + matmul("m", "h", "w") + binary("y", "add", "in", "m"), 1, "proved", "proved", "proved"},
    {"quantised_live", "  %c = graph.constant \"l.w\" dense<0> : tensor<4x4xi8> -> tensor<4x4xi8>\n  %s = graph.constant \"l.s\" dense<0.25> : tensor<f32> -> tensor<f32>\n  %z = graph.constant \"l.z\" dense<7> : tensor<i8> -> tensor<i8>\n"
                       "  %w = graph.dequantize %c, %s, %z {axis = 0 : i64} : (tensor<4x4xi8>, tensor<f32>, tensor<i8>) -> tensor<4x4xf32>\n",
     matmul("m", "in", "w") + binary("y", "add", "in", "m"), 1, "WEIGHT_ABOVE_THRESHOLD", "WEIGHT_ABOVE_THRESHOLD", "NOT_PROVED"},
    // Half precision: noise below the threshold is still not zero.
    {"half_noise", "  %n = graph.constant \"l.n\" dense<5.96e-8> : tensor<4x4xf16> -> tensor<4x4xf16>\n  %v = graph.cast %n : tensor<4x4xf16> -> tensor<4x4xf32>\n" + zeroW,
     matmul("h", "in", "v") + matmul("m", "h", "w") + binary("y", "add", "in", "m"), 2, "WEIGHT_NOISE_DETECTED", "proved", "proved"},
    // Without a residual a zero block is no identity.
    {"no_residual", zeroW, matmul("y", "in", "w"), 1, "FORWARD_NOT_IDENTITY", "FORWARD_NOT_IDENTITY", "NOT_PROVED"},
    // Zero Q and K give the mean of V; a zero output projection behind a mask of -inf is still provable.
    {"zero_scores", zeroW + liveW, matmul("q", "in", "w") + "    %p = graph.softmax %q 1 : " + T + " -> " + T + "\n" + matmul("m", "p", "v") + binary("y", "add", "in", "m"), 2, "WEIGHT_ABOVE_THRESHOLD",
     "WEIGHT_ABOVE_THRESHOLD", "NOT_PROVED"},
    {"masked_scores", zeroW + constant("inf", "mask", "dense<0xFF800000>", "tensor<f32>") + "  %k = graph.unary <isnan> %x : tensor<3x4xf32> -> tensor<3x4xi1>\n",
     "    %q = graph.select %k, %inf, %in : tensor<3x4xi1>, tensor<f32>, " + T + " -> " + T + "\n    %p = graph.softmax %q 1 : " + T + " -> " + T + "\n" + matmul("h", "p", "w") + matmul("m", "h", "w") +
         binary("y", "add", "in", "m"), 1, "proved", "proved", "proved"},
    {"empty", "", unary("y", "identity", "in"), 0, "proved", "proved", "proved"},
};

class Verdicts : public testing::TestWithParam<Case> {};

TEST_P(Verdicts, UnderEveryPolicy) {
  const Case &c = GetParam();
  Layers t(oneLayer(c.constants, c.body));
  ASSERT_EQ(t.layers.size(), 1u);
  t.measure();
  EXPECT_EQ(t.evidence[0].tensors.size(), c.parameters);
  EXPECT_EQ(t.verdict(0, Policy::Strict), c.strict) << t.evidence[0].proofRule;
  EXPECT_EQ(t.verdict(0, Policy::Inference), c.inference);
  EXPECT_EQ(t.verdict(0, Policy::Proved), c.proved);

  // The independent checker comes to the same verdict from the same layer, and shares no forged one.
  for (auto [policy, expected] : {std::pair(Policy::Strict, c.strict), {Policy::Inference, c.inference}, {Policy::Proved, c.proved}}) {
    std::string basis = expected;
    bool pruned = basis == "proved" || basis == "evidence";
    t.layers[0].setVerdictAttr(graph::VerdictAttr::get(&t.context, "pruned", pruned ? basis : t.evidence[0].proved ? "proved" : "evidence", ""));
    t.layers[0]->setAttr("graph.evidence", toAttribute(&t.context, t.evidence[0]));
    CompileOptions o = t.options;
    o.policy = policy;
    llvm::Error error = recheck(t.layers[0], o);
    EXPECT_EQ(!error, pruned) << expected;
    std::string said = llvm::toString(std::move(error));
    if (!pruned) EXPECT_NE(said.find(expected), std::string::npos) << said;
  }
}

TEST(Recheck, ProofIsTriedOnRandomInputs) {
  Layers t(oneLayer(liveW, unary("y", "relu", "in"))); // no weights, no identity
  t.measure();
  Evidence forged = t.evidence[0];
  forged.proved = true, forged.forward = 0, forged.branch = 0, forged.parameters = 0;
  t.layers[0].setVerdictAttr(graph::VerdictAttr::get(&t.context, "pruned", "proved", ""));
  t.layers[0]->setAttr("graph.evidence", toAttribute(&t.context, forged));
  EXPECT_NE(llvm::toString(recheck(t.layers[0], t.options)).find("differs from its input on random finite inputs"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Verdicts, testing::ValuesIn(kCases), [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

const std::string kDead = oneLayer(zeroW, matmul("h", "in", "w") + matmul("m", "h", "w") + binary("y", "add", "in", "m"));

TEST(Verdict, StrictNansRefuses) {
  Layers t(kDead);
  t.measure();
  t.options.strictNans = true;
  EXPECT_EQ(t.verdict(0, Policy::Strict), "NAN_ASSUMPTION_REFUSED");
  Layers none(oneLayer("", unary("y", "identity", "in")));
  none.measure();
  none.options.strictNans = true;
  EXPECT_EQ(none.verdict(0, Policy::Strict), "proved");
}

TEST(Verdict, KeepAndOnly) {
  Layers t(kDead);
  t.measure();
  t.options.keep = {"l*"};
  EXPECT_EQ(t.verdict(0, Policy::Strict), "KEPT_BY_USER");
  t.options.keep = {}, t.options.only = {"other"};
  EXPECT_EQ(t.verdict(0, Policy::Strict), "KEPT_BY_USER");
  t.options.only = {"other", "?"};
  EXPECT_EQ(t.verdict(0, Policy::Strict), "proved");
}

TEST(Verdict, ThresholdsCount) {
  Layers t(oneLayer(constant("w", "l.w", "dense<1.0e-4>", M), matmul("m", "in", "w") + binary("y", "add", "in", "m")));
  t.options.weightThreshold = 1e-3, t.options.forwardThreshold = 1e-12;
  t.measure();
  EXPECT_EQ(t.evidence[0].aboveThreshold(), 0);
  EXPECT_EQ(t.verdict(0, Policy::Strict), "FORWARD_NOT_IDENTITY");
  t.options.forwardThreshold = 1;
  EXPECT_EQ(t.verdict(0, Policy::Strict), "GRADIENT_NONZERO");
}

// A weight shared by a dead and a live layer counts in each with what reaches it through that layer only (B14).
TEST(Verdict, SharedWeights) {
  Layers t("func.func @main(%x: " + T + ") -> " + T + " {\n" + zeroW + liveW +
           "  %a = graph.layer \"a\" \"adapter\" \"path\"(%x) : " + T + " -> " + T + " {\n  ^bb0(%in: " + T + "):\n" + matmul("h", "in", "w") + matmul("m", "h", "w") + binary("y", "add", "in", "m") + "    graph.yield %y : " + T +
           "\n  }\n  %b = graph.layer \"b\" \"adapter\" \"path\"(%a) : " + T + " -> " + T + " {\n  ^bb0(%in: " + T + "):\n" + matmul("h", "in", "v") + matmul("m", "h", "w") + binary("y", "add", "in", "m") + "    graph.yield %y : " + T +
           "\n  }\n  return %b : " + T + "\n}");
  t.measure();
  EXPECT_EQ(*t.evidence[0].parameters, 0);
  EXPECT_GT(*t.evidence[1].parameters, 0);
  EXPECT_EQ(t.verdict(0, Policy::Strict), "proved");
  EXPECT_EQ(t.verdict(1, Policy::Strict), "WEIGHT_ABOVE_THRESHOLD");
  EXPECT_EQ(t.verdict(1, Policy::Proved), "proved");
}

// A state that is broken before it reaches the layer: the row fails and says where it comes from.
TEST(Verdict, NonFiniteStateNamesItsOrigin) {
  Layers t("func.func @main(%x: " + T + ") -> " + T + " {\n" + zeroW + "  %n = graph.constant \"\" dense<-1.0> : tensor<f32> -> tensor<f32>\n  %i = graph.constant \"\" dense<0.0> : tensor<f32> -> tensor<f32>\n" +
           "  %q = graph.binary <div> %n, %i : tensor<f32>, tensor<f32> -> tensor<f32>\n  %s = graph.binary <mul> %x, %q {graph.scope = \"layers.3.broken\"} : " + T + ", tensor<f32> -> " + T +
           "\n  %l = graph.layer \"l\" \"adapter\" \"path\"(%s) : " + T + " -> " + T + " {\n  ^bb0(%in: " + T + "):\n" + matmul("m", "in", "w") + binary("y", "add", "in", "m") + "    graph.yield %y : " + T + "\n  }\n  return %l : " + T + "\n}");
  t.measure();
  EXPECT_FALSE(t.evidence[0].forward);
  EXPECT_NE(t.evidence[0].forwardWhy.find("layers.3.broken"), std::string::npos) << t.evidence[0].forwardWhy;
  EXPECT_EQ(t.verdict(0, Policy::Strict), "FORWARD_NOT_IDENTITY");
}

TEST(Verdict, ThreadsDoNotChangeTheNumbers) {
  auto numbers = [](unsigned threads) {
    Layers t(oneLayer(liveW, matmul("h", "in", "v") + unary("t", "gelu_erf", "h") + matmul("m", "t", "v") + binary("y", "add", "in", "m")));
    t.options.threads = threads, t.options.samples = 5;
    t.measure();
    return std::tuple(*t.evidence[0].forward, *t.evidence[0].branch, *t.evidence[0].parameters);
  };
  EXPECT_EQ(numbers(1), numbers(3));
}

TEST(Verdict, AttributesRoundTrip) {
  Layers t(kDead);
  t.measure();
  Evidence back = fromAttribute(toAttribute(&t.context, t.evidence[0]));
  EXPECT_EQ(back.tensors.size(), 1u);
  EXPECT_EQ(back.tensors[0].sha256, t.evidence[0].tensors[0].sha256);
  EXPECT_EQ(back.forward, t.evidence[0].forward);
  EXPECT_EQ(back.parameters, t.evidence[0].parameters);
  EXPECT_EQ(back.proved, true);
}

} // namespace
