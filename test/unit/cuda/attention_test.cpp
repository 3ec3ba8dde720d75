// Attention templates on the emulator against softmax in double: causal and additive masks, whole rows masked, GQA, KV caches with room, layouts, every head size.
#include "test/unit/cuda/attention_kernels.cuh"
#include "test/unit/cuda/Launch.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tare;
using test::Buffer;
using test::run;

namespace {

struct Case {
  i64 batch, heads, groups, queries, keys;
  bool causal = false, heads_last = true, nanGuard = false;
  i64 room = 0;        // rows behind the last key: a cache with more capacity
  i64 maskedFrom = -1; // keys from here on are masked in batch 0
  float maskValue = -INFINITY;
};

template <class T, class Kernel> void check(const char *name, Kernel kernel, i64 D, i64 V, u32 tileQueries, u32 sharedBytes, double tolerance, Case c, bool counted = false) {
  SCOPED_TRACE(testing::Message() << name << " B=" << c.batch << " H=" << c.heads << " G=" << c.groups << " S=" << c.queries << " T=" << c.keys << " causal=" << c.causal << " seed=" << test::seed());
  std::mt19937 random(static_cast<unsigned>(test::seed() + c.queries * 100 + c.keys));
  std::normal_distribution<float> normal(0, 1);
  auto fill = [&](size_t count) {
    std::vector<T> v(count);
    for (T &x : v) x = from_float<T>(normal(random));
    return v;
  };
  const i64 capacity = c.keys + c.room;
  Buffer<T> q(fill(c.batch * c.heads * c.queries * D), "q"), k(fill(c.batch * c.groups * capacity * D), "k"), v(fill(c.batch * c.groups * capacity * V), "v"), out(c.batch * c.heads * c.queries * V, "out");
  if (c.room) // what lies behind the keys must not matter
    for (i64 i = 0; i < c.batch * c.groups * capacity * V; ++i)
      if ((c.heads_last ? i / V / c.groups % capacity : i / V % capacity) >= c.keys) v[i] = from_float<T>(NAN);
  std::vector<float> values(c.batch * c.keys, 0.0f);
  for (i64 j = 0; c.maskedFrom >= 0 && j < c.keys; ++j)
    if (j >= c.maskedFrom) values[j] = c.maskValue;
  Buffer<float> mask(values, "mask");
  auto strides = [&](i64 heads, i64 rows, i64 columns) {
    return c.heads_last ? Strides{rows * heads * columns, columns, heads * columns} : Strides{heads * rows * columns, rows * columns, columns};
  };
  Attention a{c.heads, c.groups, c.queries, c.keys, strides(c.heads, c.queries, D), strides(c.groups, capacity, D), strides(c.groups, capacity, V), strides(c.heads, c.queries, V),
              static_cast<float>(1 / std::sqrt(static_cast<double>(D))), c.nanGuard};
  emu::Geometry g{{static_cast<u32>((c.queries + tileQueries - 1) / tileQueries), static_cast<u32>(c.heads), static_cast<u32>(c.batch)}, {128, 1, 1}, sharedBytes};
  auto o = run(name, g, [&] { kernel(q, k, v, mask, out, a, c.causal); }, counted);
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  if (counted) test::print(name, o);
  for (i64 b = 0; b < c.batch; ++b)
    for (i64 h = 0; h < c.heads; ++h)
      for (i64 s = 0; s < c.queries; ++s) {
        std::vector<double> score(c.keys);
        double most = -INFINITY, sum = 0;
        for (i64 t = 0; t < c.keys; ++t) {
          double dot = 0;
          for (i64 d = 0; d < D; ++d)
            dot += static_cast<double>(to_float(q[b * a.q.batch + h * a.q.head + s * a.q.row + d])) * to_float(k[b * a.k.batch + h / (c.heads / c.groups) * a.k.head + t * a.k.row + d]);
          score[t] = c.causal && t > s + c.keys - c.queries ? -INFINITY : dot * a.scale + values[b * c.keys + t];
          most = std::max(most, score[t]);
        }
        for (double &p : score) sum += p = std::exp(p - most);
        for (i64 d = 0; d < V; ++d) {
          double expected = 0;
          for (i64 t = 0; t < c.keys; ++t) expected += score[t] / sum * to_float(v[b * a.v.batch + h / (c.heads / c.groups) * a.v.head + t * a.v.row + d]);
          float got = to_float(out[b * a.out.batch + h * a.out.head + s * a.out.row + d]);
          if (std::isnan(expected)) ASSERT_TRUE(c.nanGuard ? got == 0.0f : std::isnan(got)) << s << "," << d << " " << got;
          else ASSERT_NEAR(got, expected, tolerance) << "b" << b << " h" << h << " s" << s << " d" << d;
        }
      }
}

const Case cases[] = {
    {1, 1, 1, 1, 1},
    {2, 2, 2, 33, 33, true},
    {1, 4, 2, 17, 50, true, false},            // GQA, a past, heads first
    {2, 3, 1, 1, 70, true, true, false, 30},   // decode from a cache with room
    {2, 2, 2, 40, 100, false, true, false, 0, 60},
    {1, 2, 2, 70, 70, false, true, false, 0, 40, -1e9f},
    {2, 1, 1, 5, 40, false, true, false, 0, 0}, // everything masked in batch 0: NaN
    {2, 1, 1, 5, 40, false, true, true, 0, 0},  // the same, guarded: 0
    {1, 1, 1, 20, 10, true},                    // causal with fewer keys than queries: the first rows see nothing
};

TEST(CudaAttention, F32Head32) {
  for (const Case &c : cases) check<float>("attention_f32_32", attention_f32_32, 32, 32, 32, AttentionF32<32, 32>::kSharedBytes, 5e-6, c, c.keys == 100);
}
TEST(CudaAttention, F32OtherHeads) {
  check<float>("attention_f32_64", attention_f32_64, 64, 64, 32, AttentionF32<64, 64>::kSharedBytes, 5e-6, {1, 2, 1, 37, 45, true});
  check<float>("attention_f32_24_40", attention_f32_24_40, 24, 40, 32, AttentionF32<24, 40>::kSharedBytes, 5e-6, {2, 2, 1, 37, 45, true});
  check<float>("attention_f32_128", attention_f32_128, 128, 128, 32, AttentionF32<128, 128>::kSharedBytes, 5e-6, {1, 1, 1, 37, 45, true});
}
TEST(CudaAttention, TensorCoresHead64) {
  for (const Case &c : cases) check<f16>("attention_mma_f16_64", attention_mma_f16_64, 64, 64, 64, AttentionMma<64, f16, f16>::kSharedBytes, 4e-3, c, c.keys == 100);
}
TEST(CudaAttention, TensorCoresOtherHeads) {
  const Case c{1, 2, 1, 70, 133, true};
  check<f16>("attention_mma_f16_32", attention_mma_f16_32, 32, 32, 64, AttentionMma<32, f16, f16>::kSharedBytes, 4e-3, c);
  check<f16>("attention_mma_f16_80", attention_mma_f16_80, 80, 80, 64, AttentionMma<80, f16, f16>::kSharedBytes, 4e-3, c);
  check<bf16>("attention_mma_bf16_64", attention_mma_bf16_64, 64, 64, 64, AttentionMma<64, f16, f16>::kSharedBytes, 3e-2, c);
  check<bf16>("attention_mma_bf16_128", attention_mma_bf16_128, 128, 128, 64, AttentionMma<128, f16, f16>::kSharedBytes, 3e-2, c);
}

TEST(CudaAttention, TensorCoresFromF32InMemory) {
  for (const Case &c : cases) check<float>("attention_mma_f32_f16_64", attention_mma_f32_f16_64, 64, 64, 64, AttentionMma<64, f16, float>::kSharedBytes, 8e-3, c, c.keys == 100);
  const Case c{1, 2, 1, 70, 133, true};
  check<float>("attention_mma_f32_f16_32", attention_mma_f32_f16_32, 32, 32, 64, AttentionMma<32, f16, float>::kSharedBytes, 8e-3, c);
  check<float>("attention_mma_f32_f16_128", attention_mma_f32_f16_128, 128, 128, 64, AttentionMma<128, f16, float>::kSharedBytes, 8e-3, c);
  check<float>("attention_mma_f32_bf16_48", attention_mma_f32_bf16_48, 48, 48, 64, AttentionMma<48, bf16, float>::kSharedBytes, 6e-2, c);
}

} // namespace
