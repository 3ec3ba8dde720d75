// The fused check on the emulator against the definition in double (spec 6): which rows are evaluated, carried bits, tiles that meet batch borders, chunked prefill,
// no anchors at all. A row whose distance is within float rounding of its threshold would decide nothing: thresholds are put into gaps between distances.
#include "test/unit/cuda/check_kernels.cuh"
#include "test/unit/cuda/Launch.h"
#include "test/unit/cuda/Tf32.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tare;
using test::Buffer;
using test::run;

namespace {

template <class T> std::vector<T> randomOf(size_t count, std::mt19937 &random) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<T> v(count);
  for (T &x : v) x = from_float<T>(normal(random));
  return v;
}

/// An operand of the GEMM as the kernel multiplies it.
template <class Operand, class T> double operandOf(T x) {
  if constexpr (std::is_same_v<Operand, test::Tf32>) return test::tf32Of(to_float(x));
  else return to_float(x);
}

struct Request {
  i64 batch, tokens, past = 0;
  std::vector<std::vector<int>> anchors; // per batch element, padded with -1 here
  bool given = true;
  std::vector<i64> first = {}; // as CheckRun's; empty: 0
  std::vector<u32> carried = {};
};

bool evaluates(const Request &request, int window, i64 b, i64 t) {
  const i64 position = request.past + t;
  const i64 first = request.first.empty() ? 0 : request.first[b];
  bool evaluated = position == first;
  for (int a : request.anchors[b]) evaluated |= a >= 0 && position < a && position >= a - window && position >= (first < 0 ? ~first : first);
  return evaluated;
}

/// One model: weights, their int4 form, and thresholds for a set of rows.
template <class Shape, class T> struct Model {
  static constexpr int K = Shape::kHeads, R = Shape::kRank, D = Shape::kWidth, P = Shape::kPanels, G = (D + Shape::kGroup - 1) / Shape::kGroup;
  i64 n;
  std::vector<T> b, w;
  std::vector<float> bias, e, p, tau;
  std::vector<int> q;
  std::vector<float> scale;

  Model(i64 n, std::mt19937 &random, float most = 7) : n(n), b(randomOf<T>(D * n, random)), w(randomOf<T>(K * R * D, random)), bias(randomOf<float>(n, random)), e(randomOf<float>(K * n, random)),
                                      p(randomOf<float>(K * R, random)), tau(K), q(K * R * D), scale(K * R * G) {
    for (int row = 0; row < K * R; ++row)
      for (int g = 0; g < G; ++g) {
        float largest = 0;
        for (int d = g * Shape::kGroup; d < std::min(D, (g + 1) * Shape::kGroup); ++d) largest = std::max(largest, std::fabs(to_float(w[row * D + d])));
        scale[row * G + g] = largest / most;
        for (int d = g * Shape::kGroup; d < std::min(D, (g + 1) * Shape::kGroup); ++d) q[row * D + d] = static_cast<int>(std::lround(to_float(w[row * D + d]) / scale[row * G + g]));
      }
  }
  double distance(const T *h, int head, bool dense) const {
    double sum = 0;
    for (int r = 0; r < R; ++r) {
      double z = 0;
      for (int d = 0; d < D; ++d) {
        int row = head * R + r;
        double weight = dense ? static_cast<double>(to_float(w[row * D + d])) : static_cast<double>(q[row * D + d]) * scale[row * G + d / Shape::kGroup];
        z += weight * to_float(h[d]);
      }
      sum += (z - p[head * R + r]) * (z - p[head * R + r]);
    }
    return std::sqrt(sum);
  }
  /// A threshold near the median, in the widest gap around it.
  void choose(const std::vector<T> &h, i64 rows, bool dense) {
    for (int head = 0; head < K; ++head) {
      std::vector<double> d;
      for (i64 r = 0; r < rows; ++r) d.push_back(distance(h.data() + r * D, head, dense));
      std::sort(d.begin(), d.end());
      size_t at = d.size() / 2;
      for (size_t i = d.size() / 4; i + 1 < d.size() * 3 / 4; ++i)
        if (d[i + 1] - d[i] > d[at + 1 < d.size() ? at + 1 : at] - d[at]) at = i;
      tau[head] = static_cast<float>(at + 1 < d.size() ? (d[at] + d[at + 1]) / 2 : d[at] + 1);
    }
  }
  std::vector<T> panels() const {
    std::vector<T> packed((n + 31) / 32 * D * 32, from_float<T>(0));
    for (i64 r = 0; r < D; ++r)
      for (i64 c = 0; c < n; ++c) packed[(c / 32 * D + r) * 32 + c % 32] = b[r * n + c];
    return packed;
  }
  std::vector<u8> int4() const { // of what fits: int8 models have no use for it
    std::vector<u8> packed(static_cast<size_t>(K) * P * D * 16, 0x88);
    for (int k = 0; k < K; ++k)
      for (int r = 0; r < R; ++r)
        for (int d = 0; d < D; ++d) {
          u8 &byte = packed[((static_cast<size_t>(k) * P + r / 32) * D + d) * 16 + r % 16];
          int value = q[(k * R + r) * D + d] + 8;
          byte = static_cast<u8>(r % 32 < 16 ? (byte & 0xf0) | value : (byte & 0x0f) | value << 4);
        }
    return packed;
  }
  template <class V, class F> std::vector<V> rows32(int steps, V zero, F value) const {
    std::vector<V> packed(static_cast<size_t>(K) * P * steps * 32, zero);
    for (int k = 0; k < K; ++k)
      for (int r = 0; r < R; ++r)
        for (int s = 0; s < steps; ++s) packed[((static_cast<size_t>(k) * P + r / 32) * steps + s) * 32 + r % 32] = value(k * R + r, s);
    return packed;
  }
};

