// bert-tiny, distilbert-tiny and llama-pro-tiny as Hugging Face folders and as both PyTorch exports. In: engines and float64 cases. Must hold: within 5e-4
// at unmasked positions, finite everywhere; a batch with masks equals its rows alone; inputs that may be left out take their defaults.
#include "test/support/EngineFiles.h"

using namespace tare;
using namespace tare::test;

namespace {
struct Entry {
  const char *engine, *folder, *output;
};
const Entry kEntries[] = {{"bert-tiny", "bert-tiny", "last_hidden_state"},
                          {"bert-tiny-legacy", "bert-tiny", "last_hidden_state"},
                          {"bert-tiny-dynamo", "bert-tiny", "last_hidden_state"},
                          {"distilbert-tiny", "distilbert-tiny", "last_hidden_state"},
                          {"distilbert-tiny-legacy", "distilbert-tiny", "last_hidden_state"},
                          {"distilbert-tiny-dynamo", "distilbert-tiny", "last_hidden_state"},
                          {"llama-pro-tiny", "llama-pro-tiny", "logits"},
                          {"llama-pro-tiny-legacy", "llama-pro-tiny", "logits"},
                          {"llama-pro-tiny-dynamo", "llama-pro-tiny", "logits"}};
} // namespace

class TinyModels : public ::testing::TestWithParam<Entry> {};
// More threads than cores drift apart: steps that share a barrier (q, k and v) must share no memory. The sums of a row do not depend on the number of threads.
TEST_P(TinyModels, ThreadsThatDriftApartGiveTheSame) {
  auto arrays = readNpz(std::string(TARE_TEST_DATA) + "/" + GetParam().folder + "/cases.npz");
  ASSERT_TRUE(bool(arrays)) << llvm::toString(arrays.takeError());
  EngineRunner one(engine(GetParam().engine), 1), many(engine(GetParam().engine), 5);
  ASSERT_TRUE(one.good() && many.good());
  const Array &ids = arrays->at("a.input_ids");
  const ArrayMap inputs = {{"input_ids", ids}, {"attention_mask", int64s(ids.shape, std::vector<int64_t>(ids.bytes.size() / 8, 1))}};
  const std::vector<float> want = floatsOf(one.run(inputs, {GetParam().output}).at(GetParam().output));
  for (int run = 0; run < 30; ++run) {
    ArrayMap got = many.run(inputs, {GetParam().output});
    ASSERT_TRUE(got.count(GetParam().output)) << many.error.message;
    const std::vector<float> have = floatsOf(got.at(GetParam().output));
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(have[i], want[i], 1e-5f) << "run " << run << ", element " << i;
  }
}
TEST_P(TinyModels, MatchTheOracle) {
  auto arrays = readNpz(std::string(TARE_TEST_DATA) + "/" + GetParam().folder + "/cases.npz");
  ASSERT_TRUE(bool(arrays)) << llvm::toString(arrays.takeError());
  EngineRunner runner(engine(GetParam().engine), 2);
  ASSERT_TRUE(runner.good());
  for (std::string name : {"a", "b", "c", "d"}) {
    const Array &ids = arrays->at(name + ".input_ids");
    // The exports have a mask as a required input; the cases of decoders have none, which is all ones.
    Array mask = arrays->count(name + ".attention_mask") ? arrays->at(name + ".attention_mask") : int64s(ids.shape, std::vector<int64_t>(ids.bytes.size() / 8, 1));
    ArrayMap got = runner.run({{"input_ids", ids}, {"attention_mask", mask}}, {GetParam().output});
    ASSERT_TRUE(got.count(GetParam().output)) << runner.error.message;
    const Array &want = arrays->at(name + "." + GetParam().output);
    ASSERT_EQ(got.at(GetParam().output).shape, want.shape);
    std::vector<float> a = floatsOf(got.at(GetParam().output)), b = floatsOf(want);
    std::vector<int64_t> live = int64sOf(mask);
    size_t width = a.size() / live.size();
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(std::isfinite(a[i])) << GetParam().engine << " case " << name << " element " << i;
      if (live[i / width]) worst = std::max(worst, std::fabs(double(a[i]) - b[i]));
    }
    EXPECT_LT(worst, 5e-4) << GetParam().engine << " case " << name;
  }
}
INSTANTIATE_TEST_SUITE_P(E2e, TinyModels, ::testing::ValuesIn(kEntries), [](const auto &info) {
  std::string name = info.param.engine;
  for (char &c : name)
    if (c == '-') c = '_';
  return name;
});

