// Contexts on a GPU, through the C API and the fake driver, whose launches run the kernels' text on the emulator: results, order of calls, graphs, linked states,
// faults, cancellation, profile, threads, memory. Which driver, device and image are taken, and every call failing once, are in cuda_errors_test.cpp.
#include "test/support/CudaTestEngine.h"
#include "test/support/FakeCuda.h"
#include <algorithm>
#include <chrono>
#include <thread>

using namespace tare::test;

namespace {
class Cuda : public FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    fake->kernels(TARE_HOST_KERNELS);
    writeCudaEngine(dir.path("e.tare"));
    engine = tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error);
    ASSERT_NE(engine, nullptr) << error.message;
  }
  void TearDown() override {
    tare_context_destroy(context);
    tare_engine_close(engine);
    FakeCudaTest::TearDown();
  }
  tare_context_t *make(int profile = 0) {
    tare_context_options options{};
    options.struct_bytes = sizeof options, options.profile = profile;
    tare_context_destroy(context);
    context = tare_context_create(engine, &options, &error);
    EXPECT_NE(context, nullptr) << error.message;
    return context;
  }
  tare_status setX(tare_context_t *c, const std::vector<float> &x, std::vector<int64_t> shape) {
    data = x, dims = shape;
    tare_tensor t{TARE_F32, 2, dims.data(), data.data(), data.size() * 4};
    return tare_context_set_input(c, "x", &t, &error);
  }
  std::vector<float> output(const char *name) {
    tare_tensor t{};
    EXPECT_EQ(tare_context_get_output(context, name, &t, &error), TARE_OK) << error.message;
    auto *from = static_cast<const float *>(t.data);
    return from ? std::vector<float>(from, from + t.bytes / 4) : std::vector<float>();
  }
  std::vector<float> runOn(const std::vector<float> &x, std::vector<int64_t> shape) {
    EXPECT_EQ(setX(context, x, shape), TARE_OK) << error.message;
    EXPECT_EQ(tare_context_run(context, &error), TARE_OK) << error.message;
    return output("y");
  }
  static std::vector<float> numbers(size_t n, int from = 0) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>((i + static_cast<size_t>(from)) % 7);
    return x;
  }
  /// The calls since the last reset, without making the context current.
  std::vector<std::string> calls() {
    std::vector<std::string> lines;
    for (auto &line : log())
      if (line.compare(0, 5, "cuCtx") != 0) lines.push_back(line);
    fake->reset();
    fake->kernels(TARE_HOST_KERNELS);
    return lines;
  }
  TempDir dir;
  tare_engine_t *engine = nullptr;
  tare_context_t *context = nullptr;
  tare_error error{};
  std::vector<float> data;
  std::vector<int64_t> dims;
};
using Lines = std::vector<std::string>;
} // namespace

TEST_F(Cuda, RunsAtChangingShapes) {
  EXPECT_STREQ(tare_engine_level(engine), "cuda:sm_90");
  make();
  for (auto [b, s] : {std::pair{1, 1}, {2, 5}, {2, 5}, {2, 5}, {2, 5}, {1, 1}, {4, 90}, {3, 0}, {0, 4}, {2, 5}}) {
    std::vector<float> x = numbers(static_cast<size_t>(b * s), b);
    EXPECT_EQ(runOn(x, {b, s}), b * s ? expectedY(x, {}, static_cast<size_t>(b)) : std::vector<float>()) << b << " x " << s;
  }
}

TEST_F(Cuda, TheCallersBuffersMayBeMisaligned) {
  make();
  std::vector<char> in(4 * 6 + 1), out(4 * 6 + 3);
  std::vector<float> x = numbers(6);
  memcpy(in.data() + 1, x.data(), 24);
  int64_t shape[2] = {2, 3};
  tare_tensor xin{TARE_F32, 2, shape, in.data() + 1, 24}, yout{TARE_F32, 2, shape, out.data() + 3, 24};
  ASSERT_EQ(tare_context_set_input(context, "x", &xin, &error), TARE_OK);
  ASSERT_EQ(tare_context_set_output(context, "y", &yout, &error), TARE_OK);
  for (int repeat = 0; repeat < 3; ++repeat) {
    memset(out.data(), 0, out.size());
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << error.message;
    std::vector<float> y(6);
    memcpy(y.data(), out.data() + 3, 24);
    EXPECT_EQ(y, expectedY(x, {}, 2));
  }
  yout.bytes = 20;
  ASSERT_EQ(tare_context_set_output(context, "y", &yout, &error), TARE_OK);
  EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED);
}

