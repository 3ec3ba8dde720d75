// Bad inputs B52, B56 to B60: axes, shapes that do not fit, indices, sizes beyond the limits.
#include "compiler/import/FidelityFunction.h"
#include "test/support/OnnxModels.h"
#include <gtest/gtest.h>

using namespace tare::test;

namespace {
/// One node on x [S, 4] (f32) and whatever `add` puts into the model.
template <typename Fn> std::string one(const std::string &op, Strings operands, Fn add, int opset = 17) {
  OnnxModel m(opset);
  m.input("x").output("y");
  auto &n = m.node(op, operands, {"y"});
  n.set_name("n");
  add(m, n);
  return refusal(m);
}
} // namespace

TEST(BadShapes, B52Axes) {
  for (int64_t axis : {2, -3, 100}) {
    std::string range = "axis " + std::to_string(axis) + " is out of range [-2, 1] for rank 2";
    auto withAxis = [axis](OnnxModel &, onnx::NodeProto &n) { set(n, "axis", axis); };
    EXPECT_SAYS(one("Concat", {"x", "x"}, withAxis), range);
    EXPECT_SAYS(one("Softmax", {"x"}, withAxis), range);
    EXPECT_SAYS(one("Split", {"x"}, withAxis), range);
    EXPECT_SAYS(one("LayerNormalization", {"x", "w"}, [&](OnnxModel &m, onnx::NodeProto &n) { set(n, "axis", axis), m.floats("w", {1, 1, 1, 1}, {4}); }), range);
    EXPECT_SAYS(one("Gather", {"x", "i"}, [&](OnnxModel &m, onnx::NodeProto &n) { set(n, "axis", axis), m.ints("i", {0}); }), range);
    EXPECT_SAYS(one("Squeeze", {"x", "a"}, [&](OnnxModel &m, onnx::NodeProto &) { m.ints("a", {axis}); }), range);
    EXPECT_SAYS(one("Unsqueeze", {"x", "a"}, [&](OnnxModel &m, onnx::NodeProto &) { m.ints("a", {axis == 2 ? 3 : axis == -3 ? -4 : axis}); }), "is out of range [-3, 2] for rank 3");
  }
  EXPECT_SAYS(one("Transpose", {"x"}, [](OnnxModel &, onnx::NodeProto &n) { set(n, "perm", Ints{0, 0}); }), "names dimension 0 twice");
  EXPECT_SAYS(one("ReduceSum", {"x", "a"}, [](OnnxModel &m, onnx::NodeProto &) { m.ints("a", {1, -1}); }), "appears twice");
}

TEST(BadShapes, B56Pads) {
  EXPECT_SAYS(one("Pad", {"x", "p"}, [](OnnxModel &m, onnx::NodeProto &) { m.ints("p", {0, -3, 0, -2}); }), "negative pads are larger than dimension 1 of [S, 4]");
  EXPECT_SAYS(one("Pad", {"x", "p"}, [](OnnxModel &m, onnx::NodeProto &) { m.ints("p", {0, 1, 0}); }), "pads has 3 entries, 4 are needed");
}

TEST(BadShapes, B57Reshape) {
  auto to = [](Ints shape) { return [shape](OnnxModel &m, onnx::NodeProto &) { m.ints("s", shape); }; };
  EXPECT_SAYS(one("Reshape", {"x", "s"}, to({-1, -1})), "shape [-1, -1] has two -1");
  EXPECT_SAYS(one("Reshape", {"x", "s"}, to({0, 0, 0})), "has a 0 at position 2, the input [S, 4] has no such dimension");
  EXPECT_SAYS(one("Reshape", {"x", "s"}, to({-2, 4})), "has a negative size");
  EXPECT_SAYS(one("Reshape", {"c", "s"}, [](OnnxModel &m, onnx::NodeProto &) { m.floats("c", {1, 2, 3}, {3}), m.ints("s", {2, 2}); }), "[3] cannot be reshaped to [2, 2]: 3 and 4 elements");
  EXPECT_SAYS(one("Reshape", {"c", "s"}, [](OnnxModel &m, onnx::NodeProto &) { m.floats("c", {1, 2, 3}, {3}), m.ints("s", {-1, 2}); }), "cannot be reshaped");
}

TEST(BadShapes, DataDependentShapes) {
  OnnxModel m;
  m.input("x").input("s", 7, {"2"}).output("y");
  m.node("Reshape", {"x", "s"}, {"y"}).set_name("r");
  EXPECT_SAYS(refusal(m), "the shape of the result depends on data: shape (tensor 's') is not known before a run");
  EXPECT_SAYS(refusal(m), "[node r]");
}

