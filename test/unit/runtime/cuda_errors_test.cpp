// Which driver, device and image an engine takes, and what is said when there is none; every call of the driver made to fail once.
#include "test/support/CudaTestEngine.h"
#include "test/support/FakeCuda.h"

using namespace tare::test;

namespace {
class CudaErrors : public FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    fake->kernels(TARE_HOST_KERNELS);
    path = dir.path("e.tare");
  }
  /// Opens and makes a context: the level, or the error's code and text.
  std::string take(const char *asked = nullptr, int device = 0) {
    tare_options options{};
    options.struct_bytes = sizeof options, options.max_level = asked, options.cuda_device = device;
    tare_engine_t *engine = tare_engine_open(path.c_str(), &options, &error);
    if (!engine) return "open: " + said();
    std::string level = tare_engine_level(engine);
    tare_context_t *context = tare_context_create(engine, nullptr, &error);
    if (!context) level += (level.empty() ? "" : ": ") + said();
    tare_context_destroy(context);
    tare_engine_close(engine);
    return level;
  }
  std::string said() const { return std::to_string(error.code) + " " + error.message; }
  bool says(const std::string &text, std::initializer_list<const char *> parts) {
    for (const char *part : parts)
      if (text.find(part) == std::string::npos) return ADD_FAILURE() << "no '" << part << "' in: " << text, false;
    return true;
  }
  TempDir dir;
  std::string path;
  tare_error error{};
};
} // namespace

TEST_F(CudaErrors, TheImageThatFits) {
  struct { std::vector<std::string> images; int capability; const char *asked, *level; } cases[] = {
      {{"sm_80", "sm_86", "sm_90", "compute_90"}, 80, nullptr, "cuda:sm_80"},
      {{"sm_80", "sm_86", "sm_90", "compute_90"}, 86, nullptr, "cuda:sm_86"},
      {{"sm_80", "sm_86", "sm_90", "compute_90"}, 89, "cuda", "cuda:sm_86"},   // a later minor version of the same major
      {{"sm_80", "sm_86", "sm_90", "compute_90"}, 120, nullptr, "cuda:compute_90"}, // another major: PTX
      {{"sm_80", "compute_80"}, 90, nullptr, "cuda:compute_80"},
      {{"sm_80", "sm_86"}, 89, "cuda:sm_80", "cuda:sm_80"},
      {{"sm_90a", "compute_80"}, 90, nullptr, "cuda:sm_90a"},
  };
  for (auto &c : cases) {
    fake->set("capability", c.capability);
    writeCudaEngine(path, c.images);
    EXPECT_EQ(take(c.asked), c.level) << c.capability;
  }
}

TEST_F(CudaErrors, NoImageFits) {
  writeCudaEngine(path, {"sm_90", "compute_90"});
  fake->set("capability", 75);
  says(take(), {"5 ", "no code for this GPU", "Fake GPU is sm_75", "sm_90, compute_90", "GPUs before sm_80 are not supported"});
  fake->set("capability", 88); // no target of its own: a cubin of sm_87 runs there
  says(take(), {"5 ", "is sm_88", "compile again with --target cuda:sm_87"});
  fake->set("capability", 86);
  says(take("cuda"), {"5 ", "is sm_86"});
  fake->set("capability", 100);
  says(take("cuda:sm_90"), {"5 ", "asked for: sm_90", "is sm_100"});
  setenv("TARE_LIBCUDA", "/nowhere/libcuda.so.1", 1); // a wrong name is wrong on every machine
  says(take("cuda:sm_9"), {"5 the engine has no CUDA code of that name", "asked for: sm_9, it has sm_90, compute_90"});
  setenv("TARE_LIBCUDA", TARE_FAKE_CUDA, 1);
  writeCudaEngine(path, {"sm_90a"});
  says(take(), {"5 ", "the engine has sm_90a"});
}

