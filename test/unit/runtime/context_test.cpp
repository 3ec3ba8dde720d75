// Contexts through the C API: results, defaults, caller's and misaligned buffers, every input error, profile, metrics, estimates, cancellation, signatures, levels.
#include "compiler/engine/Signing.h"
#include "test/support/TestEngine.h"
#include <chrono>
#include <thread>

using namespace tare::test;

namespace {
class ContextTest : public ::testing::Test {
protected:
  void SetUp() override {
    writeTestEngine(dir.path("e.tare"));
    open();
  }
  void open(const tare_options *options = nullptr) {
    engine = tare_engine_open(dir.path("e.tare").c_str(), options, &error);
    ASSERT_NE(engine, nullptr) << error.message;
  }
  tare_context_t *make(int threads, int profile = 0) {
    tare_context_options options{};
    options.struct_bytes = sizeof options, options.threads = threads, options.profile = profile;
    tare_context_destroy(context);
    context = tare_context_create(engine, &options, &error);
    EXPECT_NE(context, nullptr) << error.message;
    return context;
  }
  void TearDown() override {
    tare_context_destroy(context);
    tare_engine_close(engine);
  }
  tare_status setX(const std::vector<float> &x, std::vector<int64_t> shape) {
    data = x, dims = shape;
    tare_tensor t{TARE_F32, static_cast<int32_t>(dims.size()), dims.data(), data.data(), data.size() * 4};
    return tare_context_set_input(context, "x", &t, &error);
  }
  std::vector<float> output(const char *name) {
    tare_tensor t{};
    EXPECT_EQ(tare_context_get_output(context, name, &t, &error), TARE_OK) << error.message;
    auto *from = static_cast<const float *>(t.data);
    return from ? std::vector<float>(from, from + t.bytes / 4) : std::vector<float>();
  }
  std::string message() const { return error.message; }
  TempDir dir;
  tare_engine_t *engine = nullptr;
  tare_context_t *context = nullptr;
  tare_error error{};
  std::vector<float> data;
  std::vector<int64_t> dims;
};
using Fails = ContextTest;
} // namespace

TEST_F(ContextTest, RunsWithDefaultsAtChangingShapesAndThreads) {
  for (int threads : {1, 2, 3}) {
    make(threads);
    for (auto [b, s] : {std::pair{1, 1}, {2, 5}, {1, 1}, {4, 100}, {3, 0}, {0, 4}}) {
      std::vector<float> x(static_cast<size_t>(b * s));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
      ASSERT_EQ(setX(x, {b, s}), TARE_OK) << message();
      ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
      if (b * s > 0) EXPECT_EQ(output("y"), expectedY(x, {}, static_cast<size_t>(b)));
      tare_tensor t{};
      ASSERT_EQ(tare_context_get_output(context, "new_cache", &t, &error), TARE_OK);
      EXPECT_EQ(t.rank, 3);
      EXPECT_EQ(t.shape[1], s);
      EXPECT_EQ(t.dtype, TARE_F32);
    }
  }
}

TEST_F(ContextTest, GivenMaskAndCacheAreUsed) {
  make(1);
  ASSERT_EQ(setX({1, 2}, {1, 2}), TARE_OK);
  int64_t maskShape[] = {1, 3}, mask[] = {0, 1, 1}, cacheShape[] = {1, 1, 4};
  float cache[] = {50, 0, 0, 0};
  tare_tensor m{TARE_I64, 2, maskShape, mask, sizeof mask}, c{TARE_F32, 3, cacheShape, cache, sizeof cache};
  ASSERT_EQ(tare_context_set_input(context, "mask", &m, &error), TARE_OK) << message();
  ASSERT_EQ(tare_context_set_input(context, "cache", &c, &error), TARE_OK) << message();
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
  EXPECT_EQ(output("y"), (std::vector<float>{4, 12}));
  mask[0] = 1;
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
  EXPECT_EQ(output("y"), (std::vector<float>{54, 62}));
  ASSERT_EQ(tare_context_set_input(context, "mask", nullptr, &error), TARE_OK); // back to the default
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
  EXPECT_EQ(output("y"), (std::vector<float>{54, 62}));
}

