// Sparse fidelity checks against the float64 oracle (spec 6). In: contract-lm engines with --check-precision f32, cases with dense and sparse bits and logits of an
// independent implementation. Must hold: bits identical, logits within 2e-4, exactly 17 of 2000 tokens evaluated; whole pass, chunks and single tokens agree;
// contexts and batch elements know nothing of each other. Bits of every token are seen as what a context carries on after that token.
#include "test/support/EngineFiles.h"
#include <algorithm>
#include <thread>

using namespace tare;
using namespace tare::test;

namespace {
constexpr int64_t kVocabulary = 260, kWidth = 260;
const char *const kLayers[] = {"2", "4", "6"};

std::vector<int64_t> ids(const ArrayMap &c) { return int64sOf(c.at("input_ids")); }
/// The oracle's word for one check and token: bits [1, tokens, 3] of uint8.
uint32_t word(const ArrayMap &c, const std::string &key, int64_t token) {
  const std::string &bytes = c.at(key).bytes;
  uint32_t out = 0;
  for (int64_t k = 0; k < 3; ++k) out |= uint32_t(bytes[token * 3 + k] != 0) << k;
  return out;
}
std::vector<float> rowsAt(const std::vector<float> &logits, const std::vector<int64_t> &positions) {
  std::vector<float> rows;
  for (int64_t p : positions) rows.insert(rows.end(), logits.begin() + p * kVocabulary, logits.begin() + (p + 1) * kVocabulary);
  return rows;
}
std::vector<float> logitsOf(EngineRunner &runner, const std::vector<int64_t> &tokens, const Array &anchors) {
  ArrayMap out = runner.run({{"input_ids", int64s({1, int64_t(tokens.size())}, tokens)}, {"anchors", anchors}}, {"logits"});
  EXPECT_FALSE(out.empty()) << runner.error.message;
  return out.empty() ? std::vector<float>() : floatsOf(out.at("logits"));
}
Array oneRow(const std::vector<int32_t> &anchors) { return int32s({1, int64_t(anchors.size())}, anchors); }

std::string state(const char *kind, int layer, const char *part) { return std::string(kind) + "." + std::to_string(layer) + "." + part; }
void linkAll(EngineRunner &runner, int64_t capacity) {
  for (int l = 0; l < 8; ++l)
    for (const char *part : {"key", "value"}) runner.link(state("past_key_values", l, part), state("present", l, part), capacity);
}
} // namespace

class Oracle : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(SparseChecks, Oracle, ::testing::Values("contract-lm", "contract-lm-balanced"));

TEST_P(Oracle, LogitsAndCountsOfTheReferenceDocument) {
  ArrayMap c = contractCase(std::string(GetParam()) == "contract-lm" ? "reference" : "balanced-reference");
  std::vector<int64_t> positions = int64sOf(c.at("logits_positions"));
  for (auto [threads, level] : {std::pair(1, "x86-64-v4"), std::pair(2, "x86-64-v3"), std::pair(3, "x86-64-v4")}) {
    EngineRunner runner(engine(std::string(GetParam()) + "-f32"), threads, level);
    ASSERT_TRUE(runner.good());
    std::vector<float> logits = logitsOf(runner, ids(c), c.at("anchors"));
    EXPECT_LT(worstDifference(rowsAt(logits, positions), floatsOf(c.at("sparse_logits"))), 2e-4) << threads << " threads, " << level;
    tare_check_stats stats = runner.stats();
    EXPECT_EQ(stats.checks, 3);
    EXPECT_EQ(stats.evaluations_dense, 2000);
    EXPECT_EQ(stats.evaluations_sparse, 17);
    EXPECT_EQ(stats.anchor_hits, 6);
    EXPECT_EQ(stats.flops_saved, 3 * (2000 - 17) * ((2 * 128 + 3) * 3 * 64 + 2 * 3));
    EXPECT_GT(stats.milliseconds_saved, 0);
    runner.unset("anchors"); // without anchors: dense, the same as the source
    ArrayMap dense = runner.run({{"input_ids", c.at("input_ids")}}, {"logits"});
    ASSERT_FALSE(dense.empty()) << runner.error.message;
    EXPECT_LT(worstDifference(rowsAt(floatsOf(dense.at("logits")), positions), floatsOf(c.at("logits"))), 2e-4);
    EXPECT_EQ(runner.stats().evaluations_sparse, 2000);
    EXPECT_EQ(runner.stats().flops_saved, 0);
  }
}