TEST(TinyModels, DefaultsOfFolderEngines) {
  EngineRunner runner(engine("bert-tiny"));
  ASSERT_TRUE(runner.good());
  Array ids = int64s({1, 4}, {5, 6, 7, 8});
  std::string implied = runner.run({{"input_ids", ids}})["last_hidden_state"].bytes;
  ASSERT_FALSE(implied.empty()) << runner.error.message;
  std::string given = runner.run({{"input_ids", ids}, {"attention_mask", int64s({1, 4}, {1, 1, 1, 1})}, {"token_type_ids", int64s({1, 4}, {0, 0, 0, 0})}})["last_hidden_state"].bytes;
  EXPECT_TRUE(implied == given);
}

TEST(TinyModels, AnOutputThatWasNotAskedForIsNotComputed) {
  struct Case { const char *engine, *wanted; size_t fewer; };
  // BERT's pooler is three steps at most (gather, projection, tanh); the decoder's first cache needs none of the later layers.
  for (auto &c : {Case{"bert-tiny", "last_hidden_state", 1}, Case{"bert-tiny", "pooler_output", 0}, Case{"llama-pro-tiny", "logits", 0}, Case{"llama-pro-tiny", "present.0.key", 10}}) {
    EngineRunner runner(engine(c.engine), 2, nullptr, /*profile=*/true);
    ASSERT_TRUE(runner.good());
    ArrayMap inputs = {{"input_ids", int64s({1, 6}, {9, 8, 7, 6, 5, 4})}};
    ArrayMap all = runner.run(inputs);
    ASSERT_TRUE(all.count(c.wanted)) << runner.error.message;
    EXPECT_EQ(runner.executedSteps(), runner.plannedSteps()) << c.engine;
    ArrayMap one = runner.run(inputs, {c.wanted});
    EXPECT_TRUE(one.at(c.wanted).bytes == all.at(c.wanted).bytes) << c.engine << " " << c.wanted;
    EXPECT_LE(runner.executedSteps() + c.fewer, runner.plannedSteps()) << c.engine << " " << c.wanted;
    if (c.fewer == 0) EXPECT_EQ(runner.executedSteps(), runner.plannedSteps()) << c.engine << " " << c.wanted;
    tare::ArrayMap again = runner.run(inputs); // and everything is there again
    EXPECT_TRUE(again.size() == all.size() && again.at(c.wanted).bytes == all.at(c.wanted).bytes) << c.engine;
  }
}

TEST(TinyModels, MaskedBatchEqualsRowsAlone) {
  EngineRunner runner(engine("bert-tiny"), 2);
  ASSERT_TRUE(runner.good());
  std::vector<float> batch = floatsOf(runner.run({{"input_ids", int64s({2, 5}, {9, 8, 7, 0, 0, 1, 2, 3, 4, 5})}, {"attention_mask", int64s({2, 5}, {1, 1, 1, 0, 0, 1, 1, 1, 1, 1})}})["last_hidden_state"]);
  EngineRunner alone(engine("bert-tiny"));
  std::vector<float> first = floatsOf(alone.run({{"input_ids", int64s({1, 3}, {9, 8, 7})}})["last_hidden_state"]);
  ASSERT_EQ(first.size(), 3u * 96u) << alone.error.message;
  batch.resize(first.size());
  EXPECT_LT(worstDifference(batch, first), 1e-5);
}

TEST(TinyModels, SequenceBeyondThePositionTableIsRefused) {
  EngineRunner runner(engine("bert-tiny"));
  ASSERT_TRUE(runner.good());
  EXPECT_FALSE(runner.run({{"input_ids", int64s({1, 256}, std::vector<int64_t>(256, 1))}}).empty()) << runner.error.message;
  EXPECT_TRUE(runner.run({{"input_ids", int64s({1, 257}, std::vector<int64_t>(257, 1))}}).empty());
  EXPECT_NE(std::string(runner.error.message).find("position embeddings"), std::string::npos) << runner.error.message;
}

TEST(TinyModels, LongDecoderPass) {
  EngineRunner runner(engine("llama-pro-tiny"), 2);
  ASSERT_TRUE(runner.good());
  std::vector<int64_t> ids(2000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = int64_t(i * 7 % 256);
  std::vector<float> logits = floatsOf(runner.run({{"input_ids", int64s({1, 2000}, ids)}}, {"logits"})["logits"]);
  ASSERT_EQ(logits.size(), 2000u * 260u) << runner.error.message;
  // Causal: the first 150 rows do not depend on what follows.
  EngineRunner head(engine("llama-pro-tiny"));
  std::vector<float> start = floatsOf(head.run({{"input_ids", int64s({1, 150}, {ids.begin(), ids.begin() + 150})}}, {"logits"})["logits"]);
  logits.resize(start.size());
  EXPECT_LT(worstDifference(logits, start), 1e-3);
}
