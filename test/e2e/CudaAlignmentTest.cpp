// Callers' buffers that kernels touch directly, on the emulator: a GPU gets copies in its own memory, the emulator must not see a worse address. In: linear layers on
// an input, compiled by the command line. Oracle: the sums written out in double. Must hold: any address that a CPU's code takes is taken, for inputs and outputs.
#include "test/support/EngineRunner.h"
#include "test/support/OnnxModels.h"

using namespace tare;
using namespace tare::test;

namespace {
constexpr size_t kRows = 5, kDepth = 64, kColumns = 64;

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> v(count);
  for (float &f : v) seed = seed * 1664525 + 1013904223, f = static_cast<float>(static_cast<int>(seed >> 24) - 128) / 256;
  return v;
}

class CudaAlignment : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    OnnxModel m;
    m.input("x", 1, {"S", "64"}).output("y", 1, {"S", "64"});
    m.floats("w", weight, {64, 64});
    m.node("MatMul", {"x", "w"}, {"y"}).set_name("/fc/MatMul");
    engine = dir.path("m.tare");
    std::string command = std::string(TARE_BINARY) + " compile " + m.save(dir) + " -o " + engine + " --target cuda-emu --precision " + GetParam() + " --quiet";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  std::vector<float> weight = numbers(kDepth * kColumns, 1);
  TempDir dir;
  std::string engine;
};
INSTANTIATE_TEST_SUITE_P(Precisions, CudaAlignment, ::testing::Values("f32", "f16"));
} // namespace

TEST_P(CudaAlignment, AnyAddress) {
  std::vector<float> x = numbers(kRows * kDepth, 2);
  tare_error error{};
  tare_engine_t *opened = tare_engine_open(engine.c_str(), nullptr, &error);
  ASSERT_NE(opened, nullptr) << error.message;
  tare_context_options options{};
  options.struct_bytes = sizeof options, options.threads = 1;
  tare_context_t *context = tare_context_create(opened, &options, &error);
  ASSERT_NE(context, nullptr) << error.message;
  alignas(16) char in[kRows * kDepth * 4 + 16], out[kRows * kColumns * 4 + 16];
  int64_t shape[2] = {kRows, kDepth};
  for (size_t offset : {0, 1, 2, 4, 8, 12}) {
    memcpy(in + offset, x.data(), x.size() * 4);
    tare_tensor given{TARE_F32, 2, shape, in + offset, x.size() * 4}, wanted{TARE_F32, 2, shape, out + (16 - offset) % 16, kRows * kColumns * 4};
    ASSERT_EQ(tare_context_set_input(context, "x", &given, &error), TARE_OK) << error.message;
    ASSERT_EQ(tare_context_set_output(context, "y", &wanted, &error), TARE_OK) << error.message;
    memset(out, 0xff, sizeof out);
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << "offset " << offset << ": " << error.message;
    for (size_t row = 0; row < kRows; ++row)
      for (size_t column = 0; column < kColumns; ++column) {
        double sum = 0;
        for (size_t k = 0; k < kDepth; ++k) sum += double(x[row * kDepth + k]) * weight[k * kColumns + column];
        float got;
        memcpy(&got, static_cast<char *>(wanted.data) + 4 * (row * kColumns + column), 4);
        ASSERT_NEAR(got, sum, 1e-5) << offset << " at " << row << ", " << column; // numbers of 8 bits: exact in f16
      }
  }
  tare_context_destroy(context);
  tare_engine_close(opened);
}