TEST_F(Cuda, OrderOfCalls) {
  EXPECT_EQ(calls(), (Lines{"cuDriverGetVersion", "cuInit", "cuDeviceGetCount", "cuDeviceGet 0", "cuDeviceGetName", "cuDeviceGetAttribute 75", "cuDeviceGetAttribute 76"}));
  make();
  EXPECT_EQ(calls(), (Lines{"cuDevicePrimaryCtxRetain", "cuModuleLoadDataEx", "cuModuleGetFunction scale", "cuModuleLoadDataEx", "cuModuleGetFunction keep", "cuModuleLoadDataEx",
                            "cuModuleGetFunction append", "cuFuncSetAttribute 8 61440", "cuModuleLoadDataEx", "cuModuleGetFunction sum", "cuMemAlloc 16", "cuMemcpyHtoD 16",
                            "cuStreamSynchronize 0", "cuStreamCreate"}));
  std::vector<float> x = numbers(10);
  runOn(x, {2, 5});
  // In: x 40, mask 80, no cache, rows and bits of no check, fault 8; out: y 40, new_cache 160 bytes; each from a multiple of 256 on.
  EXPECT_EQ(calls(), (Lines{"cuMemHostAlloc 1280", "cuMemAlloc 1280", "cuMemAlloc 64", "cuMemcpyHtoDAsync 768", "cuLaunchKernel scale", "cuLaunchKernel keep", "cuLaunchKernel append",
                            "cuLaunchKernel sum", "cuMemcpyDtoHAsync 768", "cuStreamSynchronize"}));
  runOn(x, {2, 5}); // the same again: worth a graph
  EXPECT_EQ(calls(), (Lines{"cuStreamBeginCapture", "cuMemcpyHtoDAsync 768", "cuLaunchKernel scale", "cuStreamGetCaptureInfo", "cuLaunchKernel keep", "cuStreamGetCaptureInfo",
                            "cuLaunchKernel append", "cuStreamGetCaptureInfo", "cuLaunchKernel sum", "cuStreamGetCaptureInfo", "cuMemcpyDtoHAsync 768", "cuStreamEndCapture",
                            "cuGraphInstantiate", "cuGraphLaunch", "cuStreamSynchronize"}));
  x = numbers(10, 3);
  EXPECT_EQ(runOn(x, {2, 5}), expectedY(x, {}, 2));
  EXPECT_EQ(calls(), (Lines{"cuGraphLaunch", "cuStreamSynchronize"}));
  tare_context_destroy(context), context = nullptr;
  EXPECT_EQ(calls(), (Lines{"cuGraphExecDestroy", "cuGraphDestroy", "cuStreamDestroy", "cuMemFree", "cuMemFree", "cuMemFreeHost"}));
  tare_engine_close(engine), engine = nullptr;
  EXPECT_EQ(calls(), (Lines{"cuMemFree", "cuModuleUnload", "cuModuleUnload", "cuModuleUnload", "cuModuleUnload", "cuDevicePrimaryCtxRelease"}));
}

TEST_F(Cuda, ALinkedStateGrowsInPlace) { // token by token: sizes are parameters, so one graph serves them all
  make();
  ASSERT_EQ(tare_context_link_state(context, "cache", "new_cache", 30, &error), TARE_OK) << error.message;
  for (int request = 0; request < 2; ++request) {
    std::vector<float> past;
    for (size_t chunk : {1, 1, 1, 1, 5, 1, 3, 3, 3}) {
      std::vector<float> x = numbers(chunk, static_cast<int>(past.size()));
      EXPECT_EQ(runOn(x, {1, static_cast<int64_t>(chunk)}), expectedY(x, past, 1)) << past.size();
      past.insert(past.end(), x.begin(), x.end());
    }
    setX(context, numbers(20), {1, 20});
    EXPECT_EQ(tare_context_run(context, &error), TARE_LIMIT) << error.message;
    EXPECT_EQ(tare_context_reset(context), TARE_OK);
  }
  EXPECT_GT(count("cuGraphLaunch"), 10u);
  EXPECT_GT(count("cuGraphExecKernelNodeSetParams sum"), 5u);
  EXPECT_EQ(count("cuGraphExecKernelNodeSetParams scale"), 7u); // its parameters change only when the chunk does
}

