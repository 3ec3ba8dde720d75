// Which of its two tiles a GEMM on tensor cores takes, launch by launch (compiler/codegen/cuda/PrintGemm.cpp). In: a linear
// layer of 54 x 128 columns whose operands and sums f16 and f32 hold exactly. Must hold: 64 x 64 below 2 x 128 rows, 128 x
// 128 from there on (2 x 54 = 108 tiles), never both and never none; exact results either way; a number of rows that is
// known needs one text.
#include "compiler/codegen/cuda/Launches.h"
#include "test/support/EmulatorEngine.h"
#include "test/support/EngineRunner.h"
#include "test/support/OnnxModels.h"

using namespace tare;
using namespace tare::test;

namespace {
constexpr int64_t kColumns = 54 * 128, kDepth = 24;

/// Multiples of 1/8 below 1.
float eighth(int64_t i) { return static_cast<float>((i * 37 + i / 7) % 15 - 7) / 8; }
std::vector<float> eighths(int64_t count) {
  std::vector<float> v(count);
  for (int64_t i = 0; i < count; ++i) v[i] = eighth(i);
  return v;
}

/// y = relu(x) w + b: the result of relu is stored as f16.
std::string linear(const TempDir &dir, const std::string &rows, int64_t columns = kColumns) {
  OnnxModel m;
  m.input("x", 1, {rows, std::to_string(kDepth)}).output("y", 1, {rows, std::to_string(columns)});
  m.floats("w", eighths(kDepth * columns), {kDepth, columns});
  m.floats("b", eighths(columns), {columns});
  m.node("Relu", {"x"}, {"r"});
  m.node("MatMul", {"r", "w"}, {"p"}).set_name("/fc/MatMul");
  m.node("Add", {"p", "b"}, {"y"});
  return m.save(dir);
}

/// Names of the GEMM's launches that have blocks when there are this many rows.
std::vector<std::string> launched(PlannedModel &model, const std::vector<cuda::KernelText> &kernels, int64_t rows) {
  std::vector<std::string> names;
  for (const cuda::Launch &l : cuda::launchesOf(model.module(), kernels)) {
    bool has = l.kernel->name.find("gemm") == 0;
    for (const Dim &dim : l.kernel->grid) {
      auto size = dim.evaluate([&](llvm::StringRef) { return std::optional<int64_t>(rows); });
      EXPECT_TRUE(size && *size >= 0) << dim.str();
      has = has && size && *size > 0;
    }
    if (has) names.push_back(l.kernel->name);
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(CudaTiles, RowsDecideAndBothAreExact) {
  TempDir dir;
  PlannedModel model(linear(dir, "S"));
  ASSERT_TRUE(model.good()) << model.error;
  auto kernels = cuda::printKernels(model.module(), cuda::Precision::F16);
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  const std::string text = cuda::sourceSection(*kernels), name = "gemm_f32_24x6912_add";
  for (const char *line : {"gemm_mma<f16>(", "gemm_mma<f16, GemmMmaLarge>("}) EXPECT_NE(text.find(line), std::string::npos) << line;
  for (int64_t rows : {1, 64, 127, 128, 255}) EXPECT_EQ(launched(model, *kernels, rows), Names{name}) << rows;
  for (int64_t rows : {256, 257, 4096, 1 << 20}) EXPECT_EQ(launched(model, *kernels, rows), Names{name + "_large"}) << rows;
  EXPECT_TRUE(launched(model, *kernels, 0).empty());

  ASSERT_EQ(writeEmulatorEngine(model, *kernels, dir.path("m.tare")), "");
  EngineRunner engine(dir.path("m.tare"), 2, "cuda-emu");
  ASSERT_TRUE(engine.good());
  const std::vector<float> w = eighths(kDepth * kColumns);
  for (int64_t rows : {5, 255, 261}) { // one context: the launches change from run to run
    const std::vector<float> x = eighths(rows * kDepth);
    ArrayMap got = engine.run({{"x", Array{1, {rows, kDepth}, std::string(reinterpret_cast<const char *>(x.data()), x.size() * 4)}}});
    ASSERT_TRUE(got.count("y")) << engine.error.message;
    const std::vector<float> y = floatsOf(got.at("y"));
    ASSERT_EQ(y.size(), size_t(rows * kColumns));
    std::vector<double> sums(kColumns);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < kColumns; ++c) sums[c] = eighth(c);
      for (int64_t k = 0; k < kDepth; ++k)
        for (int64_t c = 0; c < kColumns; ++c) sums[c] += double(std::max(0.0f, x[r * kDepth + k])) * w[k * kColumns + c];
      for (int64_t c = 0; c < kColumns; ++c) ASSERT_EQ(y[r * kColumns + c], sums[c]) << rows << ": " << r << "," << c;
    }
  }
}

/// Names of the GEMM's texts of a layer.
Names texts(const std::string &rows, int64_t columns, cuda::Precision precision = cuda::Precision::BF16) {
  TempDir dir;
  PlannedModel model(linear(dir, rows, columns));
  if (!model.good()) return {model.error};
  auto kernels = cuda::printKernels(model.module(), precision);
  if (!kernels) return {llvm::toString(kernels.takeError())};
  Names names;
  for (auto &text : *kernels)
    if (text.name.find("gemm") == 0) names.push_back(text.name);
  return names;
}

TEST(CudaTiles, OneTextWhereTheRowsAreKnown) {
  EXPECT_EQ(texts("255", kColumns), Names{"gemm_f32_24x6912_add"});
  EXPECT_EQ(texts("256", kColumns), Names{"gemm_f32_24x6912_add_large"});
}
TEST(CudaTiles, NoLargeTilesThatColumnsLeaveEmpty) {
  EXPECT_EQ(texts("S", 64), Names{"gemm_f32_24x64_add"}); // half of a tile
  EXPECT_EQ(texts("S", 260), Names{"gemm_f32_24x260_add"}); // two tiles and four columns
  EXPECT_EQ(texts("S", 96), (Names{"gemm_f32_24x96_add", "gemm_f32_24x96_add_large"}));
  EXPECT_EQ(texts("S", 384), (Names{"gemm_f32_24x384_add", "gemm_f32_24x384_add_large"}));
}
TEST(CudaTiles, F32HasOneTile) { EXPECT_EQ(texts("S", kColumns, cuda::Precision::F32), Names{"gemm_f32_24x6912_add"}); }

} // namespace
