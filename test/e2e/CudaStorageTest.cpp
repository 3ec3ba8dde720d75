// Activations stored as what tensor cores multiply (compiler/codegen/cuda/Storage.h) in whole models, and the same models
// with every buffer as the plan says. In: contract-lm with and without caches, llama-pro-tiny, bert-tiny. Must hold: the
// same results in every bit; what another reader needs in f32 is f32; the plan does not change.
#include "compiler/codegen/cuda/Launches.h"
#include "test/support/EmulatorEngine.h"
#include "test/support/EngineFiles.h"
#include "test/support/TempDir.h"
#include <regex>

using namespace tare;
using namespace tare::test;

namespace {

/// One model, printed both ways. `compiled` names an engine of the command line: printed like the rounded one.
struct Both {
  TempDir folder;
  std::string rounded = folder.path("rounded.tare"), planned = folder.path("planned.tare");
  std::string text, planText; // of the rounded one; of the other

  Both(const char *model, cuda::Precision precision, const char *calibration = "", const char *compiled = nullptr) {
    if (compiled) rounded = engine(compiled);
    make(model, precision, calibration, !compiled);
  }
  void make(const char *model, cuda::Precision precision, const char *calibration, bool writesRounded) {
    for (auto storage : {cuda::Storage::Rounded, cuda::Storage::AsPlanned}) {
      PlannedModel source(testData(model), testData(calibration));
      ASSERT_TRUE(source.good()) << source.error;
      const std::string before = source.text();
      auto kernels = cuda::printKernels(source.module(), precision, cuda::kSplitChecksAbove, storage);
      ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
      EXPECT_EQ(source.text(), before); // types, sizes and lifetimes are the CPU's, too
      bool isRounded = storage == cuda::Storage::Rounded;
      (isRounded ? text : planText) = cuda::sourceSection(*kernels);
      if (!isRounded || writesRounded) ASSERT_EQ(writeEmulatorEngine(source, *kernels, isRounded ? rounded : planned), "");
    }
  }
  /// The line that begins this kernel.
  std::string signature(const std::string &kernel) const {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(text, found, std::regex("TARE_[A-Z_]*\\(128\\) " + kernel + "\\(.*"))) << kernel;
    return found.empty() ? "" : found[0].str();
  }
};

void expectEqualBits(const ArrayMap &a, const ArrayMap &b, const EngineRunner &one, const EngineRunner &other) {
  ASSERT_FALSE(a.empty()) << one.error.message;
  ASSERT_FALSE(b.empty()) << other.error.message;
  for (auto &[name, array] : a)
    EXPECT_EQ(array.bytes, b.at(name).bytes) << name;
}
void expectEqualBits(const Both &both, const ArrayMap &input) {
  EngineRunner rounded(both.rounded, 2, "cuda-emu"), planned(both.planned, 2, "cuda-emu");
  ASSERT_TRUE(rounded.good() && planned.good());
  expectEqualBits(rounded.run(input), planned.run(input), rounded, planned);
}

std::vector<int64_t> contractIds(size_t count) {
  std::vector<int64_t> ids = int64sOf(contractCase("medium").at("input_ids"));
  ids.resize(count);
  return ids;
}

TEST(CudaStorage, ContractLmHasTheSameBits) { // q, k, v, norms, FFN; fused checks with anchors and without
  Both both("contract-lm/contract-lm.onnx", cuda::Precision::F16, "contract-lm/calibration.npz", "contract-lm-cuda-f16");
  ArrayMap input{{"input_ids", int64s({1, 70}, contractIds(70))}};
  expectEqualBits(both, input);
  input["anchors"] = int32s({1, 4}, {20, 40, 42, -1});
  expectEqualBits(both, input);
  const std::string weights = "global<const float> x1, global<const float> x2"; // the model's are f32, and the CPU's
  EXPECT_NE(both.signature("gemm_f32_128x512_add_gelu_erf").find("(global<const f16> x0, " + weights + ", global<f16> y0"), std::string::npos);
  // The residual is added in f32.
  EXPECT_NE(both.signature("gemm_f32_512x128_add_add").find("(global<const f16> x0, " + weights + ", global<const float> x3, global<float> y0"), std::string::npos);
  // A check computes its distances from the unrounded row: the norm before it is another text.
  EXPECT_NE(both.signature("gemm_f32_128x512_fidelity_check_add_add_gelu_erf").find("(global<const float> x0"), std::string::npos);
  EXPECT_NE(both.signature("row_f32_128_layer_norm").find("global<f16> y0"), std::string::npos);
  EXPECT_NE(both.signature("row_f32_128_layer_norm_stored2").find("global<float> y0"), std::string::npos);
  // Stored as planned there is no f16 in memory, and no second text.
  EXPECT_EQ(both.planText.find("<f16> y0"), std::string::npos);
  EXPECT_EQ(both.planText.find("_stored2"), std::string::npos);
}