TEST_F(ContextTest, CallersBuffersAlsoMisaligned) {
  make(2);
  for (size_t shift : {0, 1}) {
    std::vector<char> in(8 + 9), out(8 + 9, 'z');
    float x[2] = {3, 4};
    memcpy(in.data() + shift, x, 8);
    int64_t shape[] = {2, 1};
    tare_tensor i{TARE_F32, 2, shape, in.data() + shift, 8}, o{TARE_F32, 0, nullptr, out.data() + shift, 8};
    ASSERT_EQ(tare_context_set_input(context, "x", &i, &error), TARE_OK);
    ASSERT_EQ(tare_context_set_output(context, "y", &o, &error), TARE_OK);
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
    float y[2];
    memcpy(y, out.data() + shift, 8);
    EXPECT_EQ(y[0], 12);
    EXPECT_EQ(y[1], 16);
    EXPECT_EQ(out[8 + shift], 'z'); // nothing beyond the result
    tare_tensor got{};
    ASSERT_EQ(tare_context_get_output(context, "y", &got, &error), TARE_OK);
    EXPECT_EQ(got.data, out.data() + shift);
  }
}

TEST_F(Fails, InputErrorsNameTensorExpectedAndGiven) {
  make(1);
  EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED);
  EXPECT_EQ(message(), "input is missing (tensor 'x')");
  EXPECT_STREQ(error.tensor, "x");
  EXPECT_EQ(setX({1, 2, 3}, {3}), TARE_REFUSED);
  EXPECT_EQ(message(), "input has a wrong shape: given [3], expected [batch, sequence] (tensor 'x')");
  EXPECT_EQ(setX({1, 2}, {1, -2}), TARE_REFUSED);
  EXPECT_EQ(message(), "input has an impossible shape: dimension 1 is -2 (tensor 'x')");
  EXPECT_EQ(setX({1}, {INT64_MAX, INT64_MAX}), TARE_REFUSED);
  EXPECT_EQ(setX({1, 2}, {1, 3}), TARE_REFUSED);
  EXPECT_EQ(message(), "input buffer is too small: 8 bytes, the shape needs 12 (tensor 'x')");
  int64_t shape[] = {1, 2};
  tare_tensor t{TARE_I32, 2, shape, &shape, sizeof shape};
  EXPECT_EQ(tare_context_set_input(context, "x", &t, &error), TARE_REFUSED);
  EXPECT_EQ(message(), "input has a wrong dtype: given i32, expected f32 (tensor 'x')");
  t.dtype = static_cast<tare_dtype>(77);
  EXPECT_EQ(tare_context_set_input(context, "x", &t, &error), TARE_REFUSED);
  t.dtype = TARE_F32, t.data = nullptr;
  EXPECT_EQ(tare_context_set_input(context, "x", &t, &error), TARE_REFUSED);
  t.rank = 9;
  EXPECT_EQ(tare_context_set_input(context, "x", &t, &error), TARE_USAGE);
  t.rank = 2, t.shape = nullptr;
  EXPECT_EQ(tare_context_set_input(context, "x", &t, &error), TARE_USAGE);
  EXPECT_EQ(tare_context_set_input(context, "ids", &t, &error), TARE_REFUSED);
  EXPECT_EQ(message(), "the engine has no such input: it has: x, mask, cache (tensor 'ids')");
  EXPECT_EQ(tare_context_set_input(context, nullptr, &t, &error), TARE_USAGE);
  EXPECT_EQ(tare_context_set_input(nullptr, "x", &t, nullptr), TARE_USAGE);

  ASSERT_EQ(setX({1, 2}, {1, 2}), TARE_OK);
  int64_t mask[5] = {1, 1, 1, 1, 1}, maskShape[] = {1, 5};
  tare_tensor m{TARE_I64, 2, maskShape, mask, sizeof mask};
  ASSERT_EQ(tare_context_set_input(context, "mask", &m, &error), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED);
  EXPECT_EQ(message(), "input has a wrong shape: given [1, 5], expected [batch, past + sequence] = [1, 2] as the other inputs say (tensor 'mask')");
  ASSERT_EQ(tare_context_set_input(context, "mask", nullptr, &error), TARE_OK);
  int64_t cacheShape[] = {1, 2, 5};
  tare_tensor c{TARE_F32, 3, cacheShape, mask, sizeof mask};
  EXPECT_EQ(tare_context_set_input(context, "cache", &c, &error), TARE_REFUSED); // a constant size, known at once
  EXPECT_EQ(message(), "input has a wrong shape: given [1, 2, 5], expected [batch, past, 4] (tensor 'cache')");
  ASSERT_EQ(setX(std::vector<float>(101), {1, 101}), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED);
  EXPECT_EQ(message(), "input shapes do not fit the model: the model knows 100 positions (sequence = 101, 100 = 100)");
}

