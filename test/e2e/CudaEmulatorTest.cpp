// Whole models through the CUDA text on the emulator (--target cuda-emu), every access of every kernel checked. In:
// engines that hold both the CPU's code and the emulator's, float64 cases of an independent implementation. Must hold:
// the CPU's tolerances; both codes of one engine agree; caches grow in place; a bad id is an error and no crash; the
// engine holds the text that was run.
#include "test/support/EngineFiles.h"
#include <cmath>

using namespace tare;
using namespace tare::test;

namespace {

/// What rounding both operands of every product may do to a model's outputs. One rounding to nearest has a relative
/// error of rms at most u / sqrt(3) (u: the unit roundoff, 2^-11 for f16, 2^-8 for bf16); the errors of a sum's terms
/// are independent, so a GEMM's result has sqrt(2) of that relative to itself; `products` GEMMs one behind the other
/// add in squares. A product of which only one operand is rounded is half of one. Sums, softmax, norms and everything
/// else are f32 and add nothing that counts.
double roundingRms(double unit, double products, const std::vector<float> &truth) {
  double square = 0;
  for (float v : truth) square += double(v) * v;
  return unit * std::sqrt(2.0 * products / 3.0) * std::sqrt(square / double(truth.size()));
}
void expectRounded(const std::vector<float> &got, const std::vector<float> &truth, double unit, double products) {
  ASSERT_EQ(got.size(), truth.size());
  double square = 0, bound = roundingRms(unit, products, truth), worst = worstDifference(got, truth);
  for (size_t i = 0; i < got.size(); ++i) square += (double(got[i]) - truth[i]) * (double(got[i]) - truth[i]);
  double rms = std::sqrt(square / double(got.size()));
  EXPECT_LT(rms, bound);
  EXPECT_LT(worst, 6 * bound); // six sigma: some 10^5 outputs
  EXPECT_GT(worst, 1e-4);      // f32 is within 1e-5: this was computed from rounded operands
  printf("rms error %.3g (bound %.3g), worst %.3g (bound %.3g)\n", rms, bound, worst, 6 * bound);
}
constexpr double kF16 = 0x1p-11, kTf32 = 0x1p-11, kBF16 = 0x1p-8;
constexpr int kContractProducts = 8 * 6 + 2 * 2 + 1; // q k v, scores, values, out, up, down; two live enhancers; head
constexpr int kLlamaProducts = 8 * 6 + 1;
// In TF32, scores and values are products of f32; the weights of Llama are bf16, which TF32 holds as they are.
constexpr double kContractTf32Products = 8 * 4 + 2 * 2 + 1, kLlamaTf32Products = (8 * 4 + 1) / 2.0;

/// The "cuda source" of an engine; empty, and a failure, when there is none.
std::string cudaText(const char *name) {
  tare_error error{};
  tare_engine_t *opened = tare_engine_open(engine(name).c_str(), nullptr, &error);
  EXPECT_NE(opened, nullptr) << error.message;
  const void *data = nullptr;
  size_t bytes = 0;
  EXPECT_TRUE(opened && tare_engine_section(opened, "cuda source", &data, &bytes));
  std::string text(static_cast<const char *>(data), bytes);
  tare_engine_close(opened);
  return text;
}

TEST(CudaEmulator, ContractLmMatchesTheOracle) {
  EngineRunner cuda(engine("contract-lm-cuda-emu"), 2, "cuda-emu"), cpu(engine("contract-lm-cuda-emu"), 2);
  ASSERT_TRUE(cuda.good() && cpu.good());
  EXPECT_EQ(cuda.level(), "cuda-emu");
  EXPECT_EQ(cpu.level(), "x86-64-v3"); // without a word, the CPU's own code
  for (const char *name : {"one", "short"}) {
    ArrayMap wanted = contractCase(name);
    ArrayMap got = cuda.run({{"input_ids", wanted.at("input_ids")}});
    ASSERT_TRUE(got.count("logits")) << cuda.error.message;
    EXPECT_LT(worstDifference(floatsOf(got.at("logits")), floatsOf(wanted.at("logits"))), 2e-4) << name;
  }
  // The first 128 tokens of a longer case: a causal model does not know how it goes on.
  ArrayMap wanted = contractCase("medium");
  std::vector<int64_t> ids = int64sOf(wanted.at("input_ids"));
  ids.resize(128);
  ArrayMap input{{"input_ids", int64s({1, 128}, ids)}};
  std::vector<float> truth = floatsOf(wanted.at("logits")), got = floatsOf(cuda.run(input).at("logits"));
  truth.resize(128 * 260);
  EXPECT_LT(worstDifference(got, truth), 2e-4);
  EXPECT_LT(worstDifference(got, floatsOf(cpu.run(input).at("logits"))), 1e-4);
}

TEST(CudaEmulator, SparseChecksAreFusedIntoTheirGemm) { // anchors: few rows are evaluated, the others carry; the CPU's
                                                        // kernel is the other form of the same
  EngineRunner cuda(engine("contract-lm-cuda-emu"), 2, "cuda-emu"), cpu(engine("contract-lm-cuda-emu"), 2);
  ASSERT_TRUE(cuda.good() && cpu.good());
  std::vector<int64_t> ids = int64sOf(contractCase("medium").at("input_ids"));
  ids.resize(100);
  const int32_t anchors[] = {20, 70, 72, -1};
  ArrayMap input{{"input_ids", int64s({1, 100}, ids)},
                 {"anchors", Array{6, {1, 4}, std::string(reinterpret_cast<const char *>(anchors), sizeof anchors)}}};
  ArrayMap ours = cuda.run(input), theirs = cpu.run(input);
  ASSERT_TRUE(ours.count("logits")) << cuda.error.message;
  ASSERT_TRUE(theirs.count("logits")) << cpu.error.message;
  EXPECT_LT(worstDifference(floatsOf(ours.at("logits")), floatsOf(theirs.at("logits"))), 1e-4);
}

TEST(CudaEmulator, Int4BitsAreTheCpus) { // both multiply the same 16-bit rows with the same integers
  const char *name = "contract-lm-balanced-cuda-emu"; // its thresholds sit among the states
  EXPECT_NE(cudaText(name).find("Int4Panels<Check>{"), std::string::npos);
  EngineRunner cuda(engine(name), 2, "cuda-emu"), cpu(engine(name), 2);
  ASSERT_TRUE(cuda.good() && cpu.good());
  const std::vector<int64_t> all = int64sOf(contractCase("balanced-reference").at("input_ids"));
  int ones = 0;
  for (int32_t length = 1; length <= 27; length += 2) { // the last token lies before an anchor: its own bits are left
    const auto end = all.begin() + 60 * length;
    ArrayMap input{{"input_ids", int64s({1, length}, {end - length, end})}, {"anchors", int32s({1, 2}, {length, length / 2})}};
    ASSERT_TRUE(cuda.run(input).count("logits")) << cuda.error.message;
    ASSERT_TRUE(cpu.run(input).count("logits")) << cpu.error.message;
    for (size_t check = 0; check < 3; ++check) {
      EXPECT_EQ(cuda.bits(check), cpu.bits(check)) << "check " << check << ", " << length << " tokens";
      ones += __builtin_popcount(cpu.bits(check));
    }
  }
  EXPECT_TRUE(ones > 30 && ones < 14 * 9 - 30) << "bits that are all alike would prove nothing: " << ones;
}

TEST(CudaEmulator, ContractLmOnTensorCores) { // --precision f16: GEMMs with their epilogues, checked ones, attention
  EngineRunner half(engine("contract-lm-cuda-f16"), 2, "cuda-emu"), cpu(engine("contract-lm-cuda-f16"), 2);
  ASSERT_TRUE(half.good() && cpu.good());
  for (const char *name : {"one", "short"}) {
    ArrayMap wanted = contractCase(name), got = half.run({{"input_ids", wanted.at("input_ids")}});
    ASSERT_TRUE(got.count("logits")) << half.error.message;
    expectRounded(floatsOf(got.at("logits")), floatsOf(wanted.at("logits")), kF16, kContractProducts);
    // The CPU's code of the same engine computes in f32.
    EXPECT_LT(worstDifference(floatsOf(cpu.run({{"input_ids", wanted.at("input_ids")}}).at("logits")),
                              floatsOf(wanted.at("logits"))),
              2e-4);
  }
  // The same with anchors, against f32 code of the same checks.
  std::vector<int64_t> ids = int64sOf(contractCase("medium").at("input_ids"));
  ids.resize(100);
  const int32_t anchors[] = {20, 70, 72, -1};
  ArrayMap input{{"input_ids", int64s({1, 100}, ids)},
                 {"anchors", Array{6, {1, 4}, std::string(reinterpret_cast<const char *>(anchors), sizeof anchors)}}};
  ArrayMap ours = half.run(input), theirs = cpu.run(input);
  ASSERT_TRUE(ours.count("logits")) << half.error.message;
  expectRounded(floatsOf(ours.at("logits")), floatsOf(theirs.at("logits")), kF16, kContractProducts);
}

TEST(CudaEmulator, TheTextOfTensorCores) {
  const std::string text = cudaText("contract-lm-cuda-f16");
  for (const char *line : {"gemm_mma<f16>(", "attention_mma<32, f16>(", "gemm_mma_checked<Check, f16>("})
    EXPECT_NE(text.find(line), std::string::npos) << line;
  for (const char *line : {"gemm_f32(", "attention_f32<", "gemm_f32_checked<"})
    EXPECT_EQ(text.find(line), std::string::npos) << line;
}

TEST(CudaEmulator, ContractLmInTf32) { // --tf32: GEMMs with their epilogues, checked ones; attention in f32
  EngineRunner tf32(engine("contract-lm-cuda-tf32"), 2, "cuda-emu"), cpu(engine("contract-lm-cuda-tf32"), 2);
  ASSERT_TRUE(tf32.good() && cpu.good());
  for (const char *name : {"one", "short"}) {
    ArrayMap wanted = contractCase(name), got = tf32.run({{"input_ids", wanted.at("input_ids")}});
    ASSERT_TRUE(got.count("logits")) << tf32.error.message;
    expectRounded(floatsOf(got.at("logits")), floatsOf(wanted.at("logits")), kTf32, kContractTf32Products);
  }
  std::vector<int64_t> ids = int64sOf(contractCase("medium").at("input_ids"));
  ids.resize(100);
  ArrayMap input{{"input_ids", int64s({1, 100}, ids)}, {"anchors", int32s({1, 4}, {20, 70, 72, -1})}};
  ArrayMap ours = tf32.run(input), theirs = cpu.run(input); // the CPU's code of the same engine computes in f32
  ASSERT_TRUE(ours.count("logits")) << tf32.error.message;
  expectRounded(floatsOf(ours.at("logits")), floatsOf(theirs.at("logits")), kTf32, kContractTf32Products);
}

TEST(CudaEmulator, LlamaInTf32) { // bf16 weights are exact in TF32, activations are rounded
  ArrayMap cases = load("llama-pro-tiny/cases");
  EngineRunner tf32(engine("llama-pro-tiny-cuda-tf32"), 2, "cuda-emu");
  ASSERT_TRUE(tf32.good());
  for (std::string name : {"a", "b", "c"}) {
    ArrayMap got = tf32.run({{"input_ids", cases.at(name + ".input_ids")}}, {"logits"});
    ASSERT_TRUE(got.count("logits")) << tf32.error.message;
    expectRounded(floatsOf(got.at("logits")), floatsOf(cases.at(name + ".logits")), kTf32, kLlamaTf32Products);
  }
}

TEST(CudaEmulator, TheTextOfTf32) { // nothing of it without the flag
  const std::string text = cudaText("contract-lm-cuda-tf32");
  for (const char *line : {"#include \"kernels/cuda/gemm_tf32.cuh\"\n", "gemm_tf32(", "gemm_tf32_checked<Check>(", "attention_f32<"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
  for (const char *line : {"gemm_f32(", "gemm_f32_checked<", "mma<"})
    EXPECT_EQ(text.find(line), std::string::npos) << line;
  for (const char *other : {"contract-lm-cuda-emu", "contract-lm-cuda-f16"}) EXPECT_EQ(cudaText(other).find("tf32"), std::string::npos) << other;
}

TEST(CudaEmulator, AnIdBeyondTheVocabularyIsAnError) {
  EngineRunner cuda(engine("contract-lm-cuda-emu"), 1, "cuda-emu");
  ASSERT_TRUE(cuda.good());
  EXPECT_TRUE(cuda.run({{"input_ids", int64s({1, 2}, {5, 260})}}).empty());
  EXPECT_NE(std::string(cuda.error.message).find("index out of range"), std::string::npos) << cuda.error.message;
  EXPECT_FALSE(cuda.run({{"input_ids", int64s({1, 2}, {5, 259})}}).empty())
      << cuda.error.message; // the context is usable afterwards
}

TEST(CudaEmulator, TheEngineHoldsTheText) {
  const std::string text = cudaText("contract-lm-cuda-emu");
  for (const char *line : {"//==== gemm_f32_128x512_add_gelu_erf\n", "// runs as /layers.0/up/MatMul\n",
                           "#include \"kernels/cuda/gemm_f32.cuh\"\n", "gelu_erf(", "attention_f32<32, 32>(",
                           "gemm_f32_checked<Check>(", "check_bias<Check>(bits, "})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

TEST(CudaEmulator, LlamaMatchesTheOracle) { // GQA, rotary embedding, RMS norm, SwiGLU, bf16 weights
  ArrayMap cases = load("llama-pro-tiny/cases");
  EngineRunner cuda(engine("llama-pro-tiny-cuda-emu"), 2, "cuda-emu");
  ASSERT_TRUE(cuda.good());
  for (std::string name : {"a", "b", "c"}) {
    ArrayMap got = cuda.run({{"input_ids", cases.at(name + ".input_ids")}}, {"logits"});
    ASSERT_TRUE(got.count("logits")) << cuda.error.message;
    EXPECT_LT(worstDifference(floatsOf(got.at("logits")), floatsOf(cases.at(name + ".logits"))), 5e-4) << name;
  }
}

TEST(CudaEmulator, LlamaOnTensorCores) { // bf16 weights go to shared memory as they are, activations are rounded
  ArrayMap cases = load("llama-pro-tiny/cases");
  EngineRunner half(engine("llama-pro-tiny-cuda-bf16"), 2, "cuda-emu");
  ASSERT_TRUE(half.good());
  for (std::string name : {"a", "b", "c"}) {
    ArrayMap got = half.run({{"input_ids", cases.at(name + ".input_ids")}}, {"logits"});
    ASSERT_TRUE(got.count("logits")) << half.error.message;
    expectRounded(floatsOf(got.at("logits")), floatsOf(cases.at(name + ".logits")), kBF16, kLlamaProducts);
  }
}

/// Chunks of 5, 1, 1 and 2 tokens into caches of 32; `check` gets a chunk's logits and the oracle's.
template <class Check> void growCaches(const std::string &name, Check check) {
  ArrayMap cases = load("llama-pro-tiny/cases");
  std::vector<int64_t> ids = int64sOf(cases.at("a.input_ids"));
  std::vector<float> truth = floatsOf(cases.at("a.logits"));
  EngineRunner cuda(engine(name), 2, "cuda-emu");
  ASSERT_TRUE(cuda.good());
  for (int layer = 0; layer < 8; ++layer)
    for (const char *part : {"key", "value"})
      cuda.link("past_key_values." + std::to_string(layer) + "." + part,
                "present." + std::to_string(layer) + "." + part, 32);
  size_t done = 0;
  for (size_t chunk : {5, 1, 1, 2}) {
    ArrayMap got = cuda.run(
        {{"input_ids", int64s({1, int64_t(chunk)}, {ids.begin() + done, ids.begin() + done + chunk})}}, {"logits"});
    ASSERT_TRUE(got.count("logits")) << cuda.error.message;
    std::vector<float> rows(truth.begin() + done * 260, truth.begin() + (done + chunk) * 260);
    SCOPED_TRACE(testing::Message() << "after " << done);
    check(floatsOf(got.at("logits")), rows);
    done += chunk;
  }
}
TEST(CudaEmulator, CachesGrowInPlace) {
  growCaches("llama-pro-tiny-cuda-emu", [](const std::vector<float> &got, const std::vector<float> &rows) {
    EXPECT_LT(worstDifference(got, rows), 5e-4);
  });
}
TEST(CudaEmulator, CachesGrowInPlaceOnTensorCores) {
  growCaches("llama-pro-tiny-cuda-bf16", [](const std::vector<float> &got, const std::vector<float> &rows) {
    expectRounded(got, rows, kBF16, kLlamaProducts);
  });
}
} // namespace
