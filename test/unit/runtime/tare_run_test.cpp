// The tare-run binary from outside: results, profile, metrics, exit codes, --json errors, nothing written on failure. And the C++ wrapper.
#include "compiler/import/Npz.h"
#include "runtime/tare.hpp"
#include "test/support/TestEngine.h"
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace tare;
using namespace tare::test;

namespace {
struct Ran { int code; std::string out, err; };
Ran tareRun(const TempDir &dir, const std::string &arguments) {
  std::string command = std::string(TARE_RUN) + " " + arguments + " >" + dir.path("out") + " 2>" + dir.path("err");
  int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readFile(dir.path("out")), readFile(dir.path("err"))};
}
Array floats(std::vector<int64_t> shape, const std::vector<float> &values) { return {1, std::move(shape), std::string(reinterpret_cast<const char *>(values.data()), values.size() * 4)}; }
void write(const TempDir &dir, const std::string &name, const ArrayMap &arrays) { ASSERT_FALSE(static_cast<bool>(writeNpz(dir.path(name), arrays))); }
} // namespace

TEST(TareRun, ResultsProfileAndMetrics) {
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  write(dir, "in.npz", {{"x", floats({1, 3}, {1, 2, 3})}});
  Ran ran = tareRun(dir, dir.path("e.tare") + " --inputs " + dir.path("in.npz") + " --outputs " + dir.path("out.npz") + " --threads 2 --profile " + dir.path("p.json") + " --metrics " + dir.path("m.txt") + " --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto summary = nlohmann::json::parse(ran.out);
  EXPECT_EQ(summary["outputs"]["y"]["shape"], nlohmann::json({1, 3}));
  EXPECT_EQ(summary["compute_estimation"]["pruned"]["flops"], 100);
  auto results = readNpz(dir.path("out.npz"));
  ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
  EXPECT_EQ(results->at("y").bytes, floats({1, 3}, expectedY({1, 2, 3}, {}, 1)).bytes);
  EXPECT_EQ(results->at("new_cache").shape, (std::vector<int64_t>{1, 3, 4}));
  auto trace = nlohmann::json::parse(readFile(dir.path("p.json")));
  EXPECT_EQ(trace["traceEvents"][1]["name"], "scale");
  EXPECT_NE(readFile(dir.path("m.txt")).find("tare_runs_total 1"), std::string::npos);
}

TEST(TareRun, ErrorsHaveTheirExitCodeAndWriteNothing) {
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  int64_t one = 1;
  write(dir, "missing.npz", {{"mask", {7, {1, 1}, std::string(reinterpret_cast<const char *>(&one), 8)}}});
  write(dir, "extra.npz", {{"x", floats({1, 1}, {1})}, {"ids", floats({1}, {1})}});
  write(dir, "shape.npz", {{"x", floats({3}, {1, 2, 3})}});
  write(dir, "fault.npz", {{"x", floats({1, 1}, {-999})}});
  write(dir, "good.npz", {{"x", floats({1, 1}, {1})}});
  std::string cut = readFile(dir.path("e.tare"));
  dir.write("cut.tare", cut.substr(0, cut.size() - 1));
  dir.write("m.onnx", std::string("\x08\x08\x12\x07pytorch", 11));
  dir.write("key", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  struct { std::string engine, arguments; int code; const char *says; } cases[] = {
      {"e.tare", "--inputs " + dir.path("missing.npz"), 3, "input is missing (tensor 'x')"},
      {"e.tare", "--inputs " + dir.path("extra.npz"), 3, "the engine has no such input: it has: x, mask, cache (tensor 'ids')"},
      {"e.tare", "--inputs " + dir.path("shape.npz"), 3, "given [3], expected [batch, sequence]"},
      {"e.tare", "--inputs " + dir.path("fault.npz"), 3, "index out of range"},
      {"e.tare", "--inputs " + dir.path("none.npz"), 6, ""},
      {"cut.tare", "--inputs " + dir.path("good.npz"), 3, "engine is cut off"},
      {"m.onnx", "--inputs " + dir.path("good.npz"), 3, "it looks like an ONNX model"},
      {"none.tare", "--inputs " + dir.path("good.npz"), 6, "No such file or directory"},
      {"e.tare", "--inputs " + dir.path("good.npz") + " --max-level none", 5, "no machine code for this CPU"},
      {"e.tare", "--inputs " + dir.path("good.npz") + " --max-level fast", 2, "unknown CPU level"},
      {"e.tare", "--inputs " + dir.path("good.npz") + " --public-key " + dir.path("key"), 4, "engine is not signed"},
      {"e.tare", "--inputs " + dir.path("good.npz") + " --threads 1000", 2, "threads"},
      {"e.tare", "--inputs " + dir.path("good.npz") + " --profile " + dir.path("good.npz"), 2, "--profile would overwrite the file of --inputs"},
      {"e.tare", "--inputs " + dir.path("good.npz") + " --metrics " + dir.path("./e.tare"), 2, "--metrics would overwrite the file of ENGINE"},
      {"e.tare", "--inputs " + dir.path("good.npz") + " --metrics " + dir.path("out.npz"), 2, "--metrics would overwrite the file of --outputs"},
      {"e.tare", "--inputs ''", 2, "--inputs is empty"},
      {"e.tare", "--inputz", 2, ""}};
  for (auto &c : cases)
    for (bool json : {false, true}) {
      Ran ran = tareRun(dir, dir.path(c.engine) + " " + c.arguments + " --outputs " + dir.path("out.npz") + (json ? " --json" : ""));
      EXPECT_EQ(ran.code, c.code) << c.arguments << ran.err << ran.out;
      EXPECT_FALSE(std::filesystem::exists(dir.path("out.npz")));
      if (!json) {
        EXPECT_NE(ran.err.find(c.says), std::string::npos) << ran.err;
        EXPECT_EQ(ran.out, "");
        continue;
      }
      auto object = nlohmann::json::parse(ran.out, nullptr, false);
      ASSERT_TRUE(object.is_object() && object.contains("error")) << ran.out;
      EXPECT_EQ(object["error"]["code"], c.code);
      EXPECT_NE(object["error"]["message"].get<std::string>().find(c.says), std::string::npos) << ran.out;
    }
  Ran help = tareRun(dir, "--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--inputs"), std::string::npos);
}

TEST(CppWrapper, RunsAndThrowsFailures) {
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  api::Engine engine(dir.path("e.tare"));
  EXPECT_EQ(engine.inputs()[1].default_kind, std::string("ones"));
  EXPECT_EQ(engine.section("configuration"), "pruned_layers: [layers.1.pos_enc]\n");
  engine.verify();
  api::Context context(engine);
  std::vector<float> x = {1, 2};
  context.setInput("x", x, {1, 2});
  context.run();
  tare_tensor y = context.output("y");
  EXPECT_EQ(static_cast<float *>(y.data)[1], 12);
  EXPECT_EQ(context.estimate().flops, 100);
  EXPECT_FALSE(context.metrics().empty());
  try {
    context.setInput("x", x, {2});
    FAIL();
  } catch (const api::Failure &failure) {
    EXPECT_EQ(failure.code, TARE_REFUSED);
    EXPECT_EQ(failure.tensor, "x");
  }
  EXPECT_THROW(api::Engine(dir.path("none")), api::Failure);
}
