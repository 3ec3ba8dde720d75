// The split form of a fidelity check in a whole model: the engine of the command line, whose checks are small and fused
// into their GEMMs, and one of the same model whose rows are evaluated by a launch of their own. In: contract-lm, f16.
// Must hold: the same results in every bit, with anchors and without; the text has both launches, and so has the list that
// a driver gets.
#include "compiler/codegen/cuda/Launches.h"
#include "test/support/EmulatorEngine.h"
#include "test/support/EngineFiles.h"
#include "test/support/TempDir.h"

using namespace tare;
using namespace tare::test;

namespace {

/// Compiles contract-lm as the fixture was, all checks split. Adds the number of launches and of steps.
std::string compileSplit(const std::string &path, size_t &launches, size_t &steps) {
  PlannedModel model(testData("contract-lm/contract-lm.onnx"), testData("contract-lm/calibration.npz"));
  if (!model.good()) return model.error;
  auto kernels = cuda::printKernels(model.module(), cuda::Precision::F16, 0);
  if (!kernels) return llvm::toString(kernels.takeError());
  for (const cuda::Launch &launch : cuda::launchesOf(model.module(), *kernels))
    launches += !llvm::StringRef(launch.kernel->name).ends_with("_large"); // instead of another one's tiles, for many rows
  steps = llvm::range_size(model.program().getBody().getOps<plan::DispatchOp>());
  const std::string text = cuda::sourceSection(*kernels);
  for (const char *line : {"check_distances<Check>(", "gemm_mma_carried<Check, f16>(", "_fidelity_check_add_add_gelu_erf_evaluate("})
    if (text.find(line) == std::string::npos) return std::string("the text has no ") + line;
  if (text.find("_checked<") != std::string::npos) return "a check is still fused";
  // The driver's launches as well (no images that a driver could take): opening the engine validates them.
  cuda::Program driver;
  driver.kernels = *kernels, driver.precision = "f16";
  driver.images.push_back({"sm_80", std::vector<std::string>(kernels->size(), "none"), {}});
  driver.images[0].resources.resize(kernels->size());
  return writeEmulatorEngine(model, *kernels, path, &driver);
}

TEST(CudaSplit, EvaluatedBeforeOrInTheGemmGivesTheSameBits) {
  TempDir folder;
  size_t launches = 0, steps = 0;
  std::string path = folder.path("split.tare");
  ASSERT_EQ(compileSplit(path, launches, steps), "");
  EXPECT_EQ(launches, steps + 3); // layers 2, 4 and 6 have checks
  std::vector<int64_t> ids = int64sOf(contractCase("medium").at("input_ids"));
  ids.resize(100);
  for (bool anchored : {true, false}) {
    EngineRunner split(path, 2, "cuda-emu"), fused(engine("contract-lm-cuda-f16"), 2, "cuda-emu");
    ASSERT_TRUE(split.good() && fused.good());
    ArrayMap input{{"input_ids", int64s({1, 100}, ids)}};
    if (anchored) input["anchors"] = int32s({1, 4}, {20, 70, 72, -1});
    ArrayMap ours = split.run(input), theirs = fused.run(input);
    ASSERT_TRUE(ours.count("logits")) << split.error.message;
    ASSERT_TRUE(theirs.count("logits")) << fused.error.message;
    EXPECT_EQ(ours.at("logits").bytes, theirs.at("logits").bytes) << (anchored ? "with anchors" : "dense");
  }
}

} // namespace
