// Many contexts of one engine in many threads at once, with different shapes, some with threads of their own. Built twice: plain and with ThreadSanitizer.
#include "runtime/tare.h"
#include "test/support/TestEngineResult.h"
#include "gtest/gtest.h"
#include <atomic>
#include <cstring>
#include <thread>

using namespace tare::test;

TEST(Threads, ContextsOfOneEngineRunAtTheSameTime) {
  tare_error error{};
  tare_engine_t *engine = tare_engine_open(TARE_TEST_ENGINE, nullptr, &error);
  ASSERT_NE(engine, nullptr) << error.message;
  std::atomic<int> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      tare_context_options options{};
      options.struct_bytes = sizeof options, options.threads = 1 + t % 3, options.profile = t % 2;
      tare_context_t *context = tare_context_create(engine, &options, nullptr);
      if (!context) return void(++failed);
      bool linked = t == 5;
      if (linked) tare_context_link_state(context, "cache", "new_cache", 1000, nullptr);
      std::vector<float> past;
      for (int round = 0; round < 40; ++round) {
        size_t batch = linked ? 1 : 1 + static_cast<size_t>(t + round) % 3, s = linked ? 2 : 1 + static_cast<size_t>(round * 7 + t) % 50;
        std::vector<float> x(batch * s);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i + static_cast<size_t>(t)) % 5);
        int64_t shape[] = {static_cast<int64_t>(batch), static_cast<int64_t>(s)};
        tare_tensor in{TARE_F32, 2, shape, x.data(), x.size() * 4}, out{};
        if (tare_context_set_input(context, "x", &in, nullptr) || tare_context_run(context, nullptr) || tare_context_get_output(context, "y", &out, nullptr)) ++failed;
        auto expected = expectedY(x, past, batch);
        if (out.bytes != expected.size() * 4 || memcmp(out.data, expected.data(), out.bytes) != 0) ++wrong;
        if (linked) past.insert(past.end(), x.begin(), x.end());
      }
      tare_context_destroy(context);
    });
  // Meanwhile one more context is cancelled again and again.
  tare_context_t *context = tare_context_create(engine, nullptr, &error);
  std::atomic<bool> done{false};
  std::thread canceller([&] {
    while (!done) tare_context_cancel(context), std::this_thread::yield();
  });
  for (int i = 0; i < 100; ++i) {
    float x = 1;
    int64_t shape[] = {1, 1};
    tare_tensor in{TARE_F32, 2, shape, &x, 4};
    tare_context_set_input(context, "x", &in, nullptr);
    tare_status status = tare_context_run(context, &error);
    if (status != TARE_OK && status != TARE_CANCELLED) ++failed;
  }
  done = true;
  canceller.join();
  for (auto &thread : threads) thread.join();
  tare_context_destroy(context);
  tare_engine_close(engine);
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(wrong.load(), 0);
}
