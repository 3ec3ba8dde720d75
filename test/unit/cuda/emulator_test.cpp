// The emulator finds a seeded bug of each kind, names its place, and reports nothing about the same kernel done right. Counts of bank conflicts and sectors are
// compared with the hardware's rules by hand; matrix operations with sums in double.
#include "kernels/cuda/simt.cuh"
#include "test/unit/cuda/Launch.h"
#include "test/unit/cuda/Tf32.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tare;
using emu::Fault;
using test::Buffer;
using test::run;
using test::tf32Of;

namespace {
constexpr emu::Geometry kBlock{{1, 1, 1}, {128, 1, 1}, 4096}, kGrid{{5, 2, 2}, {64, 1, 1}, 4096};

void expectFault(const test::Outcome &o, Fault kind, unsigned line, const char *words) {
  EXPECT_EQ(static_cast<int>(o.fault()), static_cast<int>(kind)) << o.text();
  EXPECT_NE(o.text().find("emulator_test.cpp:" + std::to_string(line)), std::string::npos) << o.text() << " (expected line " << line << ")";
  EXPECT_NE(o.text().find(words), std::string::npos) << o.text();
  EXPECT_NE(o.text().find("seed "), std::string::npos) << o.text();
}
void expectClean(const test::Outcome &o) { EXPECT_EQ(static_cast<int>(o.fault()), 0) << o.text(); }

TEST(Emulator, RunsEveryThreadOfEveryBlockOnce) {
  Buffer<int> count(5 * 4 * 64, "count");
  auto o = run("count", kGrid, [&] {
    u32 block = (block_index_z() * 2 + block_index_y()) * 5 + block_index_x();
    global<int>(count).write(block * 64 + thread_index(), global<int>(count).read(block * 64 + thread_index()) + 1);
  });
  expectClean(o);
  for (size_t i = 0; i < count.count; ++i) ASSERT_EQ(count[i], 1) << i;
}

TEST(Emulator, MissingBarrierIsARace) {
  auto kernel = [&](bool right) {
    shared<float> s = shared_at<float>(0, 128);
    s.write(thread_index(), 0.0f);
    sync_threads();
    s.write(thread_index(), 1.0f);
    if (right) sync_threads();
    (void)s.read((thread_index() + 40) % 128);
  };
  auto found = run("race", kBlock, [&] { kernel(false); });
  EXPECT_EQ(found.fault(), Fault::Race) << found.text();
  EXPECT_NE(found.text().find("without a barrier"), std::string::npos) << found.text();
  expectClean(run("race", kBlock, [&] { kernel(true); }));
}

TEST(Emulator, ReadThenWriteWithoutBarrierIsARace) {
  auto kernel = [&](bool right) {
    shared<float> s = shared_at<float>(0, 128);
    s.write(thread_index(), 1.0f);
    sync_threads();
    float v = s.read(127 - thread_index());
    if (right) sync_threads();
    s.write(thread_index(), v + 1);
  };
  EXPECT_EQ(run("write after read", kBlock, [&] { kernel(false); }).fault(), Fault::Race);
  expectClean(run("write after read", kBlock, [&] { kernel(true); }));
}

TEST(Emulator, ManyReadersThenOneWriterIsARace) {
  auto kernel = [&](bool right) {
    shared<float> s = shared_at<float>(0, 128);
    if (thread_index() == 0) s.write(0, 1.0f);
    sync_threads();
    float v = s.read(0);
    if (right) sync_threads();
    if (thread_index() == 77) s.write(0, v);
  };
  EXPECT_EQ(run("readers", kBlock, [&] { kernel(false); }).fault(), Fault::Race);
  expectClean(run("readers", kBlock, [&] { kernel(true); }));
}

TEST(Emulator, LanesOfAWarpNeedSyncWarp) {
  auto kernel = [&](bool right) {
    shared<float> s = shared_at<float>(0, 128);
    s.write(thread_index(), 0.0f);
    sync_warp();
    for (int i = 0; i < 3; ++i) {
      s.write(thread_index(), 1.0f);
      if (right) sync_warp();
      (void)s.read(thread_index() ^ 1);
      sync_warp();
    }
  };
  EXPECT_EQ(run("warp race", kBlock, [&] { kernel(false); }).fault(), Fault::Race);
  expectClean(run("warp race", kBlock, [&] { kernel(true); }));
}

TEST(Emulator, BlocksMustNotShareResults) {
  Buffer<float> out(64, "out");
  auto twice = run("two writers", kGrid, [&] { global<float>(out).write(thread_index(), 1.0f); });
  EXPECT_EQ(twice.fault(), Fault::GlobalRace) << twice.text();
  EXPECT_NE(twice.text().find("out["), std::string::npos);
  Buffer<float> chain(2, "chain");
  auto order = run("order of blocks", {{2, 1, 1}, {32, 1, 1}, 0}, [&] {
    if (thread_index()) return;
    if (block_index_x() == 0) global<float>(chain).write(0, 1.0f);
    else global<float>(chain).write(1, global<float>(chain).read(0));
  });
  // The reader may come first: then the writer is the one that is found.
  EXPECT_EQ(order.fault(), Fault::GlobalRace) << order.text();
}

TEST(Emulator, EveryBufferHasBounds) {
  unsigned at = 0;
  auto global_case = [&](auto kernel) {
    Buffer<float> x(100, "x");
    return run("bounds", kBlock, [&] { kernel(x); });
  };
  auto read = global_case([&](Buffer<float> &x) { at = __LINE__; (void)global<const float>(x).read(thread_index()); });
  expectFault(read, Fault::OutOfBounds, at, "reads x[");
  EXPECT_EQ(global_case([](Buffer<float> &x) { if (thread_index() < 100) global<float>(x).write(static_cast<int>(thread_index()) - 1, 0); }).fault(), Fault::OutOfBounds);
  EXPECT_EQ(global_case([](Buffer<float> &x) { (void)global<const float>(x).readVector<4>(4 * (thread_index() % 26)); }).fault(), Fault::OutOfBounds);
  expectClean(global_case([](Buffer<float> &x) { (void)global<const float>(x).readVector<4>(4 * (thread_index() % 25)); }));
  EXPECT_EQ(run("bounds", kBlock, [&] { shared_at<float>(0, 127).write(thread_index(), 0); }).fault(), Fault::OutOfBounds);
  EXPECT_EQ(run("bounds", kBlock, [&] { shared_at<float>(4096 - 4 * 127, 128).write(thread_index(), 0); }).fault(), Fault::OutOfBounds);
}

TEST(Emulator, VectorsMustBeAligned) {
  Buffer<float> x(1000, "x");
  EXPECT_EQ(run("aligned", kBlock, [&] { (void)global<const float>(x).readVector<4>(thread_index() * 2); }).fault(), Fault::Misaligned);
  EXPECT_EQ(run("aligned", kBlock, [&] { shared_at<float>(4, 900).writeVector<4>(thread_index() * 4, {}); }).fault(), Fault::Misaligned);
}

TEST(Emulator, SharedMemoryStartsAsNaN) {
  bool nan = true;
  expectClean(run("poison", kGrid, [&] {
    float f;
    memcpy(&f, emu::self().machine->sharedMemory + 4 * thread_index(), 4);
    if (!std::isnan(f)) nan = false;
    shared_at<float>(0, 64).write(thread_index(), 1.0f); // the next block must not see it
  }));
  EXPECT_TRUE(nan);
  unsigned at = 0;
  auto o = run("poison", kBlock, [&] {
    if (thread_index() < 64) shared_at<float>(0, 128).write(thread_index(), 1.0f);
    sync_threads();
    at = __LINE__ + 1;
    (void)shared_at<float>(0, 128).read(thread_index());
  });
  expectFault(o, Fault::Uninitialised, at, "has not written");
}

TEST(Emulator, CopiesArriveAtTheWait) {
  Buffer<float> x(std::vector<float>(512, 3.0f), "x");
  auto kernel = [&](int waits, bool barrier) {
    shared<float> s = shared_at<float>(0, 1024);
    u32 t = thread_index();
    for (int stage = 0; stage < 2; ++stage) {
      cp_async16(s, stage * 512 + 4 * t, global<const float>(x), 4 * t);
      cp_async_commit();
    }
    if (waits == 1) cp_async_wait<1>();
    if (waits == 0) cp_async_wait<0>();
    if (barrier) sync_threads();
    return s.read((4 * t + 4) % 512);
  };
  auto early = run("copy", kBlock, [&] { kernel(-1, true); });
  EXPECT_EQ(early.fault(), Fault::NotArrived) << early.text();
  auto alone = run("copy", kBlock, [&] { // arrived for its own thread only
    shared_at<float>(0, 1024).writeVector<4>(4 * thread_index(), {});
    sync_threads();
    kernel(1, false);
  });
  EXPECT_TRUE(alone.fault() == Fault::Race || alone.fault() == Fault::NotArrived) << alone.text();
  bool right = true;
  expectClean(run("copy", kBlock, [&] { right &= kernel(1, true) == 3.0f; }));
  EXPECT_TRUE(right);
  auto second = run("copy", kBlock, [&] { // waits for the first stage only, reads the second
    kernel(1, true);
    (void)shared_at<float>(0, 1024).read(512 + 4 * thread_index());
  });
  EXPECT_EQ(second.fault(), Fault::NotArrived) << second.text();
  auto partial = run("copy", kBlock, [&] { // past the end, zeros come
    shared<float> s = shared_at<float>(0, 512);
    int valid = thread_index() == 127 ? 1 : 4;
    cp_async16(s, 4 * thread_index(), global<const float>(x), 4 * thread_index(), valid);
    cp_async_commit();
    cp_async_wait<0>();
    if (thread_index() == 127) right &= s.read(508) == 3.0f && s.read(509) == 0.0f && s.read(511) == 0.0f;
  });
  expectClean(partial);
  EXPECT_TRUE(right);
  EXPECT_EQ(run("copy", {{1, 1, 1}, {32, 1, 1}, 65536}, [&] {
              for (int i = 0; i < 100; ++i) cp_async16(shared_at<float>(0, 16384), (i * 32 + thread_index()) * 4, global<const float>(x), 0);
            }).fault(),
            Fault::TooManyCopies);
}

TEST(Emulator, DivergentBarriersAreNamed) {
  unsigned at = 0;
  auto missing = run("barrier", kBlock, [&] {
    at = __LINE__ + 1;
    if (thread_index() < 96) sync_threads();
  });
  expectFault(missing, Fault::DivergentBarrier, at, "96 threads wait at this barrier");
  EXPECT_NE(missing.text().find("has ended"), std::string::npos) << missing.text();
  auto different = run("barrier", kBlock, [&] {
    if (thread_index() < 32) sync_threads();
    else sync_threads();
  });
  EXPECT_EQ(different.fault(), Fault::DivergentBarrier) << different.text();
}

TEST(Emulator, DivergentWarpsAreNamed) {
  unsigned at = 0;
  auto half = run("shuffle", kBlock, [&] {
    at = __LINE__ + 1;
    if (thread_index() < 16) (void)shuffle_xor(1.0f, 1);
  });
  expectFault(half, Fault::DivergentWarp, at, "16 lanes wait");
  auto mixed = run("shuffle", kBlock, [&] {
    if (lane_index() % 2) (void)shuffle_xor(1.0f, 1);
    else (void)ballot(true);
  });
  EXPECT_EQ(mixed.fault(), Fault::DivergentWarp) << mixed.text();
  // Whole warps may go their own ways.
  expectClean(run("shuffle", kBlock, [&] {
    if (thread_index() < 64) (void)shuffle_xor(1.0f, 1);
    else (void)ballot(true);
    sync_threads();
  }));
}

TEST(Emulator, StacksAndGeometriesAreLimited) {
  auto deep = run("stack", {{1, 1, 1}, {32, 1, 1}, 0}, [] {
    volatile char local[emu::kStack - sizeof(emu::Fiber)];
    for (size_t i = 0; i < sizeof local; ++i) local[i] = 1;
  });
  EXPECT_EQ(deep.fault(), Fault::StackOverflow) << deep.text();
  EXPECT_EQ(run("threads", {{1, 1, 1}, {33, 1, 1}, 0}, [] {}).fault(), Fault::BadLaunch);
  EXPECT_EQ(run("shared", {{1, 1, 1}, {32, 1, 1}, 300000}, [] {}).fault(), Fault::BadLaunch);
}

TEST(Emulator, OrderOfWarpsComesFromTheSeed) {
  auto order = [&](uint64_t seed) {
    std::vector<u32> warps;
    expectClean(run("order", {{1, 1, 1}, {512, 1, 1}, 0}, [&] {
      for (int i = 0; i < 4; ++i) {
        if (lane_index() == 0) warps.push_back(thread_index() / 32);
        sync_threads();
      }
    }, false, seed));
    return warps;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  EXPECT_EQ(order(1).size(), 64u);
}

TEST(Emulator, CountsBankConflicts) {
  auto stride = [&](u32 floats) {
    auto o = run("banks", {{1, 1, 1}, {32, 1, 1}, 8192}, [&] {
      shared_at<float>(0, 2048).write(thread_index() * floats, 0);
      sync_threads();
    }, true);
    expectClean(o);
    return o.line(emu::Access::SharedStore, 4)->cycles;
  };
  EXPECT_EQ(stride(1), 1u);
  EXPECT_EQ(stride(2), 2u);
  EXPECT_EQ(stride(32), 32u);
  EXPECT_EQ(stride(33), 1u);
  auto o = run("banks", {{1, 1, 1}, {32, 1, 1}, 8192}, [&] {
    shared<float> s = shared_at<float>(0, 2048);
    s.writeVector<4>(4 * thread_index(), {});
    sync_threads();
    (void)s.read(0);                           // a broadcast
    (void)s.readVector<2>(2 * thread_index()); // 8 bytes: two phases
  }, true);
  expectClean(o);
  EXPECT_EQ(o.line(emu::Access::SharedStore, 16)->cycles, 4u);
  EXPECT_EQ(o.line(emu::Access::SharedLoad, 4)->cycles, 1u);
  EXPECT_EQ(o.line(emu::Access::SharedLoad, 8)->cycles, 2u);
}

TEST(Emulator, CountsUncoalescedBytes) {
  Buffer<float> x(4096, "x");
  auto sectors = [&](u32 floats, u32 shift) {
    auto o = run("sectors", {{1, 1, 1}, {32, 1, 1}, 0}, [&] { (void)global<const float>(x).read(thread_index() * floats + shift); }, true);
    const emu::Line *l = o.line(emu::Access::GlobalLoad, 4);
    EXPECT_EQ(l->useful, 128u);
    return l->sectors;
  };
  EXPECT_EQ(sectors(1, 0), 4u);
  EXPECT_EQ(sectors(1, 3), 5u);
  EXPECT_EQ(sectors(8, 0), 32u);
  EXPECT_EQ(sectors(2, 0), 8u);
}

TEST(Emulator, ShufflesAndVotes) {
  bool right = true;
  expectClean(run("warp", {{1, 1, 1}, {64, 1, 1}, 0}, [&] {
    u32 l = lane_index();
    right &= shuffle_xor(static_cast<int>(l), 5) == static_cast<int>(l ^ 5);
    right &= shuffle_up(l, 3u) == (l < 3 ? l : l - 3);
    right &= shuffle_from(static_cast<float>(l), 7) == 7.0f;
    right &= ballot(l % 3 == 0) == 0x49249249u;
    float sum = 1;
    for (u32 m = 16; m; m /= 2) sum += shuffle_xor(sum, m);
    right &= sum == 32;
  }));
  EXPECT_TRUE(right);
}

TEST(Emulator, HalfPrecisionRoundsToNearestEven) {
  const std::pair<float, u16> cases[] = {{1.0f, 0x3c00}, {-2.0f, 0xc000}, {65504.0f, 0x7bff}, {65520.0f, 0x7c00}, {1.00048828125f, 0x3c00}, {1.00146484375f, 0x3c02}, {5.9604645e-8f, 0x0001}};
  for (auto [x, bits] : cases) EXPECT_EQ(from_float<f16>(x).bits, bits) << x;
  EXPECT_EQ(from_float<bf16>(1.00390625f).bits, 0x3f80);
  EXPECT_EQ(from_float<bf16>(1.01171875f).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(to_float(from_float<bf16>(NAN))));
  for (u32 i = 0; i < 0x7c00; i += 7) EXPECT_EQ(from_float<f16>(to_float(f16{static_cast<u16>(i)})).bits, i);
}

/// ldmatrix (plain for A, transposed for B stored as [k][n]) and mma against sums in double.
template <class T> void multiply() {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> a(256), b(128);
  for (T &v : a) v = from_float<T>(uniform(random));
  for (T &v : b) v = from_float<T>(uniform(random));
  float c[16][8] = {};
  expectClean(run("mma", {{1, 1, 1}, {32, 1, 1}, 1024}, [&] {
    shared<T> sa = shared_at<T>(0, 256), sb = shared_at<T>(512, 128);
    u32 l = lane_index();
    for (u32 i = l; i < 256; i += 32) sa.write(i, a[i]);
    for (u32 i = l; i < 128; i += 32) sb.write(i, b[i]);
    sync_threads();
    u32 fa[4], fb[2];
    ldmatrix(fa, sa, l % 16 * 16 + l / 16 * 8);
    ldmatrix_transposed(fb, sb, l % 16 * 8);
    float sum[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    mma_m16n8k16<T>(sum, fa, fb);
    for (u32 i = 0; i < 4; ++i) c[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2] = sum[i];
  }));
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      double sum = 0.5;
      for (int k = 0; k < 16; ++k) sum += static_cast<double>(to_float(a[m * 16 + k])) * to_float(b[k * 8 + n]);
      EXPECT_NEAR(c[m][n], sum, 1e-5) << m << "," << n;
    }
}
TEST(Emulator, MatrixFragmentsF16) { multiply<f16>(); }
TEST(Emulator, MatrixFragmentsBF16) { multiply<bf16>(); }

/// Where the PTX ISA has bytes of m16n8k32 ("Matrix fragments for mma.m16n8k32"): one element of a at a time picks out one row of b.
template <class A> void multiplyBytes() {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  int b[32][8], c[16][8], wrong = 0;
  for (auto &row : b)
    for (int &v : row) v = static_cast<int>(random() % 256) - 128;
  for (auto &row : c)
    for (int &v : row) v = static_cast<int>(random());
  const int value = static_cast<A>(200); // -56 as a signed byte
  expectClean(run("mma", {{1, 1, 1}, {32, 1, 1}, 0}, [&] {
    const u32 l = lane_index();
    u32 fb[2] = {};
    int fc[4];
    for (u32 k = 0; k < 32; ++k)
      if (k % 16 / 4 == l % 4) fb[k / 16] |= static_cast<u32>(b[k][l / 4] & 255) << k % 4 * 8;
    for (u32 i = 0; i < 4; ++i) fc[i] = c[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2];
    for (u32 m = 0; m < 16; ++m)
      for (u32 k = 0; k < 32; ++k) {
        u32 fa[4] = {};
        if (l / 4 == m % 8 && l % 4 == k % 16 / 4) fa[m / 8 + k / 16 * 2] = 200u << k % 4 * 8;
        int sum[4];
        mma_m16n8k32<A>(sum, fa, fb, fc);
        for (u32 i = 0; i < 4; ++i) {
          const u32 row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
          const int product = row == m ? value * b[k][column] : 0;
          wrong += static_cast<u32>(sum[i]) != static_cast<u32>(c[row][column]) + static_cast<u32>(product);
        }
      }
  }));
  EXPECT_EQ(wrong, 0);
}
TEST(Emulator, ByteFragmentsUnsigned) { multiplyBytes<u8>(); }
TEST(Emulator, ByteFragmentsSigned) { multiplyBytes<signed char>(); }
TEST(Emulator, BytesArePermuted) {
  EXPECT_EQ(byte_permute(0x33221100u, 0x77665544u, 0x3210), 0x33221100u);
  EXPECT_EQ(byte_permute(0x33221100u, 0x77665544u, 0x7531), 0x77553311u);
  EXPECT_EQ(byte_permute(0x33221100u, 0x77665544u, 0x0046), 0x00004466u);
}

TEST(Emulator, Tf32RoundsToNearestAwayFromZero) {
  auto bits = [](float x) { return emu::bitsOf<u32>(x); };
  const std::pair<float, float> cases[] = {
      {1.0f, 1.0f}, {-0.0f, -0.0f}, {0x1.ffcp0f, 0x1.ffcp0f}, // 11 bits stay
      {0x1.002p0f, 0x1.004p0f}, {-0x1.002p0f, -0x1.004p0f}, {0x1.006p0f, 0x1.008p0f}, // ties: to nearest even would give 1 and 0x1.008p0
      {0x1.001ffep0f, 0x1p0f}, {0x1.002002p0f, 0x1.004p0f}, {0x1.ffep0f, 2.0f},      // beside a tie; a carry into the exponent
      {0x1.ffdffep127f, 0x1.ffcp127f}, {0x1.ffep127f, INFINITY}, {-INFINITY, -INFINITY},
      {0x1p-137f, 0x1p-136f}, {0x1.8p-138f, 0.0f}}; // f32's exponents, subnormal numbers too
  for (auto [x, rounded] : cases) EXPECT_EQ(to_tf32(x), bits(rounded)) << x;
  for (u32 nan : {0x7fc00000u, 0x7f800001u, 0xffffffffu}) EXPECT_TRUE(std::isnan(emu::bitsOf<float>(to_tf32(emu::bitsOf<float>(nan)))));
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  for (int i = 0; i < 100000; ++i) {
    float x = emu::bitsOf<float>(static_cast<u32>(random()));
    if (std::abs(x) < 0x1.ffep127f) ASSERT_EQ(emu::bitsOf<float>(to_tf32(x)), tf32Of(x)) << x;
  }
}

/// One multiplication by a warp; a is 16x8, b 8x8, c 16x8, all row by row.
void multiplyTf32(const std::vector<float> &a, const std::vector<float> &b, float (&c)[16][8], bool round = true) {
  expectClean(run("mma", {{1, 1, 1}, {32, 1, 1}, 512}, [&] {
    shared<float> sa = shared_at<float>(0, 128);
    const u32 l = lane_index(), g = l / 4, t = l % 4;
    for (u32 i = l; i < 128; i += 32) sa.write(i, a[i]);
    sync_threads();
    u32 fa[4], fb[2] = {emu::bitsOf<u32>(b[t * 8 + g]), emu::bitsOf<u32>(b[(t + 4) * 8 + g])};
    ldmatrix(fa, sa, l % 16 * 8 + l / 16 * 4); // four rows of 16 bytes: what mma takes
    for (u32 &x : fa) x = round ? to_tf32(emu::bitsOf<float>(x)) : x;
    for (u32 &x : fb) x = round ? to_tf32(emu::bitsOf<float>(x)) : x;
    float sum[4];
    for (u32 i = 0; i < 4; ++i) sum[i] = c[g + i / 2 * 8][2 * t + i % 2];
    mma_m16n8k8_tf32(sum, fa, fb);
    for (u32 i = 0; i < 4; ++i) c[g + i / 2 * 8][2 * t + i % 2] = sum[i];
  }));
}
TEST(Emulator, MatrixFragmentsTf32) { // the only one of a meets every one of b: row, column and k of each register
  std::vector<float> b(64);
  for (int i = 0; i < 64; ++i) b[i] = static_cast<float>(1 + i);
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 8; ++k) {
      std::vector<float> a(128);
      a[row * 8 + k] = 1;
      float c[16][8] = {};
      multiplyTf32(a, b, c);
      for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 8; ++n) ASSERT_EQ(c[m][n], m == row ? b[k * 8 + n] : 0) << "a[" << row << "][" << k << "], c[" << m << "][" << n << "]";
    }
}
TEST(Emulator, MatricesOfTf32) { // against sums in double of operands that were rounded by definition
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> a(128), b(64);
  for (auto *v : {&a, &b})
    for (float &x : *v) x = uniform(random);
  float c[16][8], cut[16][8] = {};
  for (auto &row : c)
    for (float &x : row) x = 0.5f;
  multiplyTf32(a, b, c);
  multiplyTf32(a, b, cut, /*round=*/false); // a kernel that forgets to round: the hardware cuts
  double differing = 0;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      double sum = 0.5, sumOfCut = 0;
      for (int k = 0; k < 8; ++k) {
        sum += tf32Of(a[m * 8 + k]) * tf32Of(b[k * 8 + n]);
        auto cutOf = [](float x) { return static_cast<double>(emu::bitsOf<float>(emu::bitsOf<u32>(x) & ~0x1fffu)); };
        sumOfCut += cutOf(a[m * 8 + k]) * cutOf(b[k * 8 + n]);
      }
      EXPECT_NEAR(c[m][n], sum, 2e-6) << m << "," << n;
      EXPECT_NEAR(cut[m][n], sumOfCut, 2e-6) << m << "," << n;
      differing = std::max(differing, std::abs(sum - 0.5 - sumOfCut));
    }
  EXPECT_GT(differing, 1e-4); // the two are told apart
}

} // namespace
