// Attention against a naive double softmax: sizes around the tiles, GQA, both layouts, pitched caches, biases, masks of -inf, NaN rules, threads.
#include "kernels/cpu/kernels.h"
#include <cfloat>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

struct Case {
  int64_t batch = 1, heads = 2, kv = 2, queries = 5, keys = 7, dim = 16, valueDim = 16, threads = 1;
  bool headsFirst = false, guard = false, bias = true;
  int64_t pitch = 0;      // spare rows in the k/v cache
  double scale = 0.3;
  int mask = 0;           // 0 none, 1 causal, 2 every third key, 3 row 1 fully masked, 4 the first 600 keys, 5 causal and 6 padding with the lowest float,
                          // 7 all but key 0 and [liveBegin, liveEnd)
  int64_t liveBegin = 0, liveEnd = 0;
};
struct Bias {
  const Case *c;
  double at(int64_t b, int64_t h, int64_t q, int64_t t) const {
    if (c->mask == 1 && t > q + c->keys - c->queries) return -INFINITY;
    if (c->mask == 2 && t % 3 == 1) return -INFINITY;
    if (c->mask == 3 && q == 1) return -INFINITY;
    if (c->mask == 4 && t < 600) return -INFINITY;
    if (c->mask == 5 && t > q + c->keys - c->queries) return -FLT_MAX;
    if (c->mask == 6 && (t < 40 || t >= c->keys - 33 || q == 2)) return -FLT_MAX;
    if (c->mask == 7 && t > 0 && (t < c->liveBegin || t >= c->liveEnd)) return -INFINITY;
    return float((b * 5 + h * 3 + q * 7 + t * 11) % 17 - 8) / 8;
  }
};
void biasRow(void *env, float *row, int64_t b, int64_t h, int64_t q, int64_t t0, int64_t count) {
  for (int64_t i = 0; i < count; ++i) row[i] = float(static_cast<Bias *>(env)->at(b, h, q, t0 + i));
}

void check(const Case &c) {
  std::mt19937 random(uint32_t(c.queries * 31 + c.keys * 17 + c.dim));
  std::uniform_real_distribution<float> uniform(-2, 2);
  const int64_t S = c.queries, T = c.keys, H = c.heads, G = c.kv, D = c.dim, V = c.valueDim, P = T + c.pitch;
  std::vector<float> q(c.batch * H * S * D), k(c.batch * G * P * D), v(c.batch * G * P * V), out(c.batch * H * S * V, -77.0f);
  for (auto *x : {&q, &k, &v})
    for (float &e : *x) e = uniform(random);
  tare_attention args = {q.data(), k.data(), v.data(), out.data(), c.batch, H, G, S, T, D, V, {}, {}, {}, {}, c.scale, c.guard};
  auto strides = [&](int64_t *s, int64_t heads, int64_t length, int64_t dim) {
    s[0] = heads * length * dim;
    s[1] = c.headsFirst ? length * dim : dim;
    s[2] = c.headsFirst ? dim : heads * dim;
  };
  strides(args.q_stride, H, S, D), strides(args.k_stride, G, P, D), strides(args.v_stride, G, P, V), strides(args.out_stride, H, S, V);
  std::vector<char> scratch(TARE_ATTENTION_SCRATCH(D, V) + 64);
  void *aligned = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  Bias bias{&c};
  for (int64_t t = 0; t < c.threads; ++t) tare_attention_f32(&args, c.bias ? biasRow : nullptr, &bias, t, c.threads, aligned);
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t s = 0; s < S; ++s) {
        const int64_t g = h / (H / G);
        std::vector<double> p(T);
        double top = -INFINITY, sum = 0;
        for (int64_t t = 0; t < T; ++t) {
          double dot = 0;
          for (int64_t d = 0; d < D; ++d) dot += double(q[b * args.q_stride[0] + h * args.q_stride[1] + s * args.q_stride[2] + d]) * k[b * args.k_stride[0] + g * args.k_stride[1] + t * args.k_stride[2] + d];
          p[t] = dot * c.scale + (c.bias ? bias.at(b, h, s, t) : 0.0);
          top = std::max(top, p[t]);
        }
        for (double &x : p) sum += x = std::exp(x - top);
        for (int64_t d = 0; d < V; ++d) {
          double expected = 0;
          for (int64_t t = 0; t < T; ++t) expected += p[t] / sum * v[b * args.v_stride[0] + g * args.v_stride[1] + t * args.v_stride[2] + d];
          const float actual = out[b * args.out_stride[0] + h * args.out_stride[1] + s * args.out_stride[2] + d];
          if (std::isnan(expected)) {
            if (c.guard) ASSERT_EQ(actual, 0.0f);
            else ASSERT_TRUE(std::isnan(actual)) << actual;
          } else {
            ASSERT_NEAR(actual, expected, 4e-6) << "S " << S << " T " << T << " D " << D << " V " << V << " b " << b << " h " << h << " s " << s << " d " << d << " mask " << c.mask;
          }
        }
      }
}

