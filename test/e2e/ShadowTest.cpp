// The shadow run (spec 12): compile --verify and verify MODEL ENGINE. In: the engine of bert-tiny with its float64 cases, a model whose float32 arithmetic cannot follow its
// float64 reference (x + 1e8 - 1e8 in one module). Must hold: what agrees passes; what does not is exit 4 with the first diverging module and node, and no engine is left.
#include "test/support/OnnxModels.h"
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>

using namespace tare::test;

namespace {
struct Said { int code; std::string text; };
class Verify : public ::testing::Test {
protected:
  Said tare(const std::string &arguments) {
    int status = std::system((std::string(TARE_BINARY) + " " + arguments + " > '" + dir.path("said") + "' 2>&1").c_str());
    return {WEXITSTATUS(status), readFile(dir.path("said"))};
  }
  std::string cancelling() {
    OnnxModel m;
    m.input("x").output("y", 1, {"S", "4"});
    std::vector<float> identity(16);
    for (size_t i = 0; i < 4; ++i) identity[5 * i] = 1;
    m.floats("w", identity, {4, 4}), m.floats("c", {1e8f}, {1});
    m.node("MatMul", {"x", "w"}, {"p"}).set_name("/layers.0/fc/MatMul");
    m.node("Add", {"p", "c"}, {"s"}).set_name("/layers.1/shift/Add");
    m.node("Sub", {"s", "c"}, {"d"}).set_name("/layers.1/shift/Sub");
    m.node("Relu", {"d"}, {"r"}).set_name("/layers.2/act/Relu");
    m.node("MatMul", {"r", "w"}, {"y"}).set_name("/layers.3/fc/MatMul");
    return m.save(dir);
  }
  TempDir dir;
  const std::string folder = std::string(TARE_TEST_DATA) + "/bert-tiny", engine = std::string(TARE_ENGINES) + "/bert-tiny.tare";
};
} // namespace

TEST_F(Verify, AHuggingFaceFolderAndItsEngineAgree) {
  Said cases = tare("verify " + folder + " " + engine + " --golden " + folder + "/cases.npz");
  EXPECT_EQ(cases.code, 0) << cases.text;
  for (const char *name : {":a: ", ":b: ", ":c: ", ":d: "}) EXPECT_SAYS(cases.text, name);
  EXPECT_SAYS(cases.text, "violation_rate_delta 0.0000% (gate 0.1000%)");
  Said random = tare("verify " + folder + " " + engine + " --seed 5");
  EXPECT_EQ(random.code, 0) << random.text;
  EXPECT_SAYS(random.text, "random inputs, seed 6: ");
}

TEST_F(Verify, AnEngineOfOtherWeightsIsToldApart) {
  namespace fs = std::filesystem;
  fs::copy(folder, dir.path("other"), fs::copy_options::recursive);
  std::fstream weights(dir.path("other/model.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
  weights.seekp(-400000, std::ios::end); // inside an encoder layer
  for (int i = 0; i < 2000; ++i) weights.write("\x0a\xd7\x23\x3f", 4); // 0.64
  weights.close();
  Said said = tare("verify " + dir.path("other") + " " + engine);
  EXPECT_EQ(said.code, 4) << said.text;
  EXPECT_SAYS(said.text, "a fresh compile of this source has no diverging module: the engine was made from another model");
}

TEST_F(Verify, CompileWithVerifyKeepsAnEngineThatAgrees) {
  Said said = tare("compile " + folder + " -o " + dir.path("e.tare") + " --target cpu:x86-64-v3 --verify");
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_SAYS(said.text, "verified against the source: violation_rate_delta 0.0000%");
  EXPECT_EQ(tare("verify " + dir.path("e.tare")).code, 0);
}

TEST_F(Verify, TheFirstDivergingModuleAndNodeAreNamed) {
  std::string model = cancelling();
  dir.write("e.tare", "an engine of yesterday");
  Said refused = tare("compile " + model + " -o " + dir.path("e.tare") + " --target cpu:x86-64-v3 --verify --json");
  EXPECT_EQ(refused.code, 4) << refused.text;
  EXPECT_SAYS(refused.text, "the first module whose output differs is layers.1 (node /layers.1/shift/Sub)");
  EXPECT_SAYS(refused.text, "\"node\":\"/layers.1/shift/Sub\"");
  EXPECT_SAYS(refused.text, "\"file\":\"" + dir.path("e.tare") + "\"");
  EXPECT_EQ(readFile(dir.path("e.tare")), "an engine of yesterday");
  for (auto &entry : std::filesystem::directory_iterator(dir.path())) EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  ASSERT_EQ(tare("compile " + model + " -o " + dir.path("e.tare") + " --target cpu:x86-64-v3").code, 0);
  Said verified = tare("verify " + model + " " + dir.path("e.tare"));
  EXPECT_EQ(verified.code, 4) << verified.text;
  EXPECT_SAYS(verified.text, "the first module whose output differs is layers.1 (node /layers.1/shift/Sub)");
}