/// Which form of the kernel: the window test inside and int4, or rows listed before the launch and int8.
enum class Form { Anchors, Listed };

/// `Operand`: what both operands of the GEMM are rounded to; the distances are not. `again` (Form::Listed) gets the buffers once more and an `out` of its own, which must come out the same in every bit.
template <class Shape, class T, Form form = Form::Anchors, class Operand = T, class Kernel, class Again = std::nullptr_t>
void check(const char *name, Kernel kernel, i64 n, i64 columnTiles, u32 sharedBytes, double tolerance, const Request &request, bool counted = false, Again again = {}) {
  constexpr int K = Shape::kHeads, D = Shape::kWidth;
  SCOPED_TRACE(testing::Message() << name << " B=" << request.batch << " tokens=" << request.tokens << " past=" << request.past << " seed=" << test::seed());
  std::mt19937 random(static_cast<unsigned>(test::seed() + request.tokens));
  const i64 m = request.batch * request.tokens;
  Model<Shape, T> model(n, random, form == Form::Listed ? 127 : 7);
  auto h = randomOf<T>(m * D, random);
  model.choose(h, m, !request.given);

  size_t most = 0;
  for (auto &a : request.anchors) most = std::max(most, a.size());
  std::vector<int> anchors;
  for (i64 b = 0; b < request.batch; ++b)
    for (size_t i = 0; i < most; ++i) anchors.push_back(i < request.anchors[b].size() ? request.anchors[b][i] : -1), std::sort(anchors.begin() + b * most, anchors.end());
  anchors.push_back(-1); // a buffer is never empty
  Buffer<T> dh(h, "h"), db(model.panels(), "b"), ddense(model.rows32(D, from_float<T>(0), [&](int row, int d) { return model.w[row * D + d]; }), "dense");
  Buffer<float> bias(model.bias, "bias"), e(model.e, "e"), tau(model.tau, "tau"), out(m * n, "out");
  Buffer<float> scale(model.rows32(Model<Shape, T>::G, 0.0f, [&](int row, int g) { return model.scale[row * Model<Shape, T>::G + g]; }), "scale");
  Buffer<float> p(model.rows32(1, 0.0f, [&](int row, int) { return model.p[row]; }), "p");
  Buffer<u8> q(model.int4(), "q");
  Buffer<int> danchors(anchors, "anchors");
  Buffer<i64> first(request.first.empty() ? std::vector<i64>(request.batch, 0) : request.first, "first");
  Buffer<u32> carried(request.carried.empty() ? std::vector<u32>(request.batch, 0) : request.carried, "carried"), last(request.batch, "last");
  CheckRun r{danchors, request.given ? static_cast<i64>(most) : -1, first, request.tokens, request.past, carried, last};
  emu::Geometry g{{static_cast<u32>((n + 64 * columnTiles - 1) / (64 * columnTiles)), static_cast<u32>((m + 63) / 64), 1}, {128, 1, 1}, sharedBytes};
  std::vector<i64> listed;
  for (i64 row = 0; row < m; ++row)
    if (evaluates(request, Shape::kWindow, row / request.tokens, row % request.tokens)) listed.push_back(row);
  const i64 listedCount = request.given ? static_cast<i64>(listed.size()) : -1;
  listed.push_back(0); // a buffer is never empty
  Buffer<i64> rows(listed, "rows");
  Buffer<signed char> q8(model.template rows32<signed char>(D, 0, [&](int row, int d) { return static_cast<signed char>(model.q[row * D + d]); }), "q8");
  auto o = run(name, g, [&] {
    if constexpr (form == Form::Listed) kernel(dh, db, bias, e, q8, scale, ddense, p, tau, out, m, n, columnTiles, ListedRun{rows, listedCount, request.tokens, carried, last});
    else kernel(dh, db, bias, e, q, scale, ddense, p, tau, out, m, n, columnTiles, r);
  }, counted);
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  if (counted) test::print(name, o);
  if constexpr (!std::is_same_v<Again, std::nullptr_t>) {
    Buffer<float> out2(m * n, "out2"), distances((listedCount < 0 ? m : listedCount) * K * Shape::kPanels, "distances");
    Buffer<u32> last2(request.batch, "last2");
    ListedRun listedRun{rows, listedCount, request.tokens, carried, last2};
    auto first = run("distances", {{7, 1, 1}, {128, 1, 1}, Shape::Fixed::kBytes}, [&] { again.distances(dh, q8, scale, ddense, p, distances, m, listedRun); });
    ASSERT_EQ(static_cast<int>(first.fault()), 0) << first.text();
    dh.forget(), p.forget(), distances.forget(), rows.forget();
    auto second = run("carried", g, [&] { again.carried(dh, db, bias, e, tau, distances, out2, m, n, columnTiles, listedRun); });
    ASSERT_EQ(static_cast<int>(second.fault()), 0) << second.text();
    ASSERT_EQ(std::memcmp(&out2[0], &out[0], sizeof(float) * m * n), 0) << "the split form gives other results";
    ASSERT_EQ(std::memcmp(&last2[0], &last[0], sizeof(u32) * request.batch), 0);
  }

  int evaluations = 0, differing = 0;
  for (i64 b = 0; b < request.batch; ++b) {
    u32 bits = carried[b];
    for (i64 t = 0; t < request.tokens; ++t) {
      const i64 row = b * request.tokens + t;
      bool evaluated = !request.given || evaluates(request, Shape::kWindow, b, t);
      u32 own = 0;
      for (int k = 0; k < K; ++k) own |= static_cast<u32>(model.distance(h.data() + row * D, k, !request.given) < model.tau[k]) << k;
      if (evaluated) bits = own, ++evaluations;
      differing += own != bits;
      if (counted && row % 16) continue; // every bit, some of the products
      for (i64 c = 0; c < n; ++c) {
        double sum = model.bias[c];
        for (int d = 0; d < D; ++d) sum += operandOf<Operand>(h[row * D + d]) * operandOf<Operand>(model.b[d * n + c]);
        for (int k = 0; k < K; ++k) sum += (bits >> k & 1) * static_cast<double>(model.e[k * n + c]);
        ASSERT_NEAR(out[row * n + c], 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0))), tolerance) << "b" << b << " t" << t << " column " << c;
      }
    }
    ASSERT_EQ(last[b], bits) << b;
  }
  if (request.given && request.tokens > 20) EXPECT_GT(differing, 0) << "carried bits never differ from the row's own: the case shows nothing";
  printf("%s: %d of %lld rows evaluated\n", name, evaluations, m);
}

