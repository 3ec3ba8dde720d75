// Node names of a model in the comments of its CUDA text: whatever they hold, the text compiles to the same kernels, and its comments show the name and nothing else.
// In: a chain of linear layers whose names try to leave their comment. Oracle: the same chain with plain names. Must hold: equal results, one comment line per node.
#include "test/support/EngineRunner.h"
#include "test/support/OnnxModels.h"

using namespace tare;
using namespace tare::test;

namespace {
const std::vector<std::string> kHostile = {"/line\n#error left", "/return\r#error left", "/star*/ int x; /*", "/continued\\", "/trigraph??/", "/right\u202eto left", "/isolate\u2066d\u2069",
                                           "/mark\u061c\u200e", "/separator\u2028#error", "/next\xc2\x85#error", "@NODES@", "@BODY@", "@NAME@ @PARAMETERS@", "#include \"kernels/cuda/none.cuh\"",
                                           "//==== other", "/tab\t\x01\x7f", "/plain é 层", std::string(3000, 'n')};

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> v(count);
  for (float &f : v) seed = seed * 1664525 + 1013904223, f = static_cast<float>(static_cast<int>(seed >> 24) - 128) / 1024;
  return v;
}
std::string output(const std::string &command) {
  FILE *pipe = popen((std::string(TARE_BINARY) + " " + command).c_str(), "r");
  std::string text;
  for (char part[4096]; size_t n = fread(part, 1, sizeof part, pipe);) text.append(part, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

class CudaNames : public ::testing::Test {
protected:
  /// An engine of the chain, each layer under its name.
  std::string compiled(const std::string &file, const std::vector<std::string> &names, const std::string &target) {
    OnnxModel m;
    m.input("x", 1, {"S", "32"}).output("y", 1, {"S", "32"});
    for (size_t i = 0; i < names.size(); ++i) {
      std::string from = i ? "v" + std::to_string(i) : "x", to = i + 1 < names.size() ? "v" + std::to_string(i + 1) : "y", weight = "w" + std::to_string(i);
      m.floats(weight, numbers(32 * 32, static_cast<uint32_t>(i)), {32, 32});
      m.node("MatMul", {from, weight}, {to}).set_name(names[i]);
    }
    std::string engine = dir.path(file + ".tare"), model = m.save(dir, file + ".onnx");
    EXPECT_EQ(output("compile " + model + " -o " + engine + " --target " + target + " --quiet"), "");
    return engine;
  }
  TempDir dir;
};
} // namespace

TEST_F(CudaNames, StayInTheirComments) {
  std::vector<std::string> plain;
  for (size_t i = 0; i < kHostile.size(); ++i) plain.push_back("/layer" + std::to_string(i));
  std::string hostile = compiled("hostile", kHostile, "cuda-emu"), tame = compiled("plain", plain, "cuda-emu");
  Array x{1, {3, 32}, std::string(reinterpret_cast<const char *>(numbers(96, 99).data()), 96 * 4)};
  EngineRunner odd(hostile), wanted(tame);
  ArrayMap got = odd.run({{"x", x}}), expected = wanted.run({{"x", x}});
  ASSERT_TRUE(got.count("y")) << odd.error.message;
  EXPECT_EQ(got["y"].bytes, expected["y"].bytes);

  std::string source = "inspect --kernels --source gemm_f32_32x32 ", text = output(source + hostile), tameText = output(source + tame);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::count(tameText.begin(), tameText.end(), '\n'));
  size_t comments = 0;
  for (size_t at = 0; (at = text.find("\n// runs as ", at)) != std::string::npos; ++at) ++comments;
  EXPECT_EQ(comments, kHostile.size());
  for (const char *hidden : {"\r", "\\", "??/", "\u202e", "\u2066", "\u061c", "\u2028", "\xc2\x85", "\x01", "\t"}) EXPECT_EQ(text.find(hidden), std::string::npos) << hidden;
  for (const char *shown : {"// runs as /star*/ int x; /*\n", "// runs as @NODES@\n", "// runs as @BODY@\n", "// runs as /plain é 层\n", "// runs as /right_to left\n", "// runs as /line_#error left\n"})
    EXPECT_NE(text.find(shown), std::string::npos) << shown;
}

TEST_F(CudaNames, CompileForGpus) {
  setenv("TARE_NVRTC", "none", 1), setenv("TARE_NVCC", "none", 1); // clang-19 is on every machine that builds this
  std::string engine = compiled("gpu", kHostile, "cuda:sm_80");
  EXPECT_NE(output("inspect --kernels --source gemm_f32_32x32 " + engine).find("// runs as @BODY@\n"), std::string::npos);
}