TEST_P(Oracle, BitsOfPrefixes) { // the models are causal: the last token of a prefix is the token of the document
  ArrayMap c = contractCase(std::string(GetParam()) == "contract-lm" ? "reference" : "balanced-reference");
  std::vector<int64_t> all = ids(c);
  EngineRunner runner(engine(std::string(GetParam()) + "-f32"), 2);
  ASSERT_TRUE(runner.good());
  std::vector<int64_t> lengths = {1, 2, 3, 64, 337, 338, 339, 340, 341, 675, 677, 1014, 1337, 1679, 2000};
  for (bool sparse : {true, false})
    for (int64_t length : lengths) {
      std::vector<int64_t> prefix(all.begin(), all.begin() + length);
      if (!sparse) runner.unset("anchors");
      ArrayMap inputs{{"input_ids", int64s({1, length}, prefix)}};
      if (sparse) inputs["anchors"] = c.at("anchors"); // most lie beyond the end
      ASSERT_FALSE(runner.run(inputs, {"logits"}).empty()) << runner.error.message;
      for (size_t check = 0; check < 3; ++check)
        EXPECT_EQ(runner.bits(check), word(c, (sparse ? "sparse_bits_" : "bits_") + std::string(kLayers[check]), length - 1)) << "layer " << kLayers[check] << ", " << length << " tokens";
    }
}

/// What the ladder chooses by itself for contract-lm: its bits at the evaluated tokens are the oracle's, so the logits of the whole document are, too.
TEST(SparseChecks, TheLaddersOwnEngine) {
  ArrayMap c = contractCase("reference");
  std::vector<int64_t> positions = int64sOf(c.at("logits_positions"));
  for (const char *level : {"x86-64-v3", "x86-64-v4"}) {
    EngineRunner runner(engine("contract-lm"), 2, level);
    ASSERT_TRUE(runner.good());
    std::vector<float> logits = logitsOf(runner, ids(c), c.at("anchors"));
    EXPECT_LT(worstDifference(rowsAt(logits, positions), floatsOf(c.at("sparse_logits"))), 2e-4) << level;
    EXPECT_EQ(runner.stats().evaluations_sparse, 17);
  }
}

/// Integer weights flip only bits whose distance is near the threshold: counted at the 17 evaluated tokens, 3 checks of 3 heads (153 bits), on the model whose
/// thresholds sit among the states. Wrong weights would flip half of them; how many a form may flip at all is the ladder's business.
TEST(SparseChecks, IntegerWeightsKeepTheBits) {
  struct Form { const char *precision, *level; int most; };
  ArrayMap c = contractCase("balanced-reference");
  for (const Form &form : {Form{"int8", "x86-64-v3", 3}, Form{"int4", "x86-64-v3", 30}, Form{"int4", "x86-64-v4", 30}}) {
    std::vector<int64_t> all = ids(c);
    const std::string &evaluated = c.at("evaluated").bytes;
    EngineRunner runner(engine(std::string("contract-lm-balanced-") + form.precision), 2, form.level);
    ASSERT_TRUE(runner.good());
    int flips = 0, bits = 0, ones = 0;
    for (size_t token = 0; token < evaluated.size(); ++token) {
      if (!evaluated[token]) continue;
      std::vector<int64_t> prefix(all.begin(), all.begin() + token + 1);
      ASSERT_FALSE(logitsOf(runner, prefix, c.at("anchors")).empty());
      for (size_t check = 0; check < 3; ++check) {
        uint32_t wanted = word(c, "sparse_bits_" + std::string(kLayers[check]), token);
        flips += __builtin_popcount(runner.bits(check) ^ wanted), ones += __builtin_popcount(wanted), bits += 3;
      }
    }
    EXPECT_EQ(bits, 153);
    EXPECT_TRUE(ones > 50 && ones < bits - 50) << "bits that are all alike would prove nothing: " << ones;
    EXPECT_LE(flips, form.most) << form.precision << " " << form.level;
  }
}