TEST_F(Fails, OutputErrors) {
  make(1);
  tare_tensor t{};
  EXPECT_EQ(tare_context_get_output(context, "y", &t, &error), TARE_USAGE);
  EXPECT_EQ(tare_context_get_output(context, "z", &t, &error), TARE_REFUSED);
  EXPECT_EQ(message(), "the engine has no such output: it has: y, new_cache (tensor 'z')");
  ASSERT_EQ(setX({1, 2, 3}, {1, 3}), TARE_OK);
  float small[2];
  tare_tensor o{TARE_F32, 0, nullptr, small, sizeof small};
  ASSERT_EQ(tare_context_set_output(context, "y", &o, &error), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED);
  EXPECT_EQ(message(), "output buffer is too small: 8 bytes, the result needs 12 (tensor 'y')");
  o.dtype = TARE_F16;
  EXPECT_EQ(tare_context_set_output(context, "y", &o, &error), TARE_REFUSED);
  ASSERT_EQ(tare_context_set_output(context, "y", nullptr, &error), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_OK) << message();
}

TEST_F(Fails, AFaultNamesTheNodeAndTheContextGoesOn) {
  make(2);
  ASSERT_EQ(setX({1, -999, 3}, {1, 3}), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED);
  EXPECT_EQ(message().rfind("index out of range: ", 0), 0u) << message();
  EXPECT_STREQ(error.step, "sum \"quoted\"");
  tare_tensor t{};
  EXPECT_EQ(tare_context_get_output(context, "y", &t, &error), TARE_USAGE);
  ASSERT_EQ(setX({1, 2, 3}, {1, 3}), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_OK) << message();
  EXPECT_EQ(output("y"), expectedY({1, 2, 3}, {}, 1));
}

TEST_F(ContextTest, CancelFromAnotherThreadAndBeforeARun) {
  make(2);
  ASSERT_EQ(setX({-777, 1}, {1, 2}), TARE_OK);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    tare_context_cancel(context);
  });
  EXPECT_EQ(tare_context_run(context, &error), TARE_CANCELLED);
  canceller.join();
  ASSERT_EQ(setX({7, 1}, {1, 2}), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_OK) << message();
  tare_context_cancel(context);
  EXPECT_EQ(tare_context_run(context, &error), TARE_CANCELLED);
  EXPECT_EQ(tare_context_run(context, &error), TARE_OK);
  tare_context_cancel(context);
  ASSERT_EQ(tare_context_reset(context), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_OK);
}