TEST_F(CudaErrors, NoDriverNoDeviceOldDriver) {
  writeCudaEngine(path);
  setenv("TARE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  says(take(), {"5 no CUDA driver", "CUDA 11.4 or later", "--target cpu"});
  writeCudaEngine(path, {"sm_90", "sm_120", "compute_90"}); // 12.4 made the PTX, so it made the cubins; they want 12.0 and 12.8
  says(take(), {"5 no CUDA driver", "CUDA 12.0 or later"});
  writeCudaEngine(path, {"sm_90", "sm_120"}); // nothing says what made them
  says(take(), {"5 no CUDA driver", "CUDA 11.8 or later"});
  writeCudaEngine(path);
  setenv("TARE_LIBCUDA", "libm.so.6", 1);
  says(take(), {"5 the CUDA driver is too old", "lacks cuInit"});
  setenv("TARE_LIBCUDA", TARE_FAKE_CUDA, 1);
  fake->set("devices", 0);
  says(take(), {"5 ", "CUDA_ERROR_NO_DEVICE"});
  fake->set("devices", 1), fake->set("version", 11020);
  says(take(), {"5 the CUDA driver is too old", "for CUDA 11.2", "CUDA 11.4 or later is needed"});
  fake->set("version", 11040); // knows every function, but not sm_90
  says(take(), {"5 the CUDA driver is too old", "for CUDA 11.4", "sm_90 code needs 11.8"});
  fake->set("capability", 86);
  EXPECT_EQ(take(), "cuda:compute_80"); // .version 7.4 is CUDA 11.4
  writeCudaEngine(path, {"sm_103", "sm_120"});
  for (auto [capability, needed] : {std::pair(103, 12090), {120, 12080}}) { // the number of an architecture does not say when it came
    fake->set("capability", capability), fake->set("version", needed);
    EXPECT_EQ(take(), "cuda:sm_" + std::to_string(capability));
    fake->set("version", needed - 10);
    says(take(), {"5 the CUDA driver is too old"});
  }
}

TEST_F(CudaErrors, TheDeviceThatIsAskedFor) {
  writeCudaEngine(path, {"sm_80", "sm_90", "compute_90"}, /*cpu=*/true);
  fake->set("devices", 3), fake->set("capability_1", 80), fake->set("capability_2", 75);
  EXPECT_EQ(take("cuda"), "cuda:sm_90");
  EXPECT_EQ(take("cuda", 1), "cuda:sm_80"); // each has its own image, and its own context: the fake compares
  EXPECT_EQ(count("cuDeviceGet 1"), 1u);
  says(take("cuda", 2), {"5 ", "no code for this GPU", "Fake GPU #2 (device 2) is sm_75"});
  says(take("cuda", 3), {"5 there is no such CUDA device", "device 3 is asked for, the driver has 3 (0: Fake GPU, 1: Fake GPU #1, 2: Fake GPU #2)", "CUDA_VISIBLE_DEVICES"});
  says(take("cuda", -1), {"5 there is no such CUDA device", "device -1 is asked for"});
  EXPECT_EQ(take("cpu", 3), "x86-64-v3");
  // Options of a library that knew no devices: device 0.
  tare_options old{};
  old.struct_bytes = offsetof(tare_options, cuda_device), old.max_level = "cuda", old.cuda_device = 3;
  tare_engine_t *engine = tare_engine_open(path.c_str(), &old, &error);
  ASSERT_NE(engine, nullptr) << error.message;
  EXPECT_STREQ(tare_engine_level(engine), "cuda:sm_90");
  tare_engine_close(engine);
}

TEST_F(CudaErrors, TwoDevicesAtOnce) {
  writeCudaEngine(path, {"sm_80", "sm_90"});
  fake->set("devices", 2), fake->set("capability_1", 80);
  tare_engine_t *engines[2];
  tare_context_t *contexts[2];
  for (int device : {0, 1}) {
    tare_options options{};
    options.struct_bytes = sizeof options, options.cuda_device = device;
    engines[device] = tare_engine_open(path.c_str(), &options, &error);
    ASSERT_NE(engines[device], nullptr) << error.message;
    contexts[device] = tare_context_create(engines[device], nullptr, &error);
    ASSERT_NE(contexts[device], nullptr) << error.message;
  }
  for (int i = 0; i < 6; ++i) {
    std::vector<float> x(3, static_cast<float>(i));
    int64_t shape[2] = {1, 3};
    tare_tensor in{TARE_F32, 2, shape, x.data(), 12}, out{};
    tare_context_t *context = contexts[i % 2];
    EXPECT_EQ(tare_context_set_input(context, "x", &in, &error), TARE_OK);
    EXPECT_EQ(tare_context_run(context, &error), TARE_OK) << error.message;
    ASSERT_EQ(tare_context_get_output(context, "y", &out, &error), TARE_OK);
    auto *from = static_cast<const float *>(out.data);
    EXPECT_EQ(std::vector<float>(from, from + 3), expectedY(x, {}, 1));
  }
  for (int device : {0, 1}) tare_context_destroy(contexts[device]), tare_engine_close(engines[device]);
}

TEST_F(CudaErrors, TheCpuIsTakenUnlessAGpuIsAskedFor) {
  writeCudaEngine(path, {"sm_90"}, /*cpu=*/true);
  EXPECT_EQ(take(), "x86-64-v3");
  EXPECT_EQ(take("cpu"), "x86-64-v3");
  EXPECT_EQ(take("cpu:x86-64-v3"), "x86-64-v3");
  EXPECT_EQ(fake->calls(), 0); // no driver was touched
  EXPECT_EQ(take("cuda"), "cuda:sm_90");
  setenv("TARE_LIBCUDA", "/nowhere", 1);
  EXPECT_EQ(take(), "x86-64-v3");
  says(take("cuda"), {"5 no CUDA driver"}); // never another target than the one that was asked for
  setenv("TARE_LIBCUDA", TARE_FAKE_CUDA, 1);
  writeCudaEngine(path, {"sm_90"}, false);
  EXPECT_EQ(take(), "cuda:sm_90");
  says(take("cpu"), {"5 ", "no code for CPUs", "--target cuda"});
  says(take("cuda-emu"), {"5 ", "no code for CPUs"});
  writeTestEngine(path);
  says(take("cuda"), {"5 ", "no code for GPUs", "--target cuda:sm_XX"});
}

TEST_F(CudaErrors, ACubinThatTheDriverRefusesIsReplacedByPtx) {
  writeCudaEngine(path);
  fake->set("cubin_refused", 1);
  EXPECT_EQ(take(), "cuda:sm_90");
  fake->set("ptx_refused", 1);
  says(take(), {"5 ", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "kernel scale, compute_80 code, GPU sm_90", "driver for CUDA 12.4", "fake ptxas: no"});
  writeCudaEngine(path, {"sm_90", "compute_90"});
  fake->set("version", 12020);
  says(take(), {"5 ", "compute_90 code, which needs CUDA 12.4", "driver for CUDA 12.2"});
  writeCudaEngine(path, {"compute_90"});
  says(take(), {"5 the CUDA driver is too old", "for CUDA 12.2", "compute_90 code needs 12.4"}); // known before anything is loaded
}

TEST_F(CudaErrors, WeightsThatDoNotFit) {
  writeCudaEngine(path);
  fake->set("memory", 15);
  says(take(), {"7 the GPU's memory does not hold the weights", "MiB are needed"});
}

/// A whole life of engine and context; what failed is tried once more, with the same objects.
class EveryCall : public CudaErrors, public ::testing::WithParamInterface<int> {
protected:
  /// True when anything failed at first.
  bool live(int profile) {
    bool failed = false;
    auto twice = [&](const char *what, auto attempt) { // attempt: true when it worked
      if (attempt()) return true;
      failed = true;
      EXPECT_NE(error.message[0], 0) << what;
      bool worked = attempt();
      EXPECT_TRUE(worked) << what << ": " << error.message;
      return worked;
    };
    tare_engine_t *engine = nullptr;
    tare_context_t *context = nullptr;
    tare_context_options options{};
    options.struct_bytes = sizeof options, options.profile = profile;
    if (!twice("open", [&] { // what a driver says when it is looked at is told by the first context
          tare_engine_close(engine);
          engine = tare_engine_open(path.c_str(), nullptr, &error);
          if (engine && tare_engine_level(engine)[0]) return true;
          return engine && (context = tare_context_create(engine, &options, &error)) != nullptr;
        }))
      return tare_engine_close(engine), failed;
    twice("create", [&] { return context || (context = tare_context_create(engine, &options, &error)); });
    if (context) {
      std::vector<float> past;
      EXPECT_EQ(tare_context_link_state(context, "cache", "new_cache", 40, &error), TARE_OK);
      for (size_t chunk : {2, 2, 2, 30}) {
        std::vector<float> x(chunk, 1.5f), y;
        int64_t shape[2] = {1, static_cast<int64_t>(chunk)};
        tare_tensor in{TARE_F32, 2, shape, x.data(), 4 * chunk}, out{};
        EXPECT_EQ(tare_context_set_input(context, "x", &in, &error), TARE_OK);
        twice("run", [&] { return tare_context_run(context, &error) == TARE_OK && tare_context_get_output(context, "y", &out, &error) == TARE_OK; });
        if (auto *from = static_cast<const float *>(out.data)) y.assign(from, from + chunk);
        EXPECT_EQ(y, expectedY(x, past, 1)) << "after " << past.size();
        past.insert(past.end(), x.begin(), x.end());
      }
    }
    tare_context_destroy(context);
    tare_engine_close(engine);
    return failed;
  }
};
INSTANTIATE_TEST_SUITE_P(CudaErrors, EveryCall, ::testing::Values(999, 2, 801));

/// What makes or launches a graph: with some codes a driver refuses that alone, and the run goes on without.
bool makesGraph(const std::vector<std::string> &log, size_t at) {
  bool captures = false;
  for (size_t i = 0; i < at; ++i) {
    captures = captures || log[i] == "cuStreamBeginCapture";
    captures = captures && log[i] != "cuStreamEndCapture";
  }
  return captures || log[at] == "cuStreamBeginCapture" || log[at].compare(0, 7, "cuGraph") == 0;
}

TEST_P(EveryCall, FailsOnce) {
  writeCudaEngine(path);
  for (int profile : {0, 1}) {
    fake->reset();
    fake->kernels(TARE_HOST_KERNELS);
    ASSERT_FALSE(live(profile));
    const int64_t calls = fake->calls();
    ASSERT_GT(calls, 60);
    int64_t noticed = 0;
    for (int64_t n = 1; n <= calls; ++n) {
      fake->reset();
      fake->kernels(TARE_HOST_KERNELS);
      fake->set("fail_at", n), fake->set("fail_with", GetParam());
      bool failed = live(profile);
      std::string line = log()[static_cast<size_t>(n - 1)];
      // What gives something back has nobody to tell; a block that grows is tried with less.
      bool isSilent = line.find("Free") != std::string::npos || line.find("Destroy") != std::string::npos || line.find("Unload") != std::string::npos || line.find("Release") != std::string::npos ||
                      line.find("Pop") != std::string::npos || (n > calls - 20 && line.find("Push") != std::string::npos) || line.find("cuMemAlloc") == 0 || line.find("cuMemHostAlloc") == 0;
      bool isRefused = GetParam() != 999 && makesGraph(log(), static_cast<size_t>(n - 1));
      EXPECT_TRUE(failed || isSilent || isRefused) << n << ": " << line;
      EXPECT_FALSE(failed && isRefused) << n << ": " << line;
      noticed += failed;
      expectClean(std::to_string(n) + ": " + line);
      if (HasFailure()) return;
    }
    EXPECT_GT(noticed, calls / 3);
  }
}
