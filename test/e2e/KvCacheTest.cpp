// Decoding with a cache equals the whole pass. In: contract-lm-kv and llama-pro-tiny engines. Must hold: token by token, in chunks, with linked state
// (the context owns the cache) and with tensors passed by hand, the logits are those of one pass within 2e-4; reset starts a new request.
#include "test/support/EngineFiles.h"
#include <algorithm>

using namespace tare;
using namespace tare::test;

namespace {

struct Model {
  std::string name;
  int layers, heads, width, vocabulary;
};
const Model kContract{"contract-lm-kv", 8, 4, 32, 260}, kLlama{"llama-pro-tiny", 8, 2, 32, 260};

std::vector<int64_t> someIds() {
  auto arrays = readNpz(TARE_TEST_DATA "/contract-lm/cases/short.npz");
  EXPECT_TRUE(bool(arrays));
  return int64sOf(arrays->at("input_ids"));
}
std::string state(const char *kind, int layer, const char *part) { return std::string(kind) + "." + std::to_string(layer) + "." + part; }

/// An empty past by hand: [1, heads, 0, width].
ArrayMap emptyPast(const Model &m) {
  ArrayMap past;
  for (int l = 0; l < m.layers; ++l)
    for (const char *part : {"key", "value"}) past[state("past_key_values", l, part)] = {1, {1, m.heads, 0, m.width}, ""};
  return past;
}

std::vector<float> wholePass(const Model &m, const std::vector<int64_t> &ids) {
  EngineRunner runner(engine(m.name));
  ArrayMap inputs = emptyPast(m);
  inputs["input_ids"] = int64s({1, int64_t(ids.size())}, ids);
  ArrayMap out = runner.run(inputs, {"logits"});
  EXPECT_FALSE(out.empty()) << runner.error.message;
  return out.empty() ? std::vector<float>() : floatsOf(out.at("logits"));
}

/// Logits of all tokens, fed in chunks of the given sizes (the last repeats).
std::vector<float> inChunks(const Model &m, const std::vector<int64_t> &ids, std::vector<size_t> sizes, bool linked, EngineRunner &runner) {
  std::vector<float> logits;
  ArrayMap past = emptyPast(m);
  for (size_t at = 0, chunk = 0; at < ids.size(); ++chunk) {
    size_t size = std::min(sizes[std::min(chunk, sizes.size() - 1)], ids.size() - at);
    ArrayMap inputs = linked ? ArrayMap() : past;
    inputs["input_ids"] = int64s({1, int64_t(size)}, {ids.begin() + at, ids.begin() + at + size});
    ArrayMap out = runner.run(inputs, linked ? std::set<std::string>{"logits"} : std::set<std::string>());
    if (out.empty()) {
      ADD_FAILURE() << runner.error.message;
      return logits;
    }
    std::vector<float> part = floatsOf(out.at("logits"));
    logits.insert(logits.end(), part.begin(), part.end());
    if (!linked)
      for (auto &[name, array] : out)
        if (name.rfind("present.", 0) == 0) past["past_key_values." + name.substr(8)] = array;
    at += size;
  }
  return logits;
}

void linkAll(const Model &m, EngineRunner &runner, int64_t capacity) {
  for (int l = 0; l < m.layers; ++l)
    for (const char *part : {"key", "value"}) runner.link(state("past_key_values", l, part), state("present", l, part), capacity);
}
} // namespace

class KvCache : public ::testing::TestWithParam<Model> {};

TEST_P(KvCache, ByHandTokenByToken) {
  std::vector<int64_t> ids = someIds();
  EngineRunner runner(engine(GetParam().name));
  EXPECT_LT(worstDifference(inChunks(GetParam(), ids, {1}, false, runner), wholePass(GetParam(), ids)), 2e-4);
}

TEST_P(KvCache, LinkedTokenByToken) {
  std::vector<int64_t> ids = someIds(), whole;
  EngineRunner runner(engine(GetParam().name), 2);
  linkAll(GetParam(), runner, 64);
  std::vector<float> first = inChunks(GetParam(), ids, {1}, true, runner), expected = wholePass(GetParam(), ids);
  EXPECT_LT(worstDifference(first, expected), 2e-4);
  runner.reset();
  EXPECT_EQ(worstDifference(inChunks(GetParam(), ids, {1}, true, runner), first), 0) << "a second request must not see the first one's state";
}

TEST_P(KvCache, LinkedInChunks) {
  std::vector<int64_t> ids = someIds();
  EngineRunner runner(engine(GetParam().name));
  linkAll(GetParam(), runner, 32);
  EXPECT_LT(worstDifference(inChunks(GetParam(), ids, {17, 1, 5, 9}, true, runner), wholePass(GetParam(), ids)), 2e-4);
  // The cache is full now: one more token is refused before anything runs.
  EXPECT_TRUE(runner.run({{"input_ids", int64s({1, 1}, {1})}}).empty());
  EXPECT_EQ(runner.error.code, TARE_LIMIT) << runner.error.message;
}
INSTANTIATE_TEST_SUITE_P(E2e, KvCache, ::testing::Values(kContract, kLlama), [](const auto &info) { return info.param.layers == 8 && info.param.heads == 2 ? "Llama" : "ContractLm"; });

TEST(KvCacheContractLm, MatchesTheGraphWithoutCache) {
  auto arrays = readNpz(TARE_TEST_DATA "/contract-lm/cases/short.npz");
  ASSERT_TRUE(bool(arrays));
  EXPECT_LT(worstDifference(wholePass(kContract, int64sOf(arrays->at("input_ids"))), floatsOf(arrays->at("logits"))), 2e-4);
}