TEST_F(ContextTest, ProfileMetricsAndEstimates) {
  make(1, /*profile=*/1);
  ASSERT_EQ(setX({1, 2}, {1, 2}), TARE_OK);
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
  size_t bytes = tare_context_profile(context, nullptr, 0);
  std::string trace(bytes + 1, '?');
  EXPECT_EQ(tare_context_profile(context, trace.data(), trace.size()), bytes);
  EXPECT_EQ(trace.back(), '\0');
  EXPECT_NE(trace.find("\"name\":\"sum \\\"quoted\\\"\""), std::string::npos) << trace;
  EXPECT_NE(trace.find("\"kernel\":\"kernel_scale\""), std::string::npos);
  char few[10];
  EXPECT_EQ(tare_context_profile(context, few, sizeof few), bytes);
  EXPECT_EQ(strlen(few), 9u);
  tare_step_info step;
  ASSERT_EQ(tare_context_step_count(context), 3u);
  ASSERT_EQ(tare_context_step_info(context, 1, &step, &error), TARE_OK);
  EXPECT_STREQ(step.name, "append");
  EXPECT_GE(step.nanoseconds, 0);
  EXPECT_EQ(step.flops, 100);
  EXPECT_EQ(tare_context_step_info(context, 3, &step, &error), TARE_USAGE);
  std::string metrics(4096, '\0');
  metrics.resize(tare_context_metrics(context, metrics.data(), metrics.size()));
  EXPECT_NE(metrics.find("\ntare_runs_total 1\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("# TYPE tare_arena_bytes gauge\n"), std::string::npos);
  tare_estimate estimate;
  ASSERT_EQ(tare_context_estimate(context, &estimate, &error), TARE_OK);
  EXPECT_EQ(estimate.flops, 100);
  EXPECT_EQ(estimate.zero_rate, 0.5);
  const char *name = "x";
  int64_t shape[] = {2, 128000};
  tare_tensor t{TARE_F32, 2, shape, nullptr, 0};
  EXPECT_EQ(tare_engine_estimate(engine, &name, &t, 1, &estimate, &error), TARE_OK) << message(); // beyond the positions: an estimate all the same
  EXPECT_EQ(tare_engine_estimate(engine, nullptr, nullptr, 0, &estimate, &error), TARE_OK) << message();
}

TEST_F(ContextTest, StepsThatNoRequestedOutputNeedsAreSkipped) {
  make(2, /*profile=*/1);
  ASSERT_EQ(setX({1, 2}, {1, 2}), TARE_OK);
  auto executed = [&] {
    std::vector<int> steps;
    for (size_t i = 0; i < tare_context_step_count(context); ++i) {
      tare_step_info info;
      EXPECT_EQ(tare_context_step_info(context, i, &info, &error), TARE_OK);
      if (info.nanoseconds >= 0) steps.push_back(static_cast<int>(i));
    }
    return steps;
  };
  auto request = [&](std::vector<const char *> names) { return tare_context_request_outputs(context, names.data(), names.size(), &error); };
  tare_tensor t{};
  ASSERT_EQ(request({"new_cache"}), TARE_OK) << message();
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
  EXPECT_EQ(executed(), (std::vector<int>{0, 1}));
  EXPECT_EQ(output("new_cache").size(), 8u);
  EXPECT_EQ(tare_context_get_output(context, "y", &t, &error), TARE_USAGE);
  EXPECT_EQ(message(), "this output was not asked for, so it was not computed (tensor 'y')");
  std::string trace(tare_context_profile(context, nullptr, 0) + 1, '\0');
  tare_context_profile(context, trace.data(), trace.size());
  EXPECT_EQ(trace.find("quoted"), std::string::npos) << trace;
  EXPECT_EQ(trace.find("\"ts\":-"), std::string::npos) << trace;

  float y[2] = {0, 0}; // a caller's buffer is a request
  tare_tensor own{TARE_F32, 0, nullptr, y, sizeof y};
  ASSERT_EQ(tare_context_set_output(context, "y", &own, &error), TARE_OK);
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
  EXPECT_EQ(executed(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(y[1], 12);
  ASSERT_EQ(tare_context_set_output(context, "y", nullptr, &error), TARE_OK);

  ASSERT_EQ(request({"y"}), TARE_OK); // needs the other output as an intermediate
  EXPECT_EQ(tare_context_get_output(context, "y", &t, &error), TARE_USAGE); // not before the next run
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
  EXPECT_EQ(executed().size(), 3u);
  EXPECT_EQ(output("y"), expectedY({1, 2}, {}, 1));
  EXPECT_EQ(tare_context_get_output(context, "new_cache", &t, &error), TARE_USAGE);

  ASSERT_EQ(request({}), TARE_OK);
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
  EXPECT_EQ(output("new_cache").size(), 8u);
  EXPECT_EQ(request({"z"}), TARE_REFUSED);
  EXPECT_EQ(message(), "the engine has no such output: it has: y, new_cache (tensor 'z')");
  EXPECT_EQ(request({nullptr}), TARE_USAGE);
  EXPECT_EQ(tare_context_request_outputs(context, nullptr, 1, &error), TARE_USAGE);
}

TEST_F(ContextTest, ALinkedStateCountsAsRequested) {
  // The state's output is no operand of the last step here: only the link keeps the step that appends.
  writeTestEngine(dir.path("e.tare"), {.plan = [](tare::fb::PlanT &plan) { plan.steps[2]->buffers = {0, 1, 3}, plan.steps[2]->operand_count = 2; }, .weights = "", .signer = {}});
  tare_engine_close(engine);
  open();
  make(1, /*profile=*/1);
  const char *y = "y";
  ASSERT_EQ(tare_context_request_outputs(context, &y, 1, &error), TARE_OK);
  ASSERT_EQ(tare_context_link_state(context, "cache", "new_cache", 4, &error), TARE_OK) << message();
  for (float expected : {4.0f, 12.0f}) {
    ASSERT_EQ(setX({expected / 4 - (expected > 4)}, {1, 1}), TARE_OK);
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
    tare_step_info step;
    ASSERT_EQ(tare_context_step_info(context, 1, &step, &error), TARE_OK);
    EXPECT_GE(step.nanoseconds, 0);
    EXPECT_EQ(output("y"), std::vector<float>{expected});
  }
}

TEST_F(ContextTest, EngineTellsItsSignatureAndSections) {
  EXPECT_EQ(tare_engine_input_count(engine), 3u);
  EXPECT_EQ(tare_engine_output_count(engine), 2u);
  tare_tensor_info info;
  ASSERT_EQ(tare_engine_input_info(engine, 1, &info, &error), TARE_OK);
  EXPECT_STREQ(info.name, "mask");
  EXPECT_EQ(info.dtype, TARE_I64);
  EXPECT_STREQ(info.dims[1], "past + sequence");
  EXPECT_TRUE(info.optional);
  EXPECT_STREQ(info.default_kind, "ones");
  EXPECT_EQ(tare_engine_output_info(engine, 2, &info, &error), TARE_USAGE);
  const void *section;
  size_t bytes;
  ASSERT_TRUE(tare_engine_section(engine, "configuration", &section, &bytes));
  EXPECT_EQ(std::string(static_cast<const char *>(section), bytes), "pruned_layers: [layers.1.pos_enc]\n");
  EXPECT_FALSE(tare_engine_section(engine, "report", &section, &bytes));
  EXPECT_EQ(tare_engine_verify(engine, &error), TARE_OK);
  EXPECT_STREQ(tare_engine_level(engine), "x86-64-v3");
}

TEST_F(ContextTest, AnEngineWithoutCodeForThisCpuCanBeReadButNotRun) {
  tare_options options{};
  options.struct_bytes = sizeof options, options.max_level = "none";
  tare_engine_close(engine);
  open(&options);
  EXPECT_STREQ(tare_engine_level(engine), "");
  EXPECT_EQ(tare_engine_verify(engine, &error), TARE_OK);
  EXPECT_EQ(tare_context_create(engine, nullptr, &error), nullptr);
  EXPECT_EQ(error.code, TARE_ENVIRONMENT);
  EXPECT_NE(message().find("the engine has code for x86-64-v3; this CPU runs none"), std::string::npos) << message();
  options.max_level = "quantum";
  EXPECT_EQ(tare_engine_open(dir.path("e.tare").c_str(), &options, &error), nullptr);
  EXPECT_EQ(error.code, TARE_USAGE);
}

TEST_F(ContextTest, TheContextKeepsTheEngineAlive) {
  make(1);
  tare_engine_close(engine);
  engine = nullptr;
  ASSERT_EQ(setX({5}, {1, 1}), TARE_OK);
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
  EXPECT_EQ(output("y"), std::vector<float>{20});
}

TEST_F(ContextTest, CallersThreadPool) {
  tare_context_options options{};
  options.struct_bytes = sizeof options, options.threads = 3;
  int calls = 0;
  options.parallel_user = &calls;
  options.parallel = [](void *user, int threads, void (*body)(void *, int), void *argument) {
    ++*static_cast<int *>(user);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back(body, argument, i);
    for (auto &t : all) t.join();
  };
  context = tare_context_create(engine, &options, &error);
  ASSERT_NE(context, nullptr);
  std::vector<float> x(300, 1);
  ASSERT_EQ(setX(x, {3, 100}), TARE_OK);
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << message();
  EXPECT_EQ(output("y"), expectedY(x, {}, 3));
  EXPECT_EQ(calls, 1);
  options.threads = 1000;
  EXPECT_EQ(tare_context_create(engine, &options, &error), nullptr);
  EXPECT_EQ(error.code, TARE_USAGE);
}

TEST_F(ContextTest, FromMemoryAlignedAndNot) {
  std::string bytes = readFile(dir.path("e.tare"));
  for (size_t shift : {0, 1, 64}) {
    std::vector<char> copy(bytes.size() + 200);
    char *base = copy.data() + (64 - reinterpret_cast<uintptr_t>(copy.data()) % 64) + shift;
    memcpy(base, bytes.data(), bytes.size());
    tare_engine_close(engine);
    engine = tare_engine_open_memory(base, bytes.size(), nullptr, &error);
    ASSERT_NE(engine, nullptr) << message();
    make(1);
    ASSERT_EQ(setX({5}, {1, 1}), TARE_OK);
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
    EXPECT_EQ(output("y"), std::vector<float>{20});
    tare_context_destroy(context);
    context = nullptr;
    tare_engine_close(engine);
    engine = nullptr;
  }
}

TEST_F(ContextTest, SignedEngines) {
  // RFC 8032, test 1: seed and public key.
  std::string seed = dir.write("key.hex", "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n");
  std::string publicPath = dir.write("pub.hex", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  auto signer = tare::readSigningKey(seed);
  ASSERT_TRUE(static_cast<bool>(signer)) << llvm::toString(signer.takeError());
  auto key = tare::readPublicKey(publicPath);
  ASSERT_TRUE(static_cast<bool>(key));
  EXPECT_EQ((*signer)("").substr(0, 32), *key);
  writeTestEngine(dir.path("signed.tare"), {nullptr, "", *signer});
  tare_options options{};
  options.struct_bytes = sizeof options, options.verify_signature = tare::checkSignature, options.verify_user = &*key;
  auto opens = [&](const std::string &path) {
    tare_engine_t *e = tare_engine_open(path.c_str(), &options, &error);
    tare_engine_close(e);
    return e != nullptr;
  };
  EXPECT_TRUE(opens(dir.path("signed.tare"))) << message();
  EXPECT_FALSE(opens(dir.path("e.tare")));
  EXPECT_EQ(error.code, TARE_VERIFICATION);
  std::string other(32, 'k');
  options.verify_user = &other;
  EXPECT_FALSE(opens(dir.path("signed.tare")));
  EXPECT_EQ(error.code, TARE_VERIFICATION);
  options.verify_user = &*key;
  // A forger who changes the configuration and makes all hashes right again cannot make the signature right.
  std::string forged = readFile(dir.path("signed.tare"));
  for (uint32_t i = 0; i < header(forged).sectionCount; ++i) {
    auto &entry = table(forged)[i];
    if (entry.kind != static_cast<uint32_t>(tare::format::SectionKind::Configuration)) continue;
    forged[entry.offset] ^= 1;
    tare::Sha256::of(forged.data() + entry.offset, entry.bytes, entry.hash);
  }
  rehashHeader(forged);
  EXPECT_FALSE(opens(dir.write("forged.tare", forged)));
  EXPECT_EQ(error.code, TARE_VERIFICATION) << message();
  EXPECT_EQ(messageOf(tare::readPublicKey(seed + "x")).rfind("cannot read the key", 0), 0u);
  EXPECT_EQ(messageOf(tare::readSigningKey(dir.write("bad", "hello"))), "not an Ed25519 private key");
}
