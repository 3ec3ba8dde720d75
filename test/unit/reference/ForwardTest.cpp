// Forward functions at the places where implementations differ: NaN and infinities, ties, signs, integer division, casts, indices, masks. Values are
// taken from the ONNX operator texts and NumPy, or computed by hand. The ONNX backend node tests run over the same functions (test/unit/import).
#include "Parsed.h"
#include <cmath>

using namespace tare::reference;

namespace {

Tensor unaryOf(const std::string &kind, std::vector<double> x, const std::string &result = "f32") {
  std::string n = std::to_string(x.size());
  Parsed p("func.func @main(%a: tensor<" + n + "xf32>) -> tensor<" + n + "x" + result + "> {\n %y = graph.unary <" + kind + "> %a : tensor<" + n + "xf32> -> tensor<" + n + "x" +
           result + ">\n return %y : tensor<" + n + "x" + result + ">\n}");
  return p.run({p.floats({static_cast<int64_t>(x.size())}, x)});
}

template <typename T> std::vector<T> binaryOf(const std::string &kind, const std::string &type, std::vector<T> a, std::vector<T> b) {
  std::string n = std::to_string(a.size()), t = "tensor<" + n + "x" + type + ">";
  Parsed p("func.func @main(%a: " + t + ", %b: " + t + ") -> " + t + " {\n %y = graph.binary <" + kind + "> %a, %b : " + t + ", " + t + " -> " + t + "\n return %y : " + t + "\n}");
  int64_t size = a.size();
  if constexpr (std::is_same_v<T, double>)
    return p.run({p.floats({size}, a, type), p.floats({size}, b, type)}).floats;
  else
    return p.run({p.ints({size}, a, type), p.ints({size}, b, type)}).ints;
}

TEST(Forward, UnarySpecials) {
  EXPECT_EQ(unaryOf("round", {0.5, 1.5, 2.5, -0.5, -1.5}).floats, (std::vector<double>{0, 2, 2, 0, -2}));
  EXPECT_EQ(unaryOf("isnan", {NAN, INFINITY, 1}, "i1").ints, (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(unaryOf("isinf", {NAN, -INFINITY, 1}, "i1").ints, (std::vector<int64_t>{0, 1, 0}));
  EXPECT_TRUE(std::isnan(unaryOf("relu", {NAN}).floats[0]));
  EXPECT_EQ(unaryOf("sign", {-3, 0, 4}).floats, (std::vector<double>{-1, 0, 1}));
  EXPECT_EQ(unaryOf("gelu_erf", {0}).floats[0], 0);
  EXPECT_NEAR(unaryOf("gelu_erf", {1}).floats[0], 0.8413447460685429, 1e-15);
  EXPECT_NEAR(unaryOf("gelu_tanh", {1}).floats[0], 0.8411919906082768, 1e-15);
  EXPECT_EQ(unaryOf("silu", {-INFINITY}).floats.size(), 1u);
}

TEST(Forward, BinarySpecials) {
  EXPECT_EQ(binaryOf<int64_t>("div", "i32", {7, -7, 7, -7, INT32_MIN}, {2, 2, -2, -2, -1}), (std::vector<int64_t>{3, -3, -3, 3, INT32_MIN}));
  EXPECT_EQ(binaryOf<int64_t>("mod", "i64", {7, -7, 7, -7}, {3, 3, -3, -3}), (std::vector<int64_t>{1, 2, -2, -1}));
  EXPECT_EQ(binaryOf<int64_t>("fmod", "i64", {7, -7, 7, -7}, {3, 3, -3, -3}), (std::vector<int64_t>{1, -1, 1, -1}));
  EXPECT_EQ(binaryOf<int64_t>("add", "i8", {127, -128}, {1, -1}), (std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(binaryOf<int64_t>("pow", "i64", {2, -3}, {10, 3}), (std::vector<int64_t>{1024, -27}));
  auto max = binaryOf<double>("max", "f32", {NAN, 1}, {1, NAN});
  EXPECT_TRUE(std::isnan(max[0]) && std::isnan(max[1]));
  EXPECT_EQ(binaryOf<double>("mod", "f32", {5.3, -5.5}, {2, 2})[1], 0.5);
  EXPECT_EQ(binaryOf<double>("sub", "f32", {INFINITY}, {1})[0], INFINITY);
  EXPECT_TRUE(std::isnan(binaryOf<double>("mul", "f32", {0}, {INFINITY})[0]));
}

TEST(Forward, IntegerDivisionByZeroIsRefused) {
  Parsed p("func.func @main(%a: tensor<1xi64>) -> tensor<1xi64> {\n %y = graph.binary <div> %a, %a : tensor<1xi64>, tensor<1xi64> -> tensor<1xi64>\n return %y : tensor<1xi64>\n}");
  auto values = evaluate(p.body(), {p.ints({1}, {0})});
  ASSERT_FALSE(bool(values));
  EXPECT_NE(llvm::toString(values.takeError()).find("division by zero"), std::string::npos);
}

TEST(Forward, SoftmaxOfAMaskedRowIsNaN) {
  Parsed p("func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {\n %y = graph.softmax %a 1 : tensor<2x3xf32> -> tensor<2x3xf32>\n return %y : tensor<2x3xf32>\n}");
  Tensor y = p.run({p.floats({2, 3}, {-INFINITY, -INFINITY, -INFINITY, 0, -INFINITY, 0})});
  EXPECT_TRUE(std::isnan(y.floats[0]) && std::isnan(y.floats[1]) && std::isnan(y.floats[2]));
  EXPECT_EQ(y.floats[3], 0.5);
  EXPECT_EQ(y.floats[4], 0);
}

TEST(Forward, CastRoundsAndTruncates) {
  Parsed p("func.func @main(%a: tensor<4xf32>) -> tensor<4xf16> {\n %y = graph.cast %a : tensor<4xf32> -> tensor<4xf16>\n return %y : tensor<4xf16>\n}");
  // 2049 is not a half; ties go to even. 65520 rounds up to infinity. 3e-8 rounds to the smallest subnormal.
  EXPECT_EQ(p.run({p.floats({4}, {2049, 65520, 65519, 3e-8})}).floats, (std::vector<double>{2048, INFINITY, 65504, 5.9604644775390625e-08}));
  Parsed q("func.func @main(%a: tensor<4xf32>) -> tensor<4xi8> {\n %y = graph.cast %a : tensor<4xf32> -> tensor<4xi8>\n return %y : tensor<4xi8>\n}");
  EXPECT_EQ(q.run({q.floats({4}, {1.9, -1.9, 0, 127})}).ints, (std::vector<int64_t>{1, -1, 0, 127}));
}

TEST(Forward, GatherChecksIndices) {
  Parsed p("func.func @main(%a: tensor<3xf32>, %i: tensor<2xi64>) -> tensor<2xf32> {\n %y = graph.gather %a[%i] 0 : tensor<3xf32>, tensor<2xi64> -> tensor<2xf32>\n return %y : tensor<2xf32>\n}");
  EXPECT_EQ(p.run({p.floats({3}, {1, 2, 3}), p.ints({2}, {-1, 0})}).floats, (std::vector<double>{3, 1}));
  auto values = evaluate(p.body(), {p.floats({3}, {1, 2, 3}), p.ints({2}, {0, 3})});
  ASSERT_FALSE(bool(values));
  EXPECT_NE(llvm::toString(values.takeError()).find("index 3 is out of range for a dimension of 3"), std::string::npos);
}

TEST(Forward, DequantizePerAxisAndPerBlock) {
  Parsed p(R"(func.func @main(%x: tensor<2x2xi8>, %s: tensor<2xf32>, %z: tensor<2xi8>) -> tensor<2x2xf32> {
    %y = graph.dequantize %x, %s, %z {axis = 1 : i64} : (tensor<2x2xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<2x2xf32>
    return %y : tensor<2x2xf32> })");
  EXPECT_EQ(p.run({p.ints({2, 2}, {1, 2, 3, 4}, "i8"), p.floats({2}, {0.5, 2}), p.ints({2}, {1, 0}, "i8")}).floats, (std::vector<double>{0, 4, 1, 8}));
  Parsed q(R"(func.func @main(%x: tensor<1x5xi8>, %s: tensor<1x3xf32>) -> tensor<1x5xf32> {
    %y = graph.dequantize %x, %s {axis = 1 : i64, block_size = 2 : i64} : (tensor<1x5xi8>, tensor<1x3xf32>) -> tensor<1x5xf32>
    return %y : tensor<1x5xf32> })");
  EXPECT_EQ(q.run({q.ints({1, 5}, {1, 1, 1, 1, 1}, "i8"), q.floats({1, 3}, {1, 10, 100})}).floats, (std::vector<double>{1, 1, 10, 10, 100}));
}

TEST(Forward, SymbolicRangeAndDims) {
  Parsed p(R"(func.func @main(%x: tensor<?x4xf32, #graph.dims<["n", 4]>>) -> tensor<?xi64, #graph.dims<["n"]>> {
    %r = graph.range <[2, "3"]> : tensor<?xi64, #graph.dims<["n"]>>
    %d = graph.dims_constant <["n + 1"]> : tensor<1xi64>
    %y = graph.binary <add> %r, %d : tensor<?xi64, #graph.dims<["n"]>>, tensor<1xi64> -> tensor<?xi64, #graph.dims<["n"]>>
    return %y : tensor<?xi64, #graph.dims<["n"]>> })");
  EXPECT_EQ(p.run({p.floats({3, 4}, std::vector<double>(12, 0))}).ints, (std::vector<int64_t>{6, 9, 12}));
}

TEST(Forward, InputsThatDisagreeAreRefused) {
  Parsed p(R"(func.func @main(%x: tensor<?xf32, #graph.dims<["n"]>>, %y: tensor<?xf32, #graph.dims<["n"]>>) -> tensor<?xf32, #graph.dims<["n"]>> { return %x : tensor<?xf32, #graph.dims<["n"]>> })");
  auto values = evaluate(p.body(), {p.floats({2}, {1, 2}), p.floats({3}, {1, 2, 3})});
  ASSERT_FALSE(bool(values));
  EXPECT_NE(llvm::toString(values.takeError()).find("n is 2"), std::string::npos);
}

TEST(Decode, PackedAndHalfStorage) {
  Parsed p("func.func @main() { return }");
  auto i4 = mlir::IntegerType::get(&p.context, 4);
  auto attr = mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({3}, i4), llvm::ArrayRef<llvm::APInt>{llvm::APInt(4, 1), llvm::APInt(4, 14), llvm::APInt(4, 3)});
  EXPECT_EQ(decode(attr).ints, (std::vector<int64_t>{1, -2, 3}));
  auto f16 = mlir::Float16Type::get(&p.context);
  std::vector<uint16_t> bits = {0x0001, 0x8000, 0x7c00, 0x3c00, 0x0002};
  auto half = mlir::DenseElementsAttr::getFromRawBuffer(mlir::RankedTensorType::get({5}, f16), llvm::ArrayRef<char>(reinterpret_cast<char *>(bits.data()), 10));
  Tensor t = decode(half);
  EXPECT_EQ(t.floats[0], 0x1p-24);
  EXPECT_TRUE(t.floats[1] == 0 && std::signbit(t.floats[1]));
  EXPECT_EQ(t.floats[2], INFINITY);
  EXPECT_EQ(t.floats[3], 1);
  EXPECT_EQ(t.floats[4], 1.1920928955078125e-07);
  EXPECT_EQ(encode(t), half);
}

} // namespace