TEST_F(Cuda, AnchorsAndListedRowsReachTheKernels) { // one check, whose step has a launch that takes both forms of what a run evaluates
  tare_engine_close(engine);
  writeCudaEngine(dir.path("checked.tare"), {"sm_90"}, false, [](tare::fb::PlanT &plan) {
    using Kind = tare::fb::CudaArgumentKind;
    auto dim = std::make_unique<tare::fb::DimProgramT>();
    dim->code = {kSymbol, static_cast<int64_t>(plan.symbols.size())}, dim->text = "anchors";
    plan.symbols.push_back("anchors"), plan.dims.push_back(std::move(dim));
    auto input = std::make_unique<tare::fb::TensorT>();
    input->name = "anchors", input->dtype = tare::fb::DType::I32, input->dims = {0, static_cast<uint32_t>(plan.dims.size() - 1)}, input->optional = true, input->default_kind = "empty";
    plan.inputs.push_back(std::move(input));
    auto buffer = std::make_unique<tare::fb::BufferT>();
    buffer->kind = tare::fb::BufferKind::Check, buffer->tensor = 0;
    plan.buffers.push_back(std::move(buffer));
    plan.checks = std::make_unique<tare::fb::ChecksT>();
    plan.checks->anchors = 3, plan.checks->mask = 1, plan.checks->batch = 0, plan.checks->tokens = 1, plan.checks->past = 2, plan.checks->window = 2;
    plan.checks->items.push_back(std::make_unique<tare::fb::CheckT>());
    plan.checks->items[0]->heads = 3, plan.checks->items[0]->precision = "int4";
    plan.steps[0]->buffers = {0, 5, static_cast<uint32_t>(plan.buffers.size() - 1), 6}, plan.steps[0]->operand_count = 3;
    plan.cuda->launches[0]->arguments[2] = {Kind::Buffer, 3}; // t
    auto kernel = std::make_unique<tare::fb::CudaKernelT>(*plan.cuda->kernels[0]);
    auto launch = std::make_unique<tare::fb::CudaLaunchT>(*plan.cuda->launches[0]);
    kernel->name = "windows", launch->kernel = static_cast<uint32_t>(plan.cuda->kernels.size());
    launch->arguments = {{Kind::Anchors, 2}, {Kind::Check, 2}, {Kind::Buffer, 3}, {Kind::Dim, 0}, {Kind::Dim, 1}};
    plan.cuda->kernels.push_back(std::move(kernel)), plan.cuda->launches.insert(plan.cuda->launches.begin() + 1, std::move(launch));
  });
  engine = tare_engine_open(dir.path("checked.tare").c_str(), nullptr, &error);
  ASSERT_NE(engine, nullptr) << error.message;
  make();
  ASSERT_EQ(tare_context_link_state(context, "cache", "new_cache", 40, &error), TARE_OK) << error.message;
  // Two batch elements in chunks; anchors in any order, twice, padded, behind the end. Evaluated: the first token, and two before each anchor.
  const std::vector<int32_t> near = {9, 3, -1, 9, 4, 30, 1, -1};
  const int64_t anchorShape[2] = {2, 4};
  const std::vector<std::vector<int64_t>> evaluated = {{0, 1, 2, 7, 8}, {0, 2, 3, 28, 29}};
  for (bool given : {true, false}) {
    std::vector<float> total(2, 0.0f);
    uint32_t runs = 0;
    for (int64_t past = 0; past < 32;) {
      const int64_t chunk = past < 4 ? 1 : past < 20 ? 8 : 4;
      tare_tensor anchors{TARE_I32, 2, anchorShape, const_cast<int32_t *>(near.data()), near.size() * 4};
      if (given) ASSERT_EQ(tare_context_set_input(context, "anchors", &anchors, &error), TARE_OK) << error.message;
      const std::vector<float> x = numbers(static_cast<size_t>(2 * chunk), static_cast<int>(past));
      const std::vector<float> y = runOn(x, {2, chunk});
      ASSERT_EQ(y.size(), x.size());
      for (size_t b = 0; b < 2; ++b) {
        for (int64_t s = 0; s < chunk; ++s) {
          const size_t row = b * static_cast<size_t>(chunk) + static_cast<size_t>(s);
          const bool isEvaluated = !given || std::find(evaluated[b].begin(), evaluated[b].end(), past + s) != evaluated[b].end();
          total[b] += (x[row] * kWeights[0] + (isEvaluated ? 4000.0f : 0.0f)) * kWeights[0];
          EXPECT_EQ(y[row], total[b]) << "element " << b << " at " << past + s;
        }
        uint32_t word = 0;
        EXPECT_EQ(tare_context_check_bits(context, 0, b, &word, &error), TARE_OK) << error.message;
        EXPECT_EQ(word, runs + 1) << "bits are carried from run to run";
      }
      past += chunk, ++runs;
    }
    EXPECT_EQ(tare_context_reset(context), TARE_OK);
    EXPECT_EQ(tare_context_set_input(context, "anchors", nullptr, &error), TARE_OK) << error.message;
  }
  EXPECT_GT(count("cuGraphLaunch"), 6u);
}

