// contract-lm through compiler and runtime. In: engines of all its graphs, float64 cases of an independent implementation. Must hold: f32 within 2e-4 of
// the logits, f16 within 5e-2 and the same argmax on 99 % of positions, on every ISA level and thread count; pruned equals full to 1e-6 of the largest.
#include "test/support/EngineFiles.h"
#include <algorithm>

using namespace tare;
using namespace tare::test;

namespace {

/// Rows of the case: all positions, or those that `logits_positions` lists.
std::vector<float> rowsOf(const Array &logits, const ArrayMap &wanted) {
  std::vector<float> all = floatsOf(logits);
  auto positions = wanted.find("logits_positions");
  if (positions == wanted.end()) return all;
  std::vector<float> rows;
  for (int64_t p : int64sOf(positions->second)) rows.insert(rows.end(), all.begin() + p * 260, all.begin() + (p + 1) * 260);
  return rows;
}
size_t argmax(const std::vector<float> &v, size_t row) { return size_t(std::max_element(v.begin() + row * 260, v.begin() + (row + 1) * 260) - v.begin()) - row * 260; }

void expectCase(EngineRunner &runner, const std::string &name, double tolerance) {
  ArrayMap wanted = contractCase(name);
  ASSERT_TRUE(wanted.count("logits"));
  ArrayMap got = runner.run({{"input_ids", wanted.at("input_ids")}});
  ASSERT_TRUE(got.count("logits")) << name << ": " << runner.error.message;
  std::vector<float> a = rowsOf(got.at("logits"), wanted), b = floatsOf(wanted.at("logits"));
  EXPECT_LT(worstDifference(a, b), tolerance) << name;
  size_t rows = b.size() / 260, same = 0;
  for (size_t r = 0; r < rows; ++r) same += argmax(a, r) == argmax(b, r);
  EXPECT_GE(double(same), 0.99 * double(rows)) << name;
}
const char *const kCases[] = {"one", "short", "medium", "batch", "reference"};
} // namespace

class Graphs : public ::testing::TestWithParam<const char *> {};
TEST_P(Graphs, MatchTheOracle) {
  EngineRunner runner(engine(GetParam()), 2);
  ASSERT_TRUE(runner.good());
  for (const char *name : kCases) expectCase(runner, name, 2e-4);
}
INSTANTIATE_TEST_SUITE_P(ContractLm, Graphs, ::testing::Values("contract-lm", "contract-lm-anonymous", "contract-lm-legacy", "contract-lm-dynamo"));

TEST(ContractLm, BalancedChecks) {
  EngineRunner runner(engine("contract-lm-balanced"), 2);
  ASSERT_TRUE(runner.good());
  expectCase(runner, "balanced-reference", 2e-4);
}

TEST(ContractLm, HalfPrecisionStorage) {
  EngineRunner runner(engine("contract-lm-f16"), 2);
  ASSERT_TRUE(runner.good());
  for (const char *name : kCases) expectCase(runner, name, 5e-2);
}

TEST(ContractLm, EveryLevelAndThreadCount) {
  std::set<std::string> levels;
  for (const char *level : {"x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"})
    for (int threads : {1, 2, 3, 5}) {
      EngineRunner runner(engine("contract-lm"), threads, level);
      ASSERT_TRUE(runner.good());
      levels.insert(runner.level());
      for (const char *name : {"one", "short", "batch"}) expectCase(runner, name, 2e-4);
    }
  EXPECT_TRUE(levels.count("x86-64-v3")); // the lowest one runs everywhere
}

TEST(ContractLm, ThreadsDoNotChangeTheResult) {
  ArrayMap wanted = contractCase("medium");
  std::string first;
  for (int threads : {1, 2, 4}) {
    EngineRunner runner(engine("contract-lm"), threads);
    std::string bytes = runner.run({{"input_ids", wanted.at("input_ids")}})["logits"].bytes;
    ASSERT_FALSE(bytes.empty()) << runner.error.message;
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes == first, true) << threads << " threads";
  }
}

TEST(ContractLm, PrunedEqualsFull) {
  // The same level: another one may sum in another order.
  EngineRunner full(engine("contract-lm-full"), 1, "x86-64-v3"), pruned(engine("contract-lm"), 1, "x86-64-v3");
  ASSERT_TRUE(full.good() && pruned.good());
  for (const char *name : kCases) {
    ArrayMap wanted = contractCase(name);
    std::vector<float> a = floatsOf(full.run({{"input_ids", wanted.at("input_ids")}})["logits"]), b = floatsOf(pruned.run({{"input_ids", wanted.at("input_ids")}})["logits"]);
    ASSERT_FALSE(a.empty());
    float largest = 0;
    for (float v : a) largest = std::max(largest, std::fabs(v));
    EXPECT_LE(worstDifference(a, b), 1e-6 * largest) << name;
  }
}

TEST(ContractLm, ShapesMayChangeBetweenRuns) {
  EngineRunner runner(engine("contract-lm"), 2);
  for (const char *name : {"medium", "one", "batch", "short", "medium"}) expectCase(runner, name, 2e-4);
}

TEST(ContractLm, IdsOutOfRangeAreRefused) {
  EngineRunner runner(engine("contract-lm"));
  EXPECT_TRUE(runner.run({{"input_ids", int64s({1, 2}, {1, 260})}}).empty());
  EXPECT_EQ(runner.error.code, TARE_REFUSED) << runner.error.message;
  expectCase(runner, "short", 2e-4); // and the context is still good
}
