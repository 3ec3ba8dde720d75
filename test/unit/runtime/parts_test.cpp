// The runtime's small parts by themselves: SHA-256, dim programs, arena layout, CPU levels, thread pool, memory blocks.
#include "runtime/Checksum.h"
#include "runtime/CpuDevice.h"
#include "runtime/Layout.h"
#include "runtime/Memory.h"
#include "runtime/Sha256.h"
#include "runtime/ThreadPool.h"
#include "runtime/dims.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <random>
#include <string>

using namespace tare;

static std::string hex(const uint8_t digest[32]) {
  std::string out;
  char two[3];
  for (int i = 0; i < 32; ++i) snprintf(two, 3, "%02x", digest[i]), out += two;
  return out;
}

TEST(Sha256, StandardVectorsOnBothPaths) { // FIPS 180-4 examples and NIST's million 'a'
  std::pair<std::string, const char *> cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (bool instructions : {false, true})
    for (auto &[text, expected] : cases)
      for (size_t piece : {size_t(1000000), size_t(1), size_t(63), size_t(65)}) {
        if (piece == 1 && text.size() > 1000) continue;
        Sha256 hash(instructions);
        for (size_t at = 0; at < text.size(); at += piece) hash.update(text.data() + at, std::min(piece, text.size() - at));
        uint8_t digest[32];
        hash.finish(digest);
        EXPECT_EQ(hex(digest), expected) << text.size() << " bytes in pieces of " << piece << (instructions ? ", instructions" : ", plain");
      }
}

TEST(Checksum, FindsTheFirstWrongChunk) {
  std::string data(40 << 20, 'x'), sums; // large enough for helper threads
  for (size_t at = 0; at < data.size(); at += 1 << 20) {
    uint64_t sum = chunkChecksum(data.data() + at, 1 << 20);
    sums.append(reinterpret_cast<char *>(&sum), 8);
  }
  auto *bytes = reinterpret_cast<uint8_t *>(data.data());
  auto *expected = reinterpret_cast<const uint8_t *>(sums.data());
  EXPECT_EQ(firstWrongChunk(bytes, data.size(), expected), -1);
  data[(37 << 20) + 5] ^= 1;
  EXPECT_EQ(firstWrongChunk(bytes, data.size(), expected), 37);
  data[(12 << 20) - 1] ^= 1;
  EXPECT_EQ(firstWrongChunk(bytes, data.size(), expected), 11);
}

TEST(Dims, ProgramsAreCheckedAndEvaluated) {
  auto check = [](std::vector<int64_t> code) { return std::string(dims::checkProgram(code.data(), code.size(), 2) ?: "ok"); };
  EXPECT_EQ(check({0, 5}), "ok");
  EXPECT_EQ(check({}), "bad length");
  EXPECT_EQ(check({0}), "bad length");
  EXPECT_EQ(check({1, 2}), "symbol index out of range");
  EXPECT_EQ(check({1, -1}), "symbol index out of range");
  EXPECT_EQ(check({0, 1, 2, 0}), "stack underflow");
  EXPECT_EQ(check({0, 1, 0, 2}), "does not leave exactly one value");
  EXPECT_EQ(check({0, 1, 0, 0, 6, 0}), "division by zero");
  EXPECT_EQ(check({0, 1, 0, 2, 8, 0}), "unknown opcode");
  std::vector<int64_t> deep;
  for (int i = 0; i < 65; ++i) deep.insert(deep.end(), {0, 1});
  EXPECT_EQ(check(deep), "stack overflow");

  const int64_t symbols[2] = {7, -3};
  auto value = [&](std::vector<int64_t> code) {
    int64_t result = 0;
    return dims::evaluate(code.data(), code.size(), symbols, result) ? std::to_string(result) : std::string("none");
  };
  EXPECT_EQ(value({1, 0, 0, 2, 3, 0, 1, 1, 2, 0}), "11"); // 7*2 + -3
  EXPECT_EQ(value({1, 0, 1, 1, 4, 0}), "-3");
  EXPECT_EQ(value({1, 0, 1, 1, 5, 0}), "7");
  EXPECT_EQ(value({1, 0, 1, 1, 6, 0}), "-3"); // floor(7 / -3)
  EXPECT_EQ(value({1, 0, 1, 1, 7, 0}), "-2"); // 7 - (-3)(-3)
  EXPECT_EQ(value({1, 1, 0, 2, 6, 0}), "-2"); // floor(-3 / 2)
  EXPECT_EQ(value({1, 1, 0, 2, 7, 0}), "1");
  EXPECT_EQ(value({0, INT64_MAX, 1, 0, 3, 0}), "none");
  EXPECT_EQ(value({0, INT64_MAX, 1, 0, 2, 0}), "none");
  EXPECT_EQ(value({0, INT64_MIN, 0, -1, 6, 0}), "none");
  EXPECT_EQ(value({1, 0, 1, 0, 1, 1, 0, 3, 2, 0, 2, 0, 6, 0}), "1"); // 7 / (7 + (-3 + 3))
}