TEST_F(Cuda, ADriverThatRefusesGraphsIsAskedOnce) {
  struct { const char *call; int code; } refusals[] = {{"cuStreamBeginCapture", 801}, {"cuStreamBeginCapture", 800}, {"cuStreamGetCaptureInfo", 900}, {"cuStreamEndCapture", 901},
                                                       {"cuGraphInstantiate", 801},   {"cuGraphInstantiate", 2},     {"cuGraphExecKernelNodeSetParams", 910}, {"cuGraphLaunch", 2}};
  for (auto &[call, code] : refusals) {
    fake->reset();
    fake->kernels(TARE_HOST_KERNELS);
    fake->refuse(call, code);
    make();
    ASSERT_EQ(tare_context_link_state(context, "cache", "new_cache", 30, &error), TARE_OK) << error.message;
    std::vector<float> past;
    for (size_t chunk : {2, 2, 2, 2, 5, 2, 2}) {
      std::vector<float> x = numbers(chunk, static_cast<int>(past.size()));
      EXPECT_EQ(runOn(x, {1, static_cast<int64_t>(chunk)}), expectedY(x, past, 1)) << call << " after " << past.size();
      past.insert(past.end(), x.begin(), x.end());
    }
    EXPECT_EQ(count(call), 1u) << call;
    EXPECT_LE(count("cuStreamBeginCapture"), 1u) << call;
    std::string metrics(tare_context_metrics(context, nullptr, 0) + 1, ' ');
    tare_context_metrics(context, metrics.data(), metrics.size());
    EXPECT_NE(metrics.find("\ntare_cuda_graph_refusal " + std::to_string(code) + "\n"), std::string::npos) << call << "\n" << metrics;
    tare_context_destroy(context), context = nullptr;
    EXPECT_STREQ(fake->wrong(), "") << call;
  }
}

TEST_F(Cuda, AFailedGraphLaunchIsAnError) { // not a refusal: nobody knows what the device did
  make();
  for (int i = 0; i < 2; ++i) runOn(numbers(4), {1, 4});
  fake->refuse("cuGraphLaunch", 719);
  setX(context, numbers(4), {1, 4});
  EXPECT_EQ(tare_context_run(context, &error), TARE_INTERNAL);
  EXPECT_NE(std::string(error.message).find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos) << error.message;
}

TEST_F(Cuda, OnlyWhatIsAskedForIsLaunched) {
  make();
  const char *names[] = {"new_cache"};
  ASSERT_EQ(tare_context_request_outputs(context, names, 1, &error), TARE_OK);
  setX(context, numbers(10), {2, 5});
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << error.message;
  EXPECT_EQ(output("new_cache")[4], 1 * 2 * 2);
  EXPECT_EQ(count("cuLaunchKernel sum"), 0u);
  EXPECT_EQ(fake->launches(), 9);
  ASSERT_EQ(tare_context_request_outputs(context, nullptr, 0, &error), TARE_OK);
  EXPECT_EQ(runOn(numbers(10), {2, 5}), expectedY(numbers(10), {}, 2));
}

TEST_F(Cuda, AFaultNamesItsStepAndTheContextGoesOn) {
  make();
  for (int i = 0; i < 4; ++i) { // launched, captured, from the graph
    setX(context, {1, -999}, {1, 2});
    EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED);
    EXPECT_STREQ(error.step, "sum \"quoted\"");
    EXPECT_NE(std::string(error.message).find("index out of range"), std::string::npos) << error.message;
    EXPECT_EQ(runOn({1, 2}, {1, 2}), expectedY({1, 2}, {}, 1));
  }
}

