// Initializers that are also graph inputs (IR >= 4) are optional inputs of the engine with their own value as default (spec 2 to 4, 12). In: a linear layer whose
// weight and bias are overridable. Oracle: the sums written out in double. Must hold: fed values count, left-out ones are the file's own, order and names are the source's.
#include "test/support/EngineRunner.h"
#include "test/support/OnnxModels.h"

using namespace tare;
using namespace tare::test;

namespace {
const std::vector<float> kWeight = {1, -2, 3, 0.5f, 4, -1, 2, 0, 1, -3, 0.25f, 7}, kBias = {10, 20, 30};

class Overridable : public ::testing::Test {
protected:
  void SetUp() override {
    OnnxModel m;
    m.input("w", 1, {"4", "3"}).input("x").input("b", 1, {"3"}).input("unused", 7, {"2"}).output("y", 1, {"S", "3"});
    m.floats("w", kWeight, {4, 3});
    m.floats("b", kBias, {3});
    m.ints("unused", {1, 2});
    m.node("MatMul", {"x", "w"}, {"p"}).set_name("/fc/MatMul");
    m.node("Add", {"p", "b"}, {"y"}).set_name("/fc/Add");
    model = m.save(dir), engine = dir.path("m.tare");
    ASSERT_EQ(std::system((std::string(TARE_BINARY) + " compile " + model + " -o " + engine + " --target cpu:x86-64-v3 --quiet").c_str()), 0);
  }
  static Array floats(std::vector<int64_t> shape, const std::vector<float> &v) { return {1, std::move(shape), std::string(reinterpret_cast<const char *>(v.data()), v.size() * 4)}; }
  static std::vector<float> expected(const std::vector<float> &x, const std::vector<float> &w, const std::vector<float> &b) {
    std::vector<float> y;
    for (size_t row = 0; row < x.size() / 4; ++row)
      for (size_t n = 0; n < 3; ++n) {
        double sum = b[n];
        for (size_t k = 0; k < 4; ++k) sum += double(x[row * 4 + k]) * w[k * 3 + n];
        y.push_back(float(sum));
      }
    return y;
  }
  TempDir dir;
  std::string model, engine;
};
} // namespace

TEST_F(Overridable, FedValuesCountAndLeftOutOnesAreTheFilesOwn) {
  EngineRunner runner(engine, 2);
  ASSERT_TRUE(runner.good());
  std::vector<float> x = {1, 2, 3, 4, -1, 0, 1, 2}, w(12, 0.5f), b = {-1, 0, 1};
  Array in = floats({2, 4}, x);
  auto run = [&](ArrayMap inputs) {
    EngineRunner fresh(engine);
    inputs["x"] = in;
    return floatsOf(fresh.run(inputs)["y"]);
  };
  EXPECT_EQ(run({}), expected(x, kWeight, kBias));
  EXPECT_EQ(run({{"w", floats({4, 3}, w)}}), expected(x, w, kBias));
  EXPECT_EQ(run({{"b", floats({3}, b)}}), expected(x, kWeight, b));
  EXPECT_EQ(run({{"w", floats({4, 3}, w)}, {"b", floats({3}, b)}, {"unused", int64s({2}, {5, 6})}}), expected(x, w, b));
  EXPECT_TRUE(runner.run({{"x", in}, {"w", floats({3, 4}, w)}}).empty());
  EXPECT_SAYS(runner.error.message, "input has a wrong shape: given [3, 4], expected [4, 3] (tensor 'w')");
}

TEST_F(Overridable, TheSignatureIsTheSources) {
  tare_error error;
  tare_engine_t *opened = tare_engine_open(engine.c_str(), nullptr, &error);
  ASSERT_NE(opened, nullptr) << error.message;
  std::string names;
  for (size_t i = 0; i < tare_engine_input_count(opened); ++i) {
    tare_tensor_info info;
    ASSERT_EQ(tare_engine_input_info(opened, i, &info, &error), TARE_OK);
    names += std::string(info.name) + (info.optional ? "?" : "") + info.default_kind + " ";
  }
  EXPECT_EQ(names, "w?weight x b?weight unused?weight ");
  tare_engine_close(opened);
}

TEST_F(Overridable, TheShadowRunFeedsThemToo) {
  ArrayMap one = {{"x", floats({1, 4}, {1, 2, 3, 4})}, {"w", floats({4, 3}, std::vector<float>(12, 2))}, {"y", floats({1, 3}, expected({1, 2, 3, 4}, std::vector<float>(12, 2), kBias))}};
  ASSERT_FALSE(bool(writeNpz(dir.path("case.npz"), one)));
  std::string verify = std::string(TARE_BINARY) + " verify " + model + " " + engine + " --golden " + dir.path("case.npz") + " > " + dir.path("said") + " 2>&1";
  EXPECT_EQ(std::system(verify.c_str()), 0) << readFile(dir.path("said"));
  EXPECT_SAYS(readFile(dir.path("said")), "against the case's own outputs: engine 0.0000% (largest difference 0), source 0.0000%");
}