TEST(CudaStorage, CachesHaveTheSameBits) {
  Both both("contract-lm/contract-lm-kv.onnx", cuda::Precision::BF16);
  EngineRunner rounded(both.rounded, 2, "cuda-emu"), planned(both.planned, 2, "cuda-emu");
  ASSERT_TRUE(rounded.good() && planned.good());
  const std::vector<int64_t> ids = contractIds(90);
  for (EngineRunner *run : {&rounded, &planned})
    for (int layer = 0; layer < 8; ++layer)
      for (const char *part : {"key", "value"})
        run->link("past_key_values." + std::to_string(layer) + "." + part, "present." + std::to_string(layer) + "." + part, 128);
  size_t done = 0;
  for (size_t chunk : {70, 1, 19}) {
    ArrayMap input{{"input_ids", int64s({1, int64_t(chunk)}, {ids.begin() + done, ids.begin() + done + chunk})}};
    expectEqualBits(rounded.run(input, {"logits"}), planned.run(input, {"logits"}), rounded, planned);
    done += chunk;
  }
  // What lies in caches or is appended to them stays f32, and so does q, which one kernel reads with them.
  EXPECT_NE(both.text.find("append_f32_4x32(global<const float> x0, global<const float> x1, global<float> y0"), std::string::npos);
  EXPECT_NE(both.signature("attention_f32_[a-z0-9_]*").find("(global<const float> x0, global<const float> x1, global<const float> x2"), std::string::npos);
}

TEST(CudaStorage, LlamaHasTheSameBits) { // bf16 weights and bf16 activations: both operands are copied as they are
  Both both("llama-pro-tiny", cuda::Precision::BF16, "", "llama-pro-tiny-cuda-bf16");
  ArrayMap input{{"input_ids", load("llama-pro-tiny/cases").at("b.input_ids")}};
  expectEqualBits(both, input);
  EXPECT_NE(both.signature("gemm_bf16_352x128_cast_add").find("(global<const bf16> x0, global<const bf16> x1, global<const float> x2, global<float> y0"), std::string::npos);
}

TEST(CudaStorage, BertHasTheSameBits) { // norms that a residual reads as well stay f32; attention in f32 stores f16 (heads of 24)
  Both both("bert-tiny", cuda::Precision::F16);
  const std::vector<int64_t> ids = contractIds(40);
  expectEqualBits(both, {{"input_ids", int64s({2, 20}, ids)}, {"attention_mask", int64s({2, 20}, std::vector<int64_t>(40, 1))}, {"token_type_ids", int64s({2, 20}, std::vector<int64_t>(40, 0))}});
  EXPECT_NE(both.signature("attention_f32_4x24").find("global<f16> y0"), std::string::npos);
  EXPECT_NE(both.signature("row_f32_96_layer_norm").find("global<float> y0"), std::string::npos);
}

TEST(CudaStorage, BoundsAreElementsOfTheStoredType) { // a buffer of n f32 holds n f16; what lies behind them is out of bounds
  PlannedModel model(testData("contract-lm/contract-lm.onnx"));
  ASSERT_TRUE(model.good()) << model.error;
  auto kernels = cuda::printKernels(model.module(), cuda::Precision::F16);
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  int64_t memory = cuda::addEmulatorMemory(model.module(), *kernels);
  const std::string text = cuda::emulatorText(model.module(), *kernels, memory);
  const std::regex argument("buffer<(?:const )?f16>\\(args, \\d+, ([^\"]*), \"");
  size_t found = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), argument), end; it != end; ++it, ++found)
    EXPECT_TRUE((*it)[1].str().ends_with(" / 4")) << (*it)[0];
  EXPECT_GT(found, 100u);
}

TEST(CudaStorage, F32IsNotAffected) {
  PlannedModel model(testData("contract-lm/contract-lm.onnx"));
  ASSERT_TRUE(model.good()) << model.error;
  std::string texts[2];
  for (auto storage : {cuda::Storage::Rounded, cuda::Storage::AsPlanned}) {
    auto kernels = cuda::printKernels(model.module(), cuda::Precision::F32, cuda::kSplitChecksAbove, storage);
    ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
    texts[static_cast<int>(storage)] = cuda::sourceSection(*kernels);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

} // namespace