const Request requests[] = {
    {1, 1, 0, {{}}},
    {1, 150, 0, {{20, 21, 100, 100, -1, 140}}},
    {3, 50, 0, {{10}, {2, 49, 500}, {}}},           // tiles meet batch borders; a window clipped at the start; an anchor beyond the end
    {2, 70, 40, {{41, 90}, {30, 43}}, true, {~40, ~40}, {5, 2}}, // a later chunk: windows that began before it, bits carried into it
    {2, 40, 0, {{30, 9}, {}}, true, {7, 0}, {1, 3}},   // left padding: the first unmasked token is 7, so the second window of the first element is cut off
    {2, 45, 0, {{}, {}}, false},                    // no anchors given: dense
};

TEST(CudaCheck, FusedF32) {
  for (const Request &r : requests) check<SmallCheck, float>("ffn_up_checked_f32", ffn_up_checked_f32, 512, 8, kGemmF32CheckedBytes<SmallCheck, float>, 1e-4, r, r.tokens == 150);
}
TEST(CudaCheck, FusedOddSizes) {
  for (const Request &r : requests) check<OddCheck, float>("ffn_up_checked_odd", ffn_up_checked_odd, 150, 2, kGemmF32CheckedBytes<OddCheck, float>, 1e-4, r);
}
TEST(CudaCheck, RowsListedBefore) {
  for (const Request &r : requests) check<SmallCheck, float, Form::Listed>("ffn_up_checked_listed", ffn_up_checked_listed, 200, 2, kGemmF32CheckedBytes<SmallCheck, float>, 1e-4, r);
}
TEST(CudaCheck, FusedTensorCores) { check<WideCheck, f16>("ffn_up_checked_f16", ffn_up_checked_f16, 128, 2, kGemmMmaCheckedBytes<WideCheck>, 2e-3, requests[3]); }
template <class Distances, class Carried> struct Split {
  Distances distances;
  Carried carried;
};
template <class D, class C> Split(D, C) -> Split<D, C>;
TEST(CudaCheck, SplitFormGivesTheSameBits) {
  for (const Request &r : requests) {
    check<SmallCheck, float, Form::Listed>("split_small", ffn_up_checked_listed, 200, 2, kGemmF32CheckedBytes<SmallCheck, float>, 1e-4, r, false, Split{split_small_distances, split_small_carried});
    check<OddCheck, float, Form::Listed>("split_odd", fused_odd_int8, 150, 2, kGemmF32CheckedBytes<OddCheck, float>, 1e-4, r, false, Split{split_odd_distances, split_odd_carried});
  }
  for (const Request &r : requests)
    check<OddCheck, float, Form::Listed, test::Tf32>("split_odd_tf32", fused_odd_tf32, 150, 2, kGemmTf32CheckedBytes<OddCheck, float>, 1e-4, r, false, Split{split_odd_tf32_distances, split_odd_tf32_carried});
  check<WideCheck, f16, Form::Listed>("split_wide", fused_wide_int8, 128, 2, kGemmMmaCheckedBytes<WideCheck>, 2e-3, requests[3], false, Split{split_wide_distances, split_wide_carried});
}

} // namespace
