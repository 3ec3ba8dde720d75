// Bad inputs B53 to B55, B64, B66, B67: initializers whose numbers do not fit each other.
#include "test/support/OnnxModels.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace tare::test;

namespace {
template <typename Fn> std::string withTensor(Fn change) {
  OnnxModel m;
  m.input("x").output("y");
  auto &t = m.floats("w", {1, 2, 3, 4}, {4});
  m.node("Add", {"x", "w"}, {"y"});
  change(t);
  return refusal(m);
}
} // namespace

TEST(BadTensors, B53Dims) {
  EXPECT_SAYS(withTensor([](auto &t) { t.set_dims(0, -4); }), "dims [-4] contain a negative size");
  EXPECT_SAYS(withTensor([](auto &t) { t.set_dims(0, int64_t(1) << 40), t.add_dims(int64_t(1) << 40); }), "their product overflows");
  EXPECT_SAYS(withTensor([](auto &t) { t.set_dims(0, int64_t(1) << 62); }), "their product overflows"); // elements fit, bits do not
  EXPECT_SAYS(withTensor([](auto &t) { for (int i = 0; i < 8; ++i) t.add_dims(1); }), "rank 9 is above the limit of 8");
}

TEST(BadTensors, B54Bytes) {
  EXPECT_SAYS(withTensor([](auto &t) { t.clear_float_data(), t.set_raw_data("12345678"); }), "raw_data holds 8 bytes, shape and type need 16");
  EXPECT_SAYS(withTensor([](auto &t) { t.add_float_data(5); }), "the tensor's data field holds 5 values, its shape needs 4");
  EXPECT_SAYS(withTensor([](auto &t) { t.clear_float_data(); }), "the tensor's data field holds 0 values, its shape needs 4");
  EXPECT_SAYS(withTensor([](auto &t) { t.set_dims(0, 5); }), "holds 4 values, its shape needs 5");
}

TEST(BadTensors, B55Types) {
  EXPECT_SAYS(withTensor([](auto &t) { t.set_data_type(0); }), "element type 0 is not supported");
  EXPECT_SAYS(withTensor([](auto &t) { t.set_data_type(999); }), "element type 999 is not supported");
  EXPECT_SAYS(withTensor([](auto &t) { t.set_data_type(8); }), "element type string is not supported");
  EXPECT_SAYS(withTensor([](auto &t) { t.set_data_type(14); }), "element type complex64 is not supported");
  EXPECT_SAYS(withTensor([](auto &t) { t.set_data_type(17); }), "element type float8e4m3fn is not supported");
}

TEST(BadTensors, B64OverridableInitializer) {
  OnnxModel m;
  m.input("x").input("w", 1, {"4"}).output("y");
  m.floats("w", {0, 0, 0, 0}, {4});
  m.node("Add", {"x", "w"}, {"y"});
  std::vector<std::string> warnings;
  EXPECT_SAYS(imported(m, &warnings), "graph.constant \"w\" overridable");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_SAYS(warnings[0], "overridable");
  m.proto.set_ir_version(3); // before IR 4 every initializer was also an input and none could be overridden
  std::string old = imported(m);
  EXPECT_EQ(old.find("overridable"), std::string::npos) << old;
}

TEST(BadTensors, B66Scales) {
  auto dequantize = [](std::vector<float> scale, int zeroType, int opset = 17) {
    OnnxModel m(opset);
    m.output("y");
    auto &q = m.ints("q", {});
    q.set_data_type(3), q.clear_dims(), q.add_dims(2), q.add_dims(2);
    for (int i = 0; i < 4; ++i) q.add_int32_data(i);
    m.floats("s", scale, {static_cast<int64_t>(scale.size())});
    Strings operands{"q", "s"};
    if (zeroType) {
      auto &z = m.ints("z", {});
      z.set_data_type(zeroType), z.clear_dims(), z.add_dims(static_cast<int64_t>(scale.size()));
      for (size_t i = 0; i < scale.size(); ++i) z.add_int32_data(0);
      operands.push_back("z");
    }
    m.node("DequantizeLinear", operands, {"y"});
    return refusal(m);
  };
  EXPECT_EQ(dequantize({0.5f, 1}, 3), "imported");
  EXPECT_SAYS(dequantize({0.5f, 0}, 3), "scale 's' contains 0.000000 at 1");
  EXPECT_SAYS(dequantize({-1, 1}, 3), "scales must be positive and finite");
  EXPECT_SAYS(dequantize({1, NAN}, 3), "scales must be positive and finite");
  EXPECT_SAYS(dequantize({1, INFINITY}, 3), "scales must be positive and finite");
  EXPECT_SAYS(dequantize({1, 1, 1}, 3), "scale [3] does not fit dimension 1 of [2, 2]");
  EXPECT_SAYS(dequantize({1, 1}, 2), "zero_point has element type uint8, the input int8");
}

TEST(BadTensors, B67Sparse) {
  auto sparse = [](Ints indices, Ints dims, size_t values = 2) {
    OnnxModel m;
    m.input("x").output("y");
    auto *s = m.proto.mutable_graph()->add_sparse_initializer();
    s->mutable_values()->set_name("w"), s->mutable_values()->set_data_type(1), s->mutable_values()->add_dims(static_cast<int64_t>(values));
    for (size_t i = 0; i < values; ++i) s->mutable_values()->add_float_data(1);
    s->mutable_indices()->set_data_type(7), s->mutable_indices()->add_dims(static_cast<int64_t>(indices.size()));
    for (int64_t i : indices) s->mutable_indices()->add_int64_data(i);
    for (int64_t d : dims) s->add_dims(d);
    m.node("Add", {"x", "w"}, {"y"});
    return refusal(m);
  };
  EXPECT_EQ(sparse({1, 3}, {4}), "imported");
  EXPECT_SAYS(sparse({1, 4}, {4}), "index 4 is out of range for 4 elements");
  EXPECT_SAYS(sparse({-1, 3}, {4}), "index -1 is out of range");
  EXPECT_SAYS(sparse({3, 1}, {4}), "indices are not in ascending order at 1");
  EXPECT_SAYS(sparse({3, 3}, {4}), "duplicate index 3");
  EXPECT_SAYS(sparse({1, 2, 3}, {4}), "the number of indices does not match");
  EXPECT_SAYS(sparse({1, 3}, {-4}), "dims are negative");
  EXPECT_SAYS(sparse({1, 3}, {int64_t(1) << 40}), "exit 7");
}