TEST(Attention, Sizes) {
  for (int64_t S : {1, 2, 13, 14, 15, 30})
    for (int64_t T : {1, 15, 16, 31, 33, 64})
      for (int64_t D : {1, 8, 32, 40}) {
        Case c;
        c.queries = S, c.keys = T, c.dim = D, c.valueDim = (D + 5) % 48 + 1, c.threads = 1 + (S + T) % 3, c.headsFirst = D % 16 == 0;
        check(c);
      }
}
TEST(Attention, LongSequencesCrossKeyAndQueryTiles) {
  for (int64_t T : {511, 512, 513, 1100})
    for (int mask : {0, 1, 2, 4, 5, 6}) {
      Case c;
      c.queries = T == 1100 ? 3 : 40, c.keys = T, c.mask = mask, c.threads = 2;
      check(c);
    }
  Case c;
  c.heads = 1, c.kv = 1, c.queries = 500, c.keys = 500, c.mask = 1, c.dim = 32, c.valueDim = 32, c.threads = 3;
  check(c);
}
TEST(Attention, LiveRangesBeginAndEndAnywhere) {
  for (int64_t begin : {512, 513, 519, 520, 527, 528, 529, 560})
    for (int64_t length : {1, 2, 7, 8, 9, 15, 16, 17, 33, 138, 139, 140}) {
      Case c; // the second tile of keys: every row has met key 0, so that masked keys may be skipped
      c.queries = 9, c.keys = 700, c.mask = 7, c.liveBegin = begin, c.liveEnd = begin + length;
      check(c);
    }
}
TEST(Attention, NoKeysGiveNaN) {
  std::vector<float> q(16, 1.0f), out(16, 5.0f);
  tare_attention args = {q.data(), q.data(), q.data(), out.data(), 1, 1, 1, 1, 0, 16, 16, {16, 16, 16}, {16, 16, 16}, {16, 16, 16}, {16, 16, 16}, 1.0, 0};
  std::vector<float> scratch(TARE_ATTENTION_SCRATCH(16, 16) / 4 + 16, 3.0f);
  tare_attention_f32(&args, nullptr, nullptr, 0, 1, reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64));
  for (float x : out) EXPECT_TRUE(std::isnan(x));
}
TEST(Attention, GroupedHeads) {
  for (int64_t S : {1, 3, 20})
    for (bool headsFirst : {false, true}) {
      Case c;
      c.batch = 2, c.heads = 6, c.kv = 2, c.queries = S, c.keys = 45, c.headsFirst = headsFirst, c.pitch = 9, c.mask = 1, c.threads = 2;
      check(c);
    }
  Case c;
  c.heads = 40, c.kv = 1, c.queries = 1, c.keys = 600, c.dim = 64, c.valueDim = 64;
  check(c);
}
TEST(Attention, DecodingReadsTheCacheInPlace) {
  for (int64_t T : {1, 33, 700})
    for (int64_t dim : {7, 32, 96})
      for (int64_t valueDim : {32, 40}) {
        Case c;
        c.heads = 4, c.kv = 2, c.queries = 1, c.keys = T, c.dim = dim, c.valueDim = valueDim, c.pitch = 20, c.mask = 6, c.threads = 2, c.headsFirst = dim == 32;
        check(c);
      }
}
TEST(Attention, NoBias) {
  Case c;
  c.bias = false, c.queries = 33, c.keys = 70, c.scale = -0.2;
  check(c);
}
TEST(Attention, FullyMaskedRowIsNaNLikeSoftmaxOrZeroWithGuard) {
  for (bool guard : {false, true})
    for (int64_t T : {9, 700}) {
      Case c;
      c.keys = T, c.mask = 3, c.guard = guard;
      check(c);
    }
}
TEST(Attention, NaNInOneScoreSpoilsItsRowOnly) {
  Case c;
  c.keys = 600, c.mask = 0;
  std::vector<float> q(2 * 5 * 16, 1.0f), k(2 * 600 * 16, 0.5f), v(2 * 600 * 16, 1.0f), out(q.size());
  q[(1 * 2 + 0) * 16 + 3] = NAN; // [B,S,H,D]: query 1, head 0
  tare_attention args = {q.data(), k.data(), v.data(), out.data(), 1, 2, 2, 5, 600, 16, 16, {160, 16, 32}, {0, 16, 32}, {0, 16, 32}, {160, 16, 32}, 0.25, 0};
  std::vector<char> scratch(TARE_ATTENTION_SCRATCH(16, 16) + 64);
  tare_attention_f32(&args, nullptr, nullptr, 0, 1, reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64));
  for (int64_t s = 0; s < 5; ++s)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t d = 0; d < 16; ++d) {
        const float x = out[(s * 2 + h) * 16 + d];
        if (s == 1 && h == 0) EXPECT_TRUE(std::isnan(x));
        else EXPECT_NEAR(x, 1.0f, 1e-6);
      }
}

} // namespace
