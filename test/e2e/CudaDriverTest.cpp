// Whole models through the runtime's GPU path, executed by the fake driver on the emulator: what `tare compile --target cuda:sm_90` stores (launches, arguments,
// grids) is launched as on a GPU, and the results are compared with float64 cases of an independent implementation. In: contract-lm with a KV cache, its kernels as
// a library of the host. Must hold: dense and sparse logits within 2e-4, every bit of the fidelity checks, chunk by chunk as in one pass; graphs change nothing.
#include "test/support/EngineFiles.h"
#include "test/support/FakeCuda.h"
#include <memory>
#include <thread>

using namespace tare;
using namespace tare::test;

namespace {
constexpr int64_t kWidth = 260;

class CudaDriver : public FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    if (fake) fake->kernels(TARE_HOST_KERNELS);
  }
  static std::string path() {
    const char *folder = getenv("TARE_CUDA_ENGINES"); // tools/gpu-check.sh compiles for the GPU at hand
    return folder ? std::string(folder) + "/contract-lm-kv-cuda.tare" : engine("contract-lm-kv-cuda");
  }
  static std::unique_ptr<EngineRunner> open(const char *target, bool profile = false) { return std::make_unique<EngineRunner>(path(), 1, target, profile); }
  static void linkAll(EngineRunner &runner, int64_t capacity) {
    for (int l = 0; l < 8; ++l)
      for (const char *part : {"key", "value"}) runner.link("past_key_values." + std::to_string(l) + "." + part, "present." + std::to_string(l) + "." + part, capacity);
  }
  static ArrayMap request(const std::vector<int64_t> &ids, size_t from, size_t count, const Array *anchors = nullptr) {
    ArrayMap inputs{{"input_ids", int64s({1, static_cast<int64_t>(count)}, {ids.begin() + static_cast<long>(from), ids.begin() + static_cast<long>(from + count)})}};
    if (anchors) inputs["anchors"] = *anchors;
    return inputs;
  }
  static std::vector<float> logits(EngineRunner &runner, const ArrayMap &inputs) {
    ArrayMap out = runner.run(inputs, {"logits"});
    EXPECT_FALSE(out.empty()) << runner.error.message;
    return out.empty() ? std::vector<float>() : floatsOf(out.at("logits"));
  }
  /// Logits of the case at the listed positions in [from, from + count) against rows of the run; the number compared.
  static size_t compareRows(const ArrayMap &c, const char *key, const std::vector<float> &got, int64_t from, int64_t count) {
    std::vector<int64_t> positions = int64sOf(c.at("logits_positions"));
    std::vector<float> wanted = floatsOf(c.at(key));
    size_t compared = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      int64_t row = positions[i] - from;
      if (row < 0 || row >= count) continue;
      std::vector<float> a(got.begin() + row * kWidth, got.begin() + (row + 1) * kWidth), b(wanted.begin() + static_cast<long>(i) * kWidth, wanted.begin() + static_cast<long>(i + 1) * kWidth);
      EXPECT_LT(worstDifference(a, b), 2e-4) << key << " at " << positions[i];
      ++compared;
    }
    return compared;
  }
  static void expectBits(EngineRunner &runner, const ArrayMap &c, const char *kind, int64_t token) {
    const char *layers[] = {"2", "4", "6"};
    for (size_t check = 0; check < 3; ++check) {
      const std::string &bytes = c.at(std::string(kind) + layers[check]).bytes;
      uint32_t word = 0;
      for (int64_t k = 0; k < 3; ++k) word |= uint32_t(bytes[static_cast<size_t>(token * 3 + k)] != 0) << k;
      EXPECT_EQ(runner.bits(check), word) << kind << layers[check] << " at " << token;
    }
  }
};
} // namespace

TEST_F(CudaDriver, DenseLogitsMatchTheOracle) {
  auto cuda = open("cuda");
  ASSERT_TRUE(cuda->good());
  EXPECT_EQ(cuda->level().compare(0, 5, "cuda:"), 0) << cuda->level();
  linkAll(*cuda, 128);
  ArrayMap wanted = contractCase("short");
  for (int i = 0; i < 3; ++i) { // launched, captured, from the graph
    EXPECT_LT(worstDifference(logits(*cuda, {{"input_ids", wanted.at("input_ids")}}), floatsOf(wanted.at("logits"))), 2e-4) << "run " << i;
    cuda->reset();
  }
  if (!fake) return;
  EXPECT_EQ(count("cuGraphLaunch"), 2u);
  EXPECT_EQ(count("cuGraphInstantiate"), 1u);
}