TEST(Layout, BuffersThatLiveTogetherNeverOverlap) {
  unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    Layout layout(60);
    uint64_t sum = 0;
    for (auto &item : layout.items) {
      item.bytes = random() % 5000, item.first = random() % 40, item.last = item.first + random() % 6;
      sum += (item.bytes + 63) / 64 * 64;
    }
    auto total = layout.place();
    ASSERT_TRUE(static_cast<bool>(total));
    EXPECT_LE(*total, sum);
    for (auto &a : layout.items) {
      EXPECT_EQ(a.offset % 64, 0u);
      EXPECT_LE(a.offset + a.bytes, std::max<uint64_t>(*total, a.offset + a.bytes * (a.bytes == 0)));
      for (auto &b : layout.items) {
        if (&a == &b || a.last < b.first || b.last < a.first || !a.bytes || !b.bytes) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << "seed " << seed;
      }
    }
  }
}

TEST(Layout, ReusesMemoryOfDeadBuffers) {
  Layout layout(4);
  layout.items = {{1000, 0, 1}, {1000, 2, 3}, {1000, 1, 2}, {500, 4, 5}};
  auto total = layout.place();
  ASSERT_TRUE(static_cast<bool>(total));
  EXPECT_EQ(*total, 2048u);
  layout.items = {{UINT64_MAX / 2, 0, 1}, {1, 0, 1}};
  EXPECT_FALSE(static_cast<bool>(layout.place()));
}

TEST(CpuDevice, ChoosesTheHighestLevelWithinTheBound) {
  const char *all[] = {"x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"};
  CpuLevel here = detectCpuLevel();
  if (here == CpuLevel::None) GTEST_SKIP() << "this CPU has no AVX2";
  auto best = chooseLevel(all, 4, nullptr);
  ASSERT_TRUE(static_cast<bool>(best));
  EXPECT_LE(static_cast<int>(*best) + 1, static_cast<int>(here));
  auto low = chooseLevel(all, 4, "x86-64-v3");
  ASSERT_TRUE(static_cast<bool>(low));
  EXPECT_EQ(*low, 0u);
  auto none = chooseLevel(all, 4, "none");
  ASSERT_FALSE(static_cast<bool>(none));
  EXPECT_EQ(none.error().code, Status::Environment);
  EXPECT_NE(std::string(none.error().detail).find("x86-64-v3, x86-64-v4, avx512-bf16, amx"), std::string::npos);
  auto high = chooseLevel(all + 1, 3, "x86-64-v3");
  ASSERT_FALSE(static_cast<bool>(high));
  EXPECT_NE(std::string(high.error().detail).find("this CPU runs x86-64-v3"), std::string::npos) << high.error().detail;
  auto unknown = chooseLevel(all, 4, "x86-64-v9");
  ASSERT_FALSE(static_cast<bool>(unknown));
  EXPECT_EQ(unknown.error().code, Status::Usage);
  EXPECT_GE(physicalCores(), 1);
}

TEST(ThreadPool, EveryThreadMeetsAtEveryBarrier) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool;
    ASSERT_TRUE(static_cast<bool>(pool.start(threads)));
    struct Shared { Barrier barrier; std::vector<int> counts; bool wrong = false; std::atomic<int> sum{0}; } shared;
    shared.counts.resize(static_cast<size_t>(threads));
    for (int round = 0; round < 50; ++round) {
      shared.barrier.prepare(threads, pool.spins());
      pool.run(
          [](void *argument, int thread) {
            auto &s = *static_cast<Shared *>(argument);
            for (int step = 0; step < 20; ++step) {
              ++s.counts[static_cast<size_t>(thread)];
              if (s.barrier.arrive([] { return false; })) s.wrong = true;
              for (int c : s.counts)
                if (c != s.counts[0]) s.wrong = true;
              if (s.barrier.arrive([] { return false; })) s.wrong = true;
            }
            if (!s.barrier.arrive([] { return true; })) s.wrong = true;
            s.sum.fetch_add(thread);
          },
          &shared);
    }
    EXPECT_FALSE(shared.wrong);
    EXPECT_EQ(shared.counts.back(), 1000);
    EXPECT_EQ(shared.sum.load(), 50 * threads * (threads - 1) / 2);
  }
}

TEST(Memory, BlocksGrowAndReportWhatTheyCannotGet) {
  Block block;
  ASSERT_TRUE(static_cast<bool>(block.reserve(100, "a test")));
  void *first = block.data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  ASSERT_TRUE(static_cast<bool>(block.reserve(50, "a test")));
  EXPECT_EQ(block.data(), first);
  ASSERT_TRUE(static_cast<bool>(block.reserve(5 << 20, "a test")));
  memset(block.data(), 1, block.capacity());
  auto huge = block.reserve(size_t(1) << 60, "a test");
  ASSERT_FALSE(static_cast<bool>(huge));
  EXPECT_EQ(huge.error().code, Status::Limit);
  EXPECT_STREQ(huge.error().detail, "1152921504606846976 bytes for a test");
  EXPECT_GE(block.capacity(), size_t(5) << 20); // still there
}