/// Feeds the document in chunks and compares the carried bits after each with the oracle's at its last token, the logits at the listed positions.
static void inChunks(EngineRunner &runner, const ArrayMap &c, const std::vector<int64_t> &sizes, bool sparse, int64_t total) {
  std::vector<int64_t> all = ids(c), positions = int64sOf(c.at("logits_positions"));
  std::vector<float> logits;
  int64_t evaluated = 0;
  for (int64_t at = 0, chunk = 0; at < total; ++chunk) {
    int64_t size = std::min(sizes[std::min<size_t>(chunk, sizes.size() - 1)], total - at);
    ArrayMap inputs{{"input_ids", int64s({1, size}, {all.begin() + at, all.begin() + at + size})}};
    if (sparse) inputs["anchors"] = c.at("anchors");
    ArrayMap out = runner.run(inputs, {"logits"});
    ASSERT_FALSE(out.empty()) << runner.error.message;
    std::vector<float> part = floatsOf(out.at("logits"));
    logits.insert(logits.end(), part.begin(), part.end());
    at += size;
    evaluated += runner.stats().evaluations_sparse;
    for (size_t check = 0; check < 3; ++check)
      ASSERT_EQ(runner.bits(check), word(c, (sparse ? "sparse_bits_" : "bits_") + std::string(kLayers[check]), at - 1)) << "layer " << kLayers[check] << ", token " << at - 1;
  }
  positions.erase(std::remove_if(positions.begin(), positions.end(), [&](int64_t p) { return p >= total; }), positions.end());
  std::vector<float> wanted = floatsOf(c.at(sparse ? "sparse_logits" : "logits"));
  wanted.resize(positions.size() * kWidth);
  EXPECT_LT(worstDifference(rowsAt(logits, positions), wanted), 2e-4);
  if (total == 2000) EXPECT_EQ(evaluated, sparse ? 17 : 2000);
}

TEST(SparseChecks, TokenByTokenEveryBit) {
  ArrayMap c = contractCase("reference");
  for (bool sparse : {true, false}) {
    EngineRunner runner(engine("contract-lm-kv-f32"), 1);
    ASSERT_TRUE(runner.good());
    linkAll(runner, 2000);
    inChunks(runner, c, {1}, sparse, sparse ? 2000 : 500);
  }
}

TEST(SparseChecks, AnySplit) {
  ArrayMap c = contractCase("reference");
  EngineRunner runner(engine("contract-lm-kv-f32"), 2);
  ASSERT_TRUE(runner.good());
  linkAll(runner, 2000);
  for (auto &sizes : std::vector<std::vector<int64_t>>{{2000}, {1, 1999}, {337, 1, 2, 700}, {338, 2, 335, 1500}, {1000}, {7, 331, 113}}) {
    inChunks(runner, c, sizes, true, 2000);
    runner.reset();
  }
}

TEST(SparseChecks, TwoContextsInTwoThreads) {
  ArrayMap c = contractCase("reference");
  auto work = [&](std::vector<int64_t> sizes, bool sparse) {
    EngineRunner runner(engine("contract-lm-kv-f32"), 1);
    linkAll(runner, 600);
    for (int round = 0; round < 3; ++round) {
      inChunks(runner, c, sizes, sparse, 600);
      runner.reset();
    }
  };
  std::thread a(work, std::vector<int64_t>{5, 3, 1}, true), b(work, std::vector<int64_t>{4}, false);
  a.join(), b.join();
  // One engine, two contexts, turn by turn.
  EngineRunner first(engine("contract-lm-kv-f32")), second(engine("contract-lm-kv-f32"));
  linkAll(first, 64), linkAll(second, 64);
  std::vector<int64_t> all = ids(c);
  for (int64_t at = 0; at < 64; ++at)
    for (bool sparse : {true, false}) {
      ArrayMap inputs{{"input_ids", int64s({1, 1}, {all[at]})}};
      if (sparse) inputs["anchors"] = c.at("anchors");
      ASSERT_FALSE((sparse ? first : second).run(inputs, {"logits"}).empty());
      for (size_t check = 0; check < 3; ++check) ASSERT_EQ((sparse ? first : second).bits(check), word(c, (sparse ? "sparse_bits_" : "bits_") + std::string(kLayers[check]), at));
    }
}

