// Every VJP against central differences in float64. One line per op and form: the op's text with its operands %a, %b, %c as arguments of main. The
// scalar that is differentiated is sum(result * fixed weights); every floating-point operand is checked element by element.
#include "Parsed.h"

using namespace tare::reference;

namespace {

struct Case {
  const char *name, *arguments, *op, *result;
  double low = -1.5, high = 1.5;
};
void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

#define UNARY(kind, ...) {#kind, "%a: tensor<3x4xf64>", "graph.unary <" #kind "> %a : tensor<3x4xf64> -> tensor<3x4xf64>", "tensor<3x4xf64>", ##__VA_ARGS__}
#define BINARY(kind, ...)                                                                                                                            \
  {#kind, "%a: tensor<2x3x4xf64>, %b: tensor<3x1xf64>", "graph.binary <" #kind "> %a, %b : tensor<2x3x4xf64>, tensor<3x1xf64> -> tensor<2x3x4xf64>", \
   "tensor<2x3x4xf64>", ##__VA_ARGS__}
#define REDUCE(kind, ...)                                                                                                                            \
  {"reduce_" #kind, "%a: tensor<2x3x4xf64>", "graph.reduce <" #kind "> %a [0, 2] keepdims false : tensor<2x3x4xf64> -> tensor<3xf64>", "tensor<3xf64>", ##__VA_ARGS__}

const Case kCases[] = {
    UNARY(neg), UNARY(abs), UNARY(exp), UNARY(log, 0.2, 3), UNARY(sqrt, 0.2, 3), UNARY(rsqrt, 0.2, 3), UNARY(reciprocal, 0.2, 3), UNARY(erf), UNARY(tanh),
    UNARY(sigmoid), UNARY(relu), UNARY(sin), UNARY(cos), UNARY(softplus), UNARY(gelu_erf), UNARY(gelu_tanh), UNARY(silu), UNARY(identity), UNARY(tan, -1, 1),
    UNARY(asin, -0.9, 0.9), UNARY(acos, -0.9, 0.9), UNARY(atan), UNARY(sinh), UNARY(cosh),
    BINARY(add), BINARY(sub), BINARY(mul), BINARY(div, 0.3, 2), BINARY(pow, 0.3, 2), BINARY(min), BINARY(max), BINARY(fmod, 1.1, 1.9),
    REDUCE(sum), REDUCE(mean), REDUCE(max), REDUCE(min), REDUCE(prod), REDUCE(l1), REDUCE(l2), REDUCE(sum_square), REDUCE(log_sum_exp), REDUCE(log_sum, 0.2, 2),
    {"select", "%c: tensor<4xi1>, %a: tensor<3x4xf64>, %b: tensor<3x1xf64>", "graph.select %c, %a, %b : tensor<4xi1>, tensor<3x4xf64>, tensor<3x1xf64> -> tensor<3x4xf64>", "tensor<3x4xf64>"},
    {"reshape", "%a: tensor<3x4xf64>", "graph.reshape %a : tensor<3x4xf64> -> tensor<2x6xf64>", "tensor<2x6xf64>"},
    {"transpose", "%a: tensor<2x3x4xf64>", "graph.transpose %a [2, 0, 1] : tensor<2x3x4xf64> -> tensor<4x2x3xf64>", "tensor<4x2x3xf64>"},
    {"expand", "%a: tensor<3x1xf64>", "graph.expand %a : tensor<3x1xf64> -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
    {"slice", "%a: tensor<5x4xf64>", "graph.slice %a <[4, 1]> [-2, 1] : tensor<5x4xf64> -> tensor<3x2xf64>", "tensor<3x2xf64>"},
    {"concat", "%a: tensor<2x3xf64>, %b: tensor<2x2xf64>", "graph.concat 1(%a, %b) : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<2x5xf64>", "tensor<2x5xf64>"},
    {"pad", "%a: tensor<3x2xf64>, %b: tensor<f64>", "graph.pad %a, %b <[1, -1]> : tensor<3x2xf64>, tensor<f64> -> tensor<5x3xf64>", "tensor<5x3xf64>"},
    {"tile", "%a: tensor<2x3xf64>", "graph.tile %a : tensor<2x3xf64> -> tensor<4x9xf64>", "tensor<4x9xf64>"},
    {"gather", "%a: tensor<4x3xf64>, %i: tensor<2x2xi64>", "graph.gather %a[%i] 0 : tensor<4x3xf64>, tensor<2x2xi64> -> tensor<2x2x3xf64>", "tensor<2x2x3xf64>"},
    {"gather_axis1", "%a: tensor<2x3x2xf64>, %i: tensor<2xi64>", "graph.gather %a[%i] 1 : tensor<2x3x2xf64>, tensor<2xi64> -> tensor<2x2x2xf64>", "tensor<2x2x2xf64>"},
    {"gather_elements", "%a: tensor<3x4xf64>, %i: tensor<2x4xi64>", "graph.gather_elements %a[%i] 0 : tensor<3x4xf64>, tensor<2x4xi64> -> tensor<2x4xf64>", "tensor<2x4xf64>"},
    {"gather_nd", "%a: tensor<2x3x4xf64>, %i: tensor<2x1xi64>", "graph.gather_nd %a[%i] 1 : tensor<2x3x4xf64>, tensor<2x1xi64> -> tensor<2x4xf64>", "tensor<2x4xf64>"},
    {"trilu", "%a: tensor<2x3x4xf64>", "graph.trilu %a <[1]> true : tensor<2x3x4xf64> -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
    {"matmul", "%a: tensor<3x4xf64>, %b: tensor<4x5xf64>", "graph.matmul %a, %b : tensor<3x4xf64>, tensor<4x5xf64> -> tensor<3x5xf64>", "tensor<3x5xf64>"},
    {"matmul_weight", "%a: tensor<2x3x4xf64>, %b: tensor<4x5xf64>", "graph.matmul %a, %b : tensor<2x3x4xf64>, tensor<4x5xf64> -> tensor<2x3x5xf64>", "tensor<2x3x5xf64>"},
    {"matmul_batch", "%a: tensor<2x1x3x4xf64>, %b: tensor<5x4x2xf64>", "graph.matmul %a, %b : tensor<2x1x3x4xf64>, tensor<5x4x2xf64> -> tensor<2x5x3x2xf64>", "tensor<2x5x3x2xf64>"},
    {"matmul_vector", "%a: tensor<4xf64>, %b: tensor<2x4x3xf64>", "graph.matmul %a, %b : tensor<4xf64>, tensor<2x4x3xf64> -> tensor<2x3xf64>", "tensor<2x3xf64>"},
    {"cumsum", "%a: tensor<3x4xf64>", "graph.cumsum %a 1 : tensor<3x4xf64> -> tensor<3x4xf64>", "tensor<3x4xf64>"},
    {"cumsum_exclusive_reverse", "%a: tensor<3x4xf64>", "graph.cumsum %a 0 {exclusive, reverse} : tensor<3x4xf64> -> tensor<3x4xf64>", "tensor<3x4xf64>"},
    {"softmax", "%a: tensor<2x3x4xf64>", "graph.softmax %a 2 : tensor<2x3x4xf64> -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
    {"softmax_axis1", "%a: tensor<2x3x4xf64>", "graph.softmax %a 1 : tensor<2x3x4xf64> -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
    {"log_softmax", "%a: tensor<2x3x4xf64>", "graph.softmax %a 2 log : tensor<2x3x4xf64> -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
    {"layer_norm", "%a: tensor<2x3x4xf64>, %b: tensor<4xf64>, %c: tensor<4xf64>",
     "graph.layer_norm %a, %b, %c {axis = 2 : i64, epsilon = 1.0e-3 : f64} : (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
    {"layer_norm_two_axes", "%a: tensor<2x3x4xf64>, %b: tensor<3x4xf64>",
     "graph.layer_norm %a, %b {axis = 1 : i64, epsilon = 1.0e-3 : f64} : (tensor<2x3x4xf64>, tensor<3x4xf64>) -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
    {"rms_norm", "%a: tensor<2x3x4xf64>, %b: tensor<4xf64>",
     "graph.rms_norm %a, %b {axis = 2 : i64, epsilon = 1.0e-3 : f64} : (tensor<2x3x4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>", "tensor<2x3x4xf64>"},
};

class Vjp : public testing::TestWithParam<Case> {};

TEST_P(Vjp, MatchesCentralDifferences) {
  const Case &c = GetParam();
  Parsed p("func.func @main(" + std::string(c.arguments) + ") -> " + c.result + " {\n  %y = " + c.op + "\n  return %y : " + c.result + "\n}");
  ASSERT_TRUE(p.module);
  std::mt19937_64 random(7);
  std::vector<Tensor> inputs;
  for (mlir::Value argument : p.body().getArguments()) inputs.push_back(randomLike(llvm::cast<mlir::RankedTensorType>(argument.getType()), random, c.low, c.high));
  auto values = evaluate(p.body(), inputs);
  ASSERT_TRUE(bool(values)) << llvm::toString(values.takeError());
  mlir::Value y = p.body().getTerminator()->getOperand(0);
  Tensor weights = randomLike(llvm::cast<mlir::RankedTensorType>(y.getType()), random, -1, 1);
  Values seeds;
  seeds[y] = weights;
  llvm::SmallVector<std::string> missing;
  auto symbols = bindSymbols(p.body(), inputs);
  auto cotangents = backward(p.body(), *values, seeds, *symbols, {nullptr, nullptr, &missing});
  ASSERT_TRUE(bool(cotangents)) << llvm::toString(cotangents.takeError());
  ASSERT_TRUE(missing.empty()) << missing.front();

  auto objective = [&](const std::vector<Tensor> &at) {
    Tensor result = p.run(at);
    double sum = 0;
    for (size_t i = 0; i < result.floats.size(); ++i) sum += result.floats[i] * weights.floats[i];
    return sum;
  };
  for (size_t n = 0; n < inputs.size(); ++n) {
    if (!inputs[n].isFloat()) continue;
    const Tensor &got = (*cotangents)[p.body().getArgument(n)];
    ASSERT_EQ(got.shape, inputs[n].shape) << "operand " << n;
    for (size_t i = 0; i < inputs[n].floats.size(); ++i) {
      std::vector<Tensor> up = inputs, down = inputs;
      const double h = 1e-6;
      up[n].floats[i] += h, down[n].floats[i] -= h;
      double slope = (objective(up) - objective(down)) / (2 * h);
      EXPECT_NEAR(got.floats[i], slope, 1e-7 * std::max(1.0, std::fabs(slope)) + 2e-8) << "operand " << n << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Vjp, testing::ValuesIn(kCases), [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

// The check's bits are steps: nothing reaches h, W, p and tau; E gets the sum over the tokens whose bit is set.
TEST(FidelityCheck, OnlyEHasAGradient) {
  Parsed p(R"(func.func @main(%h: tensor<3x2xf64>, %w: tensor<2x1x2xf64>, %p: tensor<2x1xf64>, %tau: tensor<2xf64>, %e: tensor<2x4xf64>) -> tensor<3x4xf64> {
    %y = graph.fidelity_check %h, %w, %p, %tau, %e : (tensor<3x2xf64>, tensor<2x1x2xf64>, tensor<2x1xf64>, tensor<2xf64>, tensor<2x4xf64>) -> tensor<3x4xf64>
    return %y : tensor<3x4xf64> })");
  // Distances |h.w_k - p_k|: head 0 sees x, head 1 sees y. Bits: token 0 {1,0}, token 1 {1,1}, token 2 {0,0}.
  std::vector<Tensor> inputs = {p.floats({3, 2}, {0.1, 5, 0.2, 0.3, 4, 4}, "f64"), p.floats({2, 1, 2}, {1, 0, 0, 1}, "f64"), p.floats({2, 1}, {0, 0}, "f64"),
                                p.floats({2}, {1, 1}, "f64"), p.floats({2, 4}, {1, 2, 3, 4, 10, 20, 30, 40}, "f64")};
  Tensor y = p.run(inputs);
  EXPECT_EQ(y.floats, (std::vector<double>{1, 2, 3, 4, 11, 22, 33, 44, 0, 0, 0, 0}));
  auto values = evaluate(p.body(), inputs);
  Values seeds;
  seeds[p.body().getTerminator()->getOperand(0)] = p.floats({3, 4}, std::vector<double>(12, 1), "f64");
  auto cotangents = backward(p.body(), *values, seeds, {}, {});
  ASSERT_TRUE(bool(cotangents));
  EXPECT_FALSE(cotangents->count(p.body().getArgument(0)));
  EXPECT_EQ((*cotangents)[p.body().getArgument(4)].floats, (std::vector<double>{2, 2, 2, 2, 1, 1, 1, 1}));
}

// Near anchors: the first token and the windows are evaluated, with the integers where there are any; the others have the last evaluated bits.
TEST(FidelityCheck, NearAnchors) {
  Parsed p(R"(func.func @main(%h: tensor<2x6x1xf64>, %w: tensor<1x1x1xf64>, %p: tensor<1x1xf64>, %tau: tensor<1xf64>, %e: tensor<1x1xf64>, %a: tensor<2x2xi32>, %q: tensor<1x1x1xi8>,
                                  %s: tensor<1x1x1xf64>) -> (tensor<2x6x1xf64>, tensor<2x6x1xf64>) {
    %y = graph.fidelity_check %h, %w, %p, %tau, %e near %a : tensor<2x2xi32> {window = 2 : i64} : (tensor<2x6x1xf64>, tensor<1x1x1xf64>, tensor<1x1xf64>, tensor<1xf64>, tensor<1x1xf64>) -> tensor<2x6x1xf64>
    %z = graph.fidelity_check %h, %w, %p, %tau, %e near %a : tensor<2x2xi32> as %q, %s : tensor<1x1x1xi8>, tensor<1x1x1xf64> {window = 2 : i64, group = 32 : i64, precision = "int8"}
      : (tensor<2x6x1xf64>, tensor<1x1x1xf64>, tensor<1x1xf64>, tensor<1xf64>, tensor<1x1xf64>) -> tensor<2x6x1xf64>
    return %y, %z : tensor<2x6x1xf64>, tensor<2x6x1xf64> })");
  Tensor anchors = p.ints({2, 2}, {5, -1, 9, 3}, "i32"), q = p.ints({1, 1, 1}, {4}, "i8"); // windows {3, 4}, {1, 2}; 9 lies beyond the end
  std::vector<Tensor> inputs = {p.floats({2, 6, 1}, {2, 0, 0, 0, 2, 0, 0, 2, 0, 2, 2, 2}, "f64"), p.floats({1, 1, 1}, {1}, "f64"), p.floats({1, 1}, {0}, "f64"), p.floats({1}, {1}, "f64"),
                                p.floats({1, 1}, {1}, "f64"), anchors, q, p.floats({1, 1, 1}, {0.1}, "f64")};
  auto values = evaluate(p.body(), inputs);
  ASSERT_TRUE(bool(values));
  auto exit = p.body().getTerminator();
  EXPECT_EQ((*values)[exit->getOperand(0)].floats, (std::vector<double>{0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1}));
  EXPECT_EQ((*values)[exit->getOperand(1)].floats, (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})); // 0.4 * 2 is below 1
}

} // namespace
