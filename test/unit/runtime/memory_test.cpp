// Memory and handles: no allocation after the first run at given shapes (malloc, mmap and thread creation are counted), and loading or running without memory or
// file handles fails cleanly and can be tried again (faults F12, F13).
#include "test/support/CountedMemory.h"
#include "test/support/TestEngine.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tare::test;

namespace {
void setX(tare_context_t *context, const std::vector<float> &x, int64_t batch) {
  int64_t shape[] = {batch, static_cast<int64_t>(x.size()) / batch};
  tare_tensor t{TARE_F32, 2, shape, const_cast<float *>(x.data()), x.size() * 4};
  EXPECT_EQ(tare_context_set_input(context, "x", &t, nullptr), TARE_OK);
}
/// Runs `body` in a child with a limit; its exit code.
template <typename F> int inChild(F body) {
  pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
} // namespace

TEST(Memory, NoAllocationAfterTheFirstRunAtGivenShapes) {
  if (!TARE_COUNTING) GTEST_SKIP() << "the sanitizer has its own malloc";
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  tare_error error;
  tare_engine_t *engine = tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error);
  ASSERT_NE(engine, nullptr);
  for (int threads : {1, 3}) {
    tare_context_options options{};
    options.struct_bytes = sizeof options, options.threads = threads, options.profile = 1;
    tare_context_t *context = tare_context_create(engine, &options, &error);
    ASSERT_NE(context, nullptr);
    std::vector<float> small(10, 1), large(400, 1), other(10, 2);
    long before = allocations;
    setX(context, large, 4);
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
    EXPECT_GT(allocations.load(), before) << "the counter does not count";
    setX(context, small, 1);
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
    before = allocations;
    for (int i = 0; i < 20; ++i) {
      setX(context, i % 2 ? small : other, 1);
      ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
      tare_tensor y;
      ASSERT_EQ(tare_context_get_output(context, "y", &y, &error), TARE_OK);
      if (i % 5 != 0) continue;
      setX(context, large, 4); // back and forth between known shapes
      ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
    }
    char text[8192];
    tare_context_metrics(context, text, sizeof text);
    tare_context_profile(context, text, sizeof text);
    std::vector<float> bad(10, -999);
    long withBad = allocations;
    setX(context, bad, 1);
    EXPECT_EQ(tare_context_run(context, &error), TARE_REFUSED); // errors neither
    EXPECT_EQ(allocations.load(), withBad);
    EXPECT_EQ(withBad - before, 1) << "only the vector of this test";
    tare_context_destroy(context);
  }
  tare_engine_close(engine);
}

TEST(Memory, DecodingWithALinkedStateDoesNotAllocate) {
  if (!TARE_COUNTING) GTEST_SKIP() << "the sanitizer has its own malloc";
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  tare_error error;
  tare_engine_t *engine = tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error);
  ASSERT_NE(engine, nullptr);
  tare_context_t *context = tare_context_create(engine, nullptr, &error);
  ASSERT_NE(context, nullptr);
  ASSERT_EQ(tare_context_link_state(context, "cache", "new_cache", 200, &error), TARE_OK);
  std::vector<float> prompt(64, 1), token(1, 1);
  setX(context, prompt, 1);
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
  setX(context, token, 1);
  ASSERT_EQ(tare_context_run(context, &error), TARE_OK);
  long before = allocations;
  for (int i = 0; i < 50; ++i) {
    setX(context, token, 1);
    ASSERT_EQ(tare_context_run(context, &error), TARE_OK) << error.message;
  }
  // Only the default mask grows with the past, so at most one block is made larger within these 50 tokens.
  EXPECT_LE(allocations - before, 10);
  tare_context_destroy(context);
  tare_engine_close(engine);
}

TEST(Memory, LoadingWithoutMemoryFailsCleanlyAndCanBeRetried) {
  if (!TARE_COUNTING) GTEST_SKIP() << "the sanitizer needs its address space";
  TempDir dir;
  writeTestEngine(dir.path("e.tare"), {nullptr, std::string(64 << 20, 'w'), {}});
  int code = inChild([&] {
    rlimit before, tight;
    getrlimit(RLIMIT_AS, &before);
    tight = before;
    tight.rlim_cur = 1;
    setrlimit(RLIMIT_AS, &tight);
    tare_error error;
    tare_engine_t *engine = tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error);
    if (engine) return 1;
    if (error.code != TARE_LIMIT) return 2;
    setrlimit(RLIMIT_AS, &before);
    engine = tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error);
    if (!engine) return 3;
    tare_context_options options{};
    options.struct_bytes = sizeof options, options.threads = 64;
    setrlimit(RLIMIT_AS, &tight);
    if (tare_context_create(engine, &options, &error)) return 4; // no stacks for threads
    if (error.code != TARE_LIMIT) return 5;
    setrlimit(RLIMIT_AS, &before);
    options.threads = 1;
    tare_context_t *context = tare_context_create(engine, &options, &error);
    if (!context) return 6;
    std::vector<float> x(1 << 20, 1);
    int64_t shape[] = {1 << 20, 1};
    tare_tensor t{TARE_F32, 2, shape, x.data(), x.size() * 4};
    if (tare_context_set_input(context, "x", &t, &error) != TARE_OK) return 7;
    setrlimit(RLIMIT_AS, &tight);
    if (tare_context_run(context, &error) != TARE_LIMIT) return 8;
    if (!strstr(error.message, "out of memory: ")) return 9;
    setrlimit(RLIMIT_AS, &before);
    return tare_context_run(context, &error) == TARE_OK ? 0 : 10;
  });
  EXPECT_EQ(code, 0);
}

TEST(Memory, LoadingWithoutFileHandlesFailsCleanly) {
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  int code = inChild([&] {
    std::vector<int> held;
    for (int handle; (handle = open("/dev/null", O_RDONLY)) >= 0;) held.push_back(handle);
    tare_error error;
    if (tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error)) return 1;
    if (error.code != TARE_IO || !strstr(error.message, "Too many open files")) return 2;
    close(held.back());
    tare_engine_t *engine = tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error); // one handle is enough
    return engine && tare_context_create(engine, nullptr, &error) ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
}
