// The support functions that LLVM may call, under other names, against libc and exact conversion rules.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

extern "C" {
void *support_memcpy(void *, const void *, size_t);
void *support_memset(void *, int, size_t);
void *support_memmove(void *, const void *, size_t);
int support_memcmp(const void *, const void *, size_t);
double support_fmod(double, double);
float support_fmodf(float, float);
__bf16 support_truncsfbf2(float);
__bf16 support_truncdfbf2(double);
_Float16 support_truncdfhf2(double);
}

namespace {

TEST(Support, Memory) {
  std::mt19937 random(1);
  std::vector<unsigned char> from(600), to(600), expected(600);
  for (auto &b : from) b = static_cast<unsigned char>(random());
  for (size_t size = 0; size < 300; ++size)
    for (size_t offset : {0, 1, 7, 33}) {
      to.assign(600, 0xee), expected = to;
      memcpy(expected.data() + offset, from.data() + 3, size);
      support_memcpy(to.data() + offset, from.data() + 3, size);
      ASSERT_EQ(to, expected);
      memset(expected.data() + offset, 0x5a, size);
      support_memset(to.data() + offset, 0x5a, size);
      ASSERT_EQ(to, expected);
      for (int shift : {-5, 0, 5, 70}) {
        to = from, expected = from;
        memmove(expected.data() + 10 + shift, expected.data() + 10, size);
        support_memmove(to.data() + 10 + shift, to.data() + 10, size);
        ASSERT_EQ(to, expected) << size << " " << shift;
      }
    }
  EXPECT_EQ(support_memcmp("abc", "abd", 3) < 0, true);
  EXPECT_EQ(support_memcmp("abc", "abd", 2), 0);
}
TEST(Support, Fmod) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100000; ++i) {
    double x, y;
    uint64_t u = random(), v = random();
    memcpy(&x, &u, 8), memcpy(&y, &v, 8);
    if (i % 2) x = double(int64_t(u)) / 1e6, y = double(int64_t(v) % 100000) / 37;
    const double a = support_fmod(x, y), b = std::fmod(x, y);
    if (std::isnan(b)) ASSERT_TRUE(std::isnan(a));
    else ASSERT_EQ(memcmp(&a, &b, 8), 0) << x << " " << y << " " << a << " " << b;
  }
  EXPECT_EQ(support_fmodf(5.5f, 2.0f), 1.5f);
  EXPECT_TRUE(std::signbit(support_fmod(-4.0, 2.0)));
}
uint16_t bits(__bf16 b) { uint16_t u; memcpy(&u, &b, 2); return u; }
TEST(Support, Bf16RoundsToNearestEven) {
  auto f = [](uint32_t u) { float x; memcpy(&x, &u, 4); return x; };
  EXPECT_EQ(bits(support_truncsfbf2(f(0x3f800000))), 0x3f80);
  EXPECT_EQ(bits(support_truncsfbf2(f(0x3f808000))), 0x3f80);
  EXPECT_EQ(bits(support_truncsfbf2(f(0x3f818000))), 0x3f82);
  EXPECT_EQ(bits(support_truncsfbf2(f(0x3f808001))), 0x3f81);
  EXPECT_EQ(bits(support_truncsfbf2(f(0x7f7fffff))), 0x7f80);
  EXPECT_EQ(bits(support_truncsfbf2(f(0xff800000))), 0xff80);
  EXPECT_EQ(bits(support_truncsfbf2(f(0x7f800001))) & 0x7fc0, 0x7fc0);
  EXPECT_EQ(bits(support_truncdfbf2(1.0 + 1.0 / 256 + 1e-12)), 0x3f81); // a double rounding would give 0x3f80
  EXPECT_EQ(bits(support_truncdfbf2(1.0 + 1.0 / 256 - 1e-12)), 0x3f80);
  EXPECT_EQ(bits(support_truncdfbf2(-1e300)), 0xff80);
}
/// Doubles a hair beside, and exactly at, the middle of two neighbours: rounding twice would get these wrong.
template <typename Narrow, typename Round> void roundsOnce(Round round, uint16_t infinity) {
  auto value = [](uint16_t u) { Narrow n; memcpy(&n, &u, 2); return double(float(n)); };
  for (uint16_t u = 1; u + 1 < infinity; ++u) {
    const double low = value(u), high = value(uint16_t(u + 1)), middle = low + (high - low) / 2, hair = middle * 0x1p-50;
    for (double sign : {1.0, -1.0}) {
      ASSERT_EQ(double(float(round(sign * (middle - hair)))), sign * low) << u;
      ASSERT_EQ(double(float(round(sign * (middle + hair)))), sign * high) << u;
      ASSERT_EQ(double(float(round(sign * middle))), sign * (u % 2 ? high : low)) << u;
    }
  }
}
TEST(Support, NarrowFloatsFromDoubleRoundOnce) {
  roundsOnce<__bf16>(support_truncdfbf2, 0x7f80);
  roundsOnce<_Float16>(support_truncdfhf2, 0x7c00);
}
TEST(Support, F16FromDoubleRoundsOnce) {
  EXPECT_EQ(float(support_truncdfhf2(1.0 + 1.0 / 2048 + 1e-13)), 1.0f + 1.0f / 1024);
  EXPECT_EQ(float(support_truncdfhf2(1.0 + 1.0 / 2048 - 1e-13)), 1.0f);
  EXPECT_TRUE(std::isinf(float(support_truncdfhf2(1e300))));
  EXPECT_TRUE(std::isnan(float(support_truncdfhf2(NAN))));
}

} // namespace