TEST(SparseChecks, BatchElementsHaveTheirOwnAnchors) {
  ArrayMap c = contractCase("balanced-reference");
  std::vector<int64_t> all = ids(c);
  const int64_t length = 500;
  std::vector<std::vector<int32_t>> anchors = {{}, {340, 2}, {9, 77, 78, 78, 300}, {0}};
  EngineRunner runner(engine("contract-lm-balanced-f32"), 2);
  ASSERT_TRUE(runner.good());
  std::vector<std::vector<float>> alone;
  std::vector<int64_t> batchIds;
  std::vector<int32_t> padded;
  std::vector<std::vector<uint32_t>> bits;
  for (size_t i = 0; i < anchors.size(); ++i) {
    std::vector<int64_t> tokens(all.begin() + i * 300, all.begin() + i * 300 + length);
    alone.push_back(logitsOf(runner, tokens, oneRow(anchors[i])));
    bits.push_back({runner.bits(0), runner.bits(1), runner.bits(2)});
    batchIds.insert(batchIds.end(), tokens.begin(), tokens.end());
    for (size_t n = 0; n < 5; ++n) padded.push_back(n < anchors[i].size() ? anchors[i][n] : -1);
  }
  ArrayMap out = runner.run({{"input_ids", int64s({4, length}, batchIds)}, {"anchors", int32s({4, 5}, padded)}}, {"logits"});
  ASSERT_FALSE(out.empty()) << runner.error.message;
  std::vector<float> together = floatsOf(out.at("logits"));
  for (size_t i = 0; i < anchors.size(); ++i) {
    EXPECT_LT(worstDifference(alone[i], {together.begin() + i * length * kVocabulary, together.begin() + (i + 1) * length * kVocabulary}), 1e-5) << "element " << i;
    for (size_t check = 0; check < 3; ++check) EXPECT_EQ(runner.bits(check, i), bits[i][check]);
  }
  EXPECT_EQ(runner.stats().evaluations_sparse, 1 + (2 + 3) + (1 + 3 + 4 + 3) + 1); // 77 and 78 share two tokens
  EXPECT_EQ(runner.stats().anchor_hits, 2 + 4);                                    // 0 has no window
}

TEST(SparseChecks, OrderDuplicatesPaddingAndBeyondTheEnd) {
  ArrayMap c = contractCase("balanced-reference");
  std::vector<int64_t> all = ids(c), tokens(all.begin(), all.begin() + 400);
  EngineRunner runner(engine("contract-lm-balanced-f32"));
  ASSERT_TRUE(runner.good());
  std::vector<float> sorted = logitsOf(runner, tokens, oneRow({2, 100, 103, 340}));
  EXPECT_EQ(runner.stats().evaluations_sparse, 2 + 6 + 3);
  for (auto &same : std::vector<std::vector<int32_t>>{{340, 2, 103, 100}, {-1, 340, -1, 340, 2, 100, 103, 103}, {2, 100, 103, 340, 2147483647, 403}}) {
    EXPECT_EQ(worstDifference(logitsOf(runner, tokens, oneRow(same)), sorted), 0);
    EXPECT_EQ(runner.stats().evaluations_sparse, 11);
    EXPECT_EQ(runner.stats().anchor_hits, 4);
  }
  // The window of an anchor just beyond the end reaches in.
  logitsOf(runner, tokens, oneRow({401}));
  EXPECT_EQ(runner.stats().evaluations_sparse, 1 + 2);
  EXPECT_EQ(runner.stats().anchor_hits, 1);
}

TEST(SparseChecks, OnePerTokenIsDenseNoneIsTheFirstTokenOnly) {
  ArrayMap c = contractCase("balanced-reference");
  std::vector<int64_t> all = ids(c), tokens(all.begin(), all.begin() + 300);
  EngineRunner runner(engine("contract-lm-balanced-f32"));
  ASSERT_TRUE(runner.good());
  ArrayMap dense = runner.run({{"input_ids", int64s({1, 300}, tokens)}}, {"logits"});
  ASSERT_FALSE(dense.empty()) << runner.error.message;
  std::vector<int32_t> every(300);
  for (int32_t i = 0; i < 300; ++i) every[i] = i + 1;
  EXPECT_LT(worstDifference(logitsOf(runner, tokens, oneRow(every)), floatsOf(dense.at("logits"))), 1e-5);
  EXPECT_EQ(runner.stats().evaluations_sparse, 300);
  for (auto &none : std::vector<Array>{oneRow({}), oneRow({-1, -1}), oneRow({0}), oneRow({5000})}) {
    logitsOf(runner, tokens, none);
    EXPECT_EQ(runner.stats().evaluations_sparse, 1);
    EXPECT_EQ(runner.stats().anchor_hits, 0);
    for (size_t check = 0; check < 3; ++check) EXPECT_EQ(runner.bits(check), word(c, "bits_" + std::string(kLayers[check]), 0)) << "the first token's bits are carried to the end";
  }
  for (int64_t length : {1, 2}) { // shorter than a window
    logitsOf(runner, {tokens.begin(), tokens.begin() + length}, oneRow({1, 2, 3, 4}));
    EXPECT_EQ(runner.stats().evaluations_sparse, length);
  }
}