TEST_F(CudaDriver, SparseChecksChunkByChunk) {
  ArrayMap c = contractCase("reference");
  std::vector<int64_t> ids = int64sOf(c.at("input_ids"));
  const Array &anchors = c.at("anchors");
  auto cuda = open("cuda"), cpu = open("cpu");
  ASSERT_TRUE(cuda->good() && cpu->good());
  linkAll(*cuda, 400), linkAll(*cpu, 400);
  size_t done = 0, compared = 0;
  for (size_t chunk : {300, 37, 1, 1, 1, 4}) { // the first window is at 337
    ArrayMap inputs = request(ids, done, chunk, &anchors);
    std::vector<float> got = logits(*cuda, inputs);
    ASSERT_EQ(got.size(), chunk * kWidth);
    EXPECT_LT(worstDifference(got, logits(*cpu, inputs)), 2e-4) << "after " << done;
    compared += compareRows(c, "sparse_logits", got, static_cast<int64_t>(done), static_cast<int64_t>(chunk));
    done += chunk;
    expectBits(*cuda, c, "sparse_bits_", static_cast<int64_t>(done) - 1);
    EXPECT_EQ(cuda->stats().evaluations_sparse, cpu->stats().evaluations_sparse);
  }
  EXPECT_GE(compared, 3u);
  if (fake) EXPECT_GE(count("cuGraphLaunch"), 2u); // single tokens share a graph: the cache's length is a parameter
}

TEST_F(CudaDriver, DenseChecksKeepTheirBits) {
  ArrayMap c = contractCase("reference");
  std::vector<int64_t> ids = int64sOf(c.at("input_ids"));
  auto cuda = open("cuda");
  ASSERT_TRUE(cuda->good());
  linkAll(*cuda, 80);
  size_t done = 0;
  for (size_t chunk : {40, 1, 20}) {
    compareRows(c, "logits", logits(*cuda, request(ids, done, chunk)), static_cast<int64_t>(done), static_cast<int64_t>(chunk));
    done += chunk;
    expectBits(*cuda, c, "bits_", static_cast<int64_t>(done) - 1);
  }
}

TEST_F(CudaDriver, OtherAnchorsKeepTheGraph) { // anchors are data that a run copies
  ArrayMap c = contractCase("medium");
  std::vector<int64_t> ids = int64sOf(c.at("input_ids"));
  auto cuda = open("cuda"), cpu = open("cpu");
  ASSERT_TRUE(cuda->good() && cpu->good());
  linkAll(*cuda, 64), linkAll(*cpu, 64);
  std::vector<std::vector<int32_t>> lists = {{10, 40}, {10, 40}, {5, 6}, {-1, -1}, {63, 20}};
  for (auto &list : lists) {
    Array anchors{6, {1, 2}, std::string(reinterpret_cast<const char *>(list.data()), 8)};
    ArrayMap inputs = request(ids, 0, 64, &anchors);
    EXPECT_LT(worstDifference(logits(*cuda, inputs), logits(*cpu, inputs)), 1e-4) << list[0] << ", " << list[1];
    for (size_t check = 0; check < 3; ++check) EXPECT_EQ(cuda->bits(check), cpu->bits(check)) << list[0];
    cuda->reset(), cpu->reset();
  }
  if (!fake) return;
  EXPECT_EQ(count("cuGraphInstantiate"), 1u);
  EXPECT_EQ(count("cuGraphLaunch"), lists.size() - 1);
  EXPECT_EQ(count("cuGraphExecKernelNodeSetParams"), 0u); // no parameter of a kernel depends on them
}

TEST_F(CudaDriver, TwoRequestsOnTwoThreads) {
  ArrayMap c = contractCase("reference");
  std::vector<int64_t> ids = int64sOf(c.at("input_ids"));
  std::vector<float> wanted[2], got[2];
  auto serve = [&](int t, std::vector<float> &out) {
    auto runner = open("cuda");
    if (!runner->good()) return;
    linkAll(*runner, 40);
    size_t at = static_cast<size_t>(t) * 500;
    for (size_t chunk : {5, 1}) out = logits(*runner, request(ids, at, chunk)), at += chunk;
  };
  for (int t = 0; t < 2; ++t) serve(t, wanted[t]);
  std::thread threads[2];
  for (int t = 0; t < 2; ++t) threads[t] = std::thread([&, t] { serve(t, got[t]); });
  for (auto &thread : threads) thread.join();
  for (int t = 0; t < 2; ++t) EXPECT_EQ(got[t], wanted[t]);
  EXPECT_NE(wanted[0], wanted[1]);
}

TEST_F(CudaDriver, AnIdBeyondTheVocabularyIsAnError) {
  auto cuda = open("cuda");
  ASSERT_TRUE(cuda->good());
  linkAll(*cuda, 8);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(cuda->run({{"input_ids", int64s({1, 2}, {5, 260})}}, {"logits"}).empty());
    EXPECT_NE(std::string(cuda->error.message).find("index out of range"), std::string::npos) << cuda->error.message;
    EXPECT_NE(cuda->error.step[0], 0);
    EXPECT_FALSE(cuda->run({{"input_ids", int64s({1, 2}, {5, 259})}}, {"logits"}).empty()) << cuda->error.message;
  }
}

TEST_F(CudaDriver, AProfileTimesTheStepsThatRan) {
  auto cuda = open("cuda", true);
  ASSERT_TRUE(cuda->good());
  linkAll(*cuda, 8);
  ASSERT_FALSE(logits(*cuda, {{"input_ids", int64s({1, 3}, {5, 6, 7})}}).empty());
  EXPECT_GT(cuda->executedSteps(), 40u);
  EXPECT_LE(cuda->executedSteps(), cuda->plannedSteps());
}