TEST(BadShapes, B58Mismatches) {
  auto with = [](std::vector<float> v, Ints dims) { return [=](OnnxModel &m, onnx::NodeProto &) { m.floats("w", v, dims); }; };
  EXPECT_SAYS(one("MatMul", {"x", "w"}, with({1, 2, 3}, {3, 1})), "shapes [S, 4] and [3, 1] do not match: inner dimensions 4 and 3");
  EXPECT_SAYS(one("Add", {"x", "w"}, with({1, 2, 3}, {3})), "shapes [S, 4] and [3] do not broadcast");
  EXPECT_SAYS(one("Concat", {"x", "w"}, [](OnnxModel &m, onnx::NodeProto &n) { m.floats("w", {1, 2, 3}, {1, 3}), set(n, "axis", int64_t(0)); }), "shapes [S, 4] and [1, 3] differ outside of axis 0");
  EXPECT_SAYS(one("Gemm", {"x", "w"}, with({1, 2, 3}, {3, 1})), "do not match");
  EXPECT_SAYS(one("Add", {"x", "i"}, [](OnnxModel &m, onnx::NodeProto &) { m.ints("i", {1}); }), "operands have different element types: float and int64");
}

TEST(BadShapes, B59GatherIndex) {
  EXPECT_SAYS(one("Gather", {"x", "i"}, [](OnnxModel &m, onnx::NodeProto &n) { set(n, "axis", int64_t(1)), m.ints("i", {0, 4}); }), "index 4 is out of range for dimension 1 of [S, 4]");
  EXPECT_SAYS(one("Gather", {"x", "i"}, [](OnnxModel &m, onnx::NodeProto &n) { set(n, "axis", int64_t(1)), m.ints("i", {-5}); }), "index -5 is out of range");
}

TEST(BadShapes, B60SizesAndLimits) {
  EXPECT_SAYS(one("Split", {"x", "s"}, [](OnnxModel &m, onnx::NodeProto &n) { set(n, "axis", int64_t(1)), m.ints("s", {1}); }), "split sizes [1] sum to 1, dimension 1 has 4");
  int64_t huge = int64_t(1) << 50;
  EXPECT_SAYS(one("Tile", {"c", "r"}, [=](OnnxModel &m, onnx::NodeProto &) { m.floats("c", {1, 2}, {2}), m.ints("r", {huge}); }), "exit 7: Tile: the result has more than 2^40 elements");
  EXPECT_SAYS(one("Expand", {"c", "s"}, [=](OnnxModel &m, onnx::NodeProto &) { m.floats("c", {1}, {1}), m.ints("s", {huge}); }), "exit 7");
  EXPECT_SAYS(one("ConstantOfShape", {"s"}, [=](OnnxModel &m, onnx::NodeProto &) { m.ints("s", {huge}); }), "exit 7");
  EXPECT_SAYS(one("ConstantOfShape", {"s"}, [=](OnnxModel &m, onnx::NodeProto &) { m.ints("s", {1 << 30, 1 << 30, 1 << 30, 1 << 30}); }), "exit 7");
  EXPECT_SAYS(one("ConstantOfShape", {"s"}, [=](OnnxModel &m, onnx::NodeProto &) { m.ints("s", {-1}); }), "has a negative size");
  EXPECT_SAYS(one("Unsqueeze", {"x", "a"}, [](OnnxModel &m, onnx::NodeProto &) { m.ints("a", {2, 3, 4, 5, 6, 7, 8}); }), "the limit is 8");
}

TEST(BadShapes, SliceSteps) {
  EXPECT_SAYS(one("Slice", {"x", "z", "e", "z", "z"}, [](OnnxModel &m, onnx::NodeProto &) { m.ints("z", {0}), m.ints("e", {2}); }), "a step is 0");
}

TEST(BadShapes, FidelityChecks) {
  auto with = [](const Ints &w, const Ints &p, const Ints &tau, const Ints &e) {
    return one("FidelityCheck", {"x", "W", "p", "tau", "E"}, [&](OnnxModel &m, onnx::NodeProto &n) {
      n.set_domain("tare");
      m.import("tare", 1);
      *m.proto.add_functions() = tare::fidelityFunction(17);
      for (auto &[name, dims] : {std::pair("W", w), std::pair("p", p), std::pair("tau", tau), std::pair("E", e)}) {
        int64_t count = 1;
        for (int64_t d : dims) count *= d;
        m.floats(name, std::vector<float>(static_cast<size_t>(count), 0.5f), dims);
      }
    });
  };
  EXPECT_SAYS(with({2, 4}, {2, 3}, {2}, {2, 5}), "W must have rank 3, got [2, 4]");
  EXPECT_SAYS(with({2, 3, 4}, {2, 3}, {2, 1}, {2, 5}), "tau must have rank 1, got [2, 1]");
  EXPECT_SAYS(with({2, 3, 7}, {2, 3}, {2}, {2, 5}), "shapes do not fit: h [S, 4], W [2, 3, 7], p [2, 3], tau [2], E [2, 5]");
  EXPECT_SAYS(with({2, 3, 4}, {2, 2}, {2}, {2, 5}), "shapes do not fit");
  EXPECT_SAYS(with({2, 3, 4}, {2, 3}, {3}, {2, 5}), "shapes do not fit");
  EXPECT_SAYS(with({2, 3, 4}, {2, 3}, {2}, {1, 5}), "shapes do not fit");
}
