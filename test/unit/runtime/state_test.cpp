// Linked states: token by token in place equals the whole pass; capacity, reset, unlink, batch changes, failed runs.
#include "test/support/TestEngine.h"

using namespace tare::test;

namespace {
class State : public ::testing::Test {
protected:
  void SetUp() override {
    writeTestEngine(dir.path("e.tare"));
    engine = tare_engine_open(dir.path("e.tare").c_str(), nullptr, &error);
    ASSERT_NE(engine, nullptr) << error.message;
    context = tare_context_create(engine, nullptr, &error);
    ASSERT_NE(context, nullptr) << error.message;
  }
  void TearDown() override {
    tare_context_destroy(context);
    tare_engine_close(engine);
  }
  tare_status run(const std::vector<float> &x, int64_t batch) {
    int64_t shape[] = {batch, static_cast<int64_t>(x.size()) / batch};
    tare_tensor t{TARE_F32, 2, shape, const_cast<float *>(x.data()), x.size() * 4};
    tare_status status = tare_context_set_input(context, "x", &t, &error);
    return status == TARE_OK ? tare_context_run(context, &error) : status;
  }
  std::vector<float> y() {
    tare_tensor t{};
    EXPECT_EQ(tare_context_get_output(context, "y", &t, &error), TARE_OK) << error.message;
    auto *from = static_cast<const float *>(t.data);
    return {from, from + t.bytes / 4};
  }
  tare_status link(int64_t capacity) { return tare_context_link_state(context, "cache", "new_cache", capacity, &error); }
  TempDir dir;
  tare_engine_t *engine = nullptr;
  tare_context_t *context = nullptr;
  tare_error error{};
};
} // namespace

TEST_F(State, TokenByTokenAndChunksEqualTheWholePass) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {7, 8, 9, 1, 2, 3}; // two sequences of one batch
  std::vector<float> whole = a;
  whole.insert(whole.end(), b.begin(), b.end());
  std::vector<float> expected = expectedY(whole, {}, 2);
  ASSERT_EQ(link(6), TARE_OK) << error.message;
  for (size_t chunk : {1, 2, 3, 6}) {
    tare_context_reset(context);
    for (size_t at = 0; at < 6; at += chunk) {
      std::vector<float> x(a.begin() + long(at), a.begin() + long(at + chunk));
      x.insert(x.end(), b.begin() + long(at), b.begin() + long(at + chunk));
      ASSERT_EQ(run(x, 2), TARE_OK) << error.message;
      auto got = y();
      for (size_t i = 0; i < chunk; ++i) {
        EXPECT_EQ(got[i], expected[at + i]);
        EXPECT_EQ(got[chunk + i], expected[6 + at + i]);
      }
    }
  }
}

TEST_F(State, GrowingPastTheCapacityIsRefusedBeforeTheRun) {
  ASSERT_EQ(link(3), TARE_OK);
  ASSERT_EQ(run({1, 2}, 1), TARE_OK);
  EXPECT_EQ(run({3, 4}, 1), TARE_LIMIT);
  EXPECT_STREQ(error.message, "state would grow past its capacity: 4 entries, capacity 3 (tensor 'cache')");
  ASSERT_EQ(run({3}, 1), TARE_OK) << error.message; // the refused run changed nothing
  EXPECT_EQ(y(), expectedY({3}, {1, 2}, 1));
  EXPECT_EQ(run({4}, 1), TARE_LIMIT);
  ASSERT_EQ(tare_context_reset(context), TARE_OK);
  ASSERT_EQ(run({5}, 1), TARE_OK);
  EXPECT_EQ(y(), expectedY({5}, {}, 1));
}

TEST_F(State, AFaultDoesNotAdvanceTheState) {
  ASSERT_EQ(link(8), TARE_OK);
  ASSERT_EQ(run({1}, 1), TARE_OK);
  EXPECT_EQ(run({-999}, 1), TARE_REFUSED);
  ASSERT_EQ(run({2}, 1), TARE_OK) << error.message;
  EXPECT_EQ(y(), expectedY({2}, {1}, 1));
}

TEST_F(State, TheBatchMayChangeOnlyWhileEmpty) {
  ASSERT_EQ(link(4), TARE_OK);
  ASSERT_EQ(run({1}, 1), TARE_OK);
  EXPECT_EQ(run({1, 2}, 2), TARE_REFUSED);
  EXPECT_NE(std::string(error.message).find("reset the context first"), std::string::npos) << error.message;
  tare_context_reset(context);
  ASSERT_EQ(run({1, 2}, 2), TARE_OK) << error.message;
  EXPECT_EQ(y(), expectedY({1, 2}, {}, 2));
}

TEST_F(State, LinkedTensorsBelongToTheContext) {
  EXPECT_EQ(tare_context_link_state(context, "cache", "y", 4, &error), TARE_REFUSED);
  EXPECT_EQ(link(-1), TARE_USAGE);
  ASSERT_EQ(link(4), TARE_OK);
  int64_t shape[] = {1, 0, 4};
  float none = 0;
  tare_tensor t{TARE_F32, 3, shape, &none, 4};
  EXPECT_EQ(tare_context_set_input(context, "cache", &t, &error), TARE_USAGE);
  EXPECT_EQ(tare_context_set_output(context, "new_cache", &t, &error), TARE_USAGE);
  ASSERT_EQ(run({1}, 1), TARE_OK);
  EXPECT_EQ(tare_context_get_output(context, "new_cache", &t, &error), TARE_USAGE);
  ASSERT_EQ(link(0), TARE_OK); // unlinked: an empty past again, and the output can be had
  ASSERT_EQ(run({1}, 1), TARE_OK) << error.message;
  ASSERT_EQ(tare_context_get_output(context, "new_cache", &t, &error), TARE_OK);
  EXPECT_EQ(static_cast<const float *>(t.data)[1], 6);
}