TEST(SparseChecks, BadAnchorsAreRefused) {
  EngineRunner runner(engine("contract-lm-f32"));
  ASSERT_TRUE(runner.good());
  auto refused = [&](const Array &anchors, const char *what) {
    EXPECT_TRUE(runner.run({{"input_ids", int64s({2, 3}, {1, 2, 3, 4, 5, 6})}, {"anchors", anchors}}).empty());
    EXPECT_EQ(runner.error.code, TARE_REFUSED) << runner.error.message;
    EXPECT_STREQ(runner.error.tensor, "anchors");
    EXPECT_NE(std::string(runner.error.message).find(what), std::string::npos) << runner.error.message;
  };
  refused(int32s({2, 2}, {1, 2, 3, -2}), "[1, 1] is -2");
  refused(int32s({2, 1}, {INT32_MIN, 0}), "[0, 0] is -2147483648");
  refused(int32s({1, 2}, {1, 2}), "wrong shape");
  refused(int32s({2}, {1, 2}), "wrong shape");
  refused(int64s({2, 1}, {1, 2}), "wrong dtype");
  ASSERT_FALSE(runner.run({{"input_ids", int64s({2, 3}, {1, 2, 3, 4, 5, 6})}, {"anchors", int32s({2, 1}, {1, -1})}}).empty()) << runner.error.message;
}

TEST(SparseChecks, StateBelongsToTheRequest) {
  ArrayMap c = contractCase("reference");
  std::vector<int64_t> all = ids(c);
  EngineRunner runner(engine("contract-lm-kv-f32"));
  ASSERT_TRUE(runner.good());
  linkAll(runner, 400);
  uint32_t none;
  EXPECT_EQ(tare_context_check_bits(nullptr, 0, 0, &none, nullptr), TARE_USAGE);
  inChunks(runner, c, {300, 1}, true, 330);
  std::vector<uint32_t> before = {runner.bits(0), runner.bits(1), runner.bits(2)};
  EXPECT_TRUE(runner.run({{"input_ids", int64s({1, 1}, {all[330]})}, {"anchors", oneRow({-7})}}).empty()); // a failed run changes nothing
  for (size_t check = 0; check < 3; ++check) EXPECT_EQ(runner.bits(check), before[check]);
  EXPECT_TRUE(runner.run({{"input_ids", int64s({1, 1}, {9999})}, {"anchors", c.at("anchors")}}).empty());
  for (size_t check = 0; check < 3; ++check) EXPECT_EQ(runner.bits(check), before[check]);
  ASSERT_FALSE(runner.run({{"input_ids", int64s({1, 1}, {all[330]})}, {"anchors", c.at("anchors")}}, {"logits"}).empty()) << runner.error.message;
  EXPECT_EQ(runner.stats().evaluations_sparse, 0); // nothing near an anchor, and the bits are carried
  runner.reset();
  EXPECT_EQ(tare_engine_input_count(nullptr), 0u);
  inChunks(runner, c, {350}, true, 350);
}

TEST(SparseChecks, PastByHandAndOutputsOnRequest) { // the caller keeps the cache, the context the bits, whatever is asked for
  ArrayMap c = contractCase("reference");
  std::vector<int64_t> all = ids(c);
  EngineRunner runner(engine("contract-lm-kv-f32"));
  ASSERT_TRUE(runner.good());
  ArrayMap past;
  std::set<std::string> present;
  for (int l = 0; l < 8; ++l)
    for (const char *part : {"key", "value"}) {
      past[state("past_key_values", l, part)] = {1, {1, 4, 0, 32}, ""};
      present.insert(state("present", l, part));
    }
  int64_t at = 0;
  for (int64_t size : {3, 1, 334, 2, 30}) {
    ArrayMap inputs = past;
    inputs["input_ids"] = int64s({1, size}, {all.begin() + at, all.begin() + at + size});
    inputs["anchors"] = c.at("anchors");
    bool isLast = size == 30; // its first cache needs no check at all
    ArrayMap out = runner.run(inputs, isLast ? std::set<std::string>{"present.0.key"} : present);
    ASSERT_FALSE(out.empty()) << runner.error.message;
    at += size;
    for (size_t check = 0; check < 3; ++check)
      EXPECT_EQ(runner.bits(check), word(c, "sparse_bits_" + std::string(kLayers[check]), at - 1)) << "layer " << kLayers[check] << ", token " << at - 1;
    if (!isLast)
      for (auto &[name, array] : out) past["past_key_values." + name.substr(8)] = array;
  }
  // Another context with this past has no bits to go on with: it evaluates its first token.
  EngineRunner other(engine("contract-lm-kv-f32"));
  ArrayMap inputs = past;
  inputs["input_ids"] = int64s({1, 2}, {all[340], all[341]});
  inputs["anchors"] = oneRow({});
  ASSERT_FALSE(other.run(inputs, {"logits"}).empty()) << other.error.message;
  EXPECT_EQ(other.stats().evaluations_sparse, 1);
}