TEST_F(Cuda, Cancellation) {
  make();
  setX(context, {1}, {1, 1});
  tare_context_cancel(context);
  EXPECT_EQ(tare_context_run(context, &error), TARE_CANCELLED);
  EXPECT_EQ(fake->launches(), 0);
  EXPECT_EQ(tare_context_run(context, &error), TARE_OK);
  setX(context, {-777}, {1, 1}); // slow
  std::thread canceller([&] {
    while (fake->launches() < 5) std::this_thread::yield();
    tare_context_cancel(context);
  });
  EXPECT_EQ(tare_context_run(context, &error), TARE_CANCELLED);
  canceller.join();
  EXPECT_EQ(runOn({3}, {1, 1}), expectedY({3}, {}, 1));
}

TEST_F(Cuda, TheProfileTimesEveryStep) {
  make(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(runOn(numbers(10), {2, 5}), expectedY(numbers(10), {}, 2));
  EXPECT_EQ(count("cuGraphLaunch"), 0u);
  for (size_t step = 0; step < 3; ++step) {
    tare_step_info info;
    ASSERT_EQ(tare_context_step_info(context, step, &info, &error), TARE_OK);
    EXPECT_GE(info.nanoseconds, 0) << info.name;
    EXPECT_LT(info.nanoseconds, 60ll * 1000000000) << info.name;
  }
}

TEST_F(Cuda, ContextsOnTwoThreadsShareWeightsAndNothingElse) {
  std::thread threads[2];
  bool good[2] = {false, false};
  for (int t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      tare_error own{};
      tare_context_t *c = tare_context_create(engine, nullptr, &own);
      bool ok = c && tare_context_link_state(c, "cache", "new_cache", 25, &own) == TARE_OK;
      std::vector<float> past;
      for (int i = 0; ok && i < 25; ++i) {
        float x = static_cast<float>(i * (t + 1) % 11);
        int64_t shape[2] = {1, 1};
        tare_tensor in{TARE_F32, 2, shape, &x, 4}, out{};
        ok = tare_context_set_input(c, "x", &in, &own) == TARE_OK && tare_context_run(c, &own) == TARE_OK && tare_context_get_output(c, "y", &out, &own) == TARE_OK &&
             *static_cast<float *>(out.data) == expectedY({x}, past, 1)[0];
        past.push_back(x);
      }
      tare_context_destroy(c);
      good[t] = ok && fake->depth() == 0;
    });
  for (auto &thread : threads) thread.join();
  EXPECT_TRUE(good[0] && good[1]);
  EXPECT_EQ(count("cuMemcpyHtoD 16"), 1u); // the weights
}

TEST_F(Cuda, KnownShapesAllocateNothing) {
  make();
  for (auto shape : {std::pair{4, 30}, {2, 5}}) runOn(numbers(static_cast<size_t>(shape.first * shape.second)), {shape.first, shape.second});
  calls();
  for (auto shape : {std::pair{4, 30}, {4, 30}, {2, 5}, {2, 5}, {4, 30}}) runOn(numbers(static_cast<size_t>(shape.first * shape.second)), {shape.first, shape.second});
  EXPECT_EQ(count("cuMem") - count("cuMemcpy"), 0u);
}

TEST_F(Cuda, OutOfMemoryIsAnErrorAndTheContextGoesOn) {
  make();
  fake->set("memory", 100000);
  setX(context, numbers(40000), {40000, 1});
  EXPECT_EQ(tare_context_run(context, &error), TARE_LIMIT);
  EXPECT_NE(std::string(error.message).find("out of device memory"), std::string::npos) << error.message;
  EXPECT_EQ(tare_context_run(context, &error), TARE_LIMIT); // still
  EXPECT_EQ(runOn(numbers(10), {2, 5}), expectedY(numbers(10), {}, 2));
  EXPECT_EQ(tare_context_link_state(context, "cache", "new_cache", 90, &error), TARE_OK);
  setX(context, numbers(100), {100, 1}); // a cache of 144000 bytes
  EXPECT_EQ(tare_context_run(context, &error), TARE_LIMIT) << error.message;
  EXPECT_EQ(runOn(numbers(2), {2, 1}), expectedY(numbers(2), {}, 2));
}
