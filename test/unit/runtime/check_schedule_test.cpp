// Which rows the runtime lists for fidelity checks (spec 6), against a rule written out token by token. In: random anchors, masks, batches and splits; the seed is printed.
// Must hold: a whole pass and any split evaluate the same tokens, but for those at which a new context has nothing to carry; a run that is not
// committed leaves no trace; counts are those of the rows; kernels for GPUs, which get the anchors, find the same rows and those that carry into others.
#include "kernels/cuda/check_window.cuh"
#include "runtime/CheckSchedule.h"
#include "test/unit/cuda/Launch.h"
#include "gtest/gtest.h"
#include <random>
#include <set>

using namespace tare;

namespace {
constexpr int64_t kWindow = 3, kSymbol = 1, kAdd = 2;

/// Symbols and dims: batch, tokens, past, anchors; dim 4 is past + tokens. Inputs: ids [batch, tokens], anchors, mask [batch, past + tokens], cache [batch, past].
std::string planBytes() {
  fb::PlanT plan;
  plan.symbols = {"batch", "tokens", "past", "anchors"};
  auto dim = [&](std::vector<int64_t> code) {
    auto d = std::make_unique<fb::DimProgramT>();
    d->code = std::move(code);
    plan.dims.push_back(std::move(d));
  };
  for (int64_t i = 0; i < 4; ++i) dim({kSymbol, i});
  dim({kSymbol, 2, kSymbol, 1, kAdd, 0});
  auto input = [&](const char *name, fb::DType dtype, std::vector<uint32_t> dims, bool optional) {
    auto t = std::make_unique<fb::TensorT>();
    t->name = name, t->dtype = dtype, t->dims = std::move(dims), t->optional = optional;
    if (optional) t->default_kind = "empty";
    plan.inputs.push_back(std::move(t));
  };
  input("input_ids", fb::DType::I64, {0, 1}, false);
  input("anchors", fb::DType::I32, {0, 3}, true);
  input("attention_mask", fb::DType::I64, {0, 4}, true);
  input("cache", fb::DType::F32, {0, 2}, false);
  plan.checks = std::make_unique<fb::ChecksT>();
  plan.checks->anchors = 1, plan.checks->mask = 2, plan.checks->batch = 0, plan.checks->tokens = 1, plan.checks->past = 2, plan.checks->window = kWindow;
  for (int i = 0; i < 2; ++i) {
    auto check = std::make_unique<fb::CheckT>();
    check->heads = 3, check->precision = "f32";
    plan.checks->items.push_back(std::move(check));
  }
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  return {reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()};
}

struct Request {
  std::string bytes = planBytes();
  const fb::Plan &plan = *fb::GetPlan(bytes.data());
  Binding binding{plan};
  CheckSchedule schedule{plan};

  /// Rows of one run, and its carried bits replaced by `mark`.
  std::vector<int64_t> run(int64_t batch, int64_t tokens, int64_t past, const std::vector<int32_t> *anchors, const std::vector<int64_t> *mask, uint32_t mark, bool commit = true) {
    Shape shapes[4];
    auto given = [](int64_t a, int64_t b) { return Shape{Shape::From::Caller, 2, {a, b}}; };
    int64_t count = anchors ? static_cast<int64_t>(anchors->size()) / batch : 0;
    shapes[0] = given(batch, tokens), shapes[3] = given(batch, past);
    if (anchors) shapes[1] = given(batch, count);
    if (mask) shapes[2] = given(batch, past + tokens);
    static constexpr int32_t none = 0;
    EXPECT_TRUE(binding.bind(shapes, nullptr) && schedule.prepare(binding));
    EXPECT_TRUE(schedule.begin(anchors ? (anchors->empty() ? &none : anchors->data()) : nullptr, mask ? mask->data() : nullptr, past + tokens));
    auto &rows = *static_cast<CheckRows *>(schedule.address(1));
    EXPECT_EQ(rows.tokens, tokens);
    carried.assign(rows.carried, rows.carried + batch);
    for (int64_t b = 0; b < batch; ++b) rows.last[b] = mark + static_cast<uint32_t>(b);
    if (commit) schedule.commit();
    if (rows.count < 0) return {-1};
    EXPECT_EQ(schedule.counts().sparse, rows.count);
    return {rows.rows, rows.rows + rows.count};
  }
  std::vector<uint32_t> carried;
};

/// The rule, token by token.
std::set<int64_t> expected(const std::vector<int32_t> &anchors, int64_t element, int64_t count, int64_t length, int64_t first) {
  std::set<int64_t> tokens;
  if (first < length) tokens.insert(first);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t t = 0; t < length; ++t)
      if (t >= first && anchors[element * count + i] >= 0 && t < anchors[element * count + i] && t >= anchors[element * count + i] - kWindow) tokens.insert(t);
  return tokens;
}
} // namespace

TEST(CheckSchedule, AnySplitEvaluatesTheSameTokens) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    int64_t batch = 1 + below(3), length = 1 + below(40), count = below(8);
    std::vector<int32_t> anchors(static_cast<size_t>(batch * count));
    for (int32_t &a : anchors) a = static_cast<int32_t>(below(length + 12)) - 1;
    std::vector<int64_t> first(static_cast<size_t>(batch), 0);
    bool masked = below(2);
    if (masked)
      for (int64_t &f : first) f = below(length + 1);
    Request request;
    std::vector<std::set<int64_t>> seen(static_cast<size_t>(batch));
    for (int64_t past = 0; past < length;) {
      int64_t tokens = std::min(length - past, 1 + below(12));
      std::vector<int64_t> mask(static_cast<size_t>(batch * (past + tokens)));
      for (int64_t i = 0; i < batch * (past + tokens); ++i) mask[i] = i % (past + tokens) >= first[i / (past + tokens)];
      for (int64_t row : request.run(batch, tokens, past, &anchors, masked ? &mask : nullptr, 7)) {
        EXPECT_TRUE(seen[row / tokens].insert(past + row % tokens).second);
      }
      for (size_t b = 0; b < request.carried.size(); ++b) EXPECT_EQ(request.carried[b], past ? 7 + b : 0u);
      past += tokens;
    }
    for (int64_t b = 0; b < batch; ++b) EXPECT_EQ(seen[b], expected(anchors, b, count, length, first[b])) << "element " << b;
  }
}

/// What a kernel makes of the anchors that the schedule hands it, by one thread per row: [row] evaluated or not, and the row that would carry into it.
struct FoundByKernel {
  std::vector<int> evaluated;
  std::vector<i64> carrying;
};
template <class Run> FoundByKernel foundBy(const Run &run, int64_t rows) {
  FoundByKernel found{std::vector<int>(static_cast<size_t>(rows)), std::vector<i64>(static_cast<size_t>(rows))};
  const auto blocks = static_cast<unsigned>((rows + 31) / 32);
  auto outcome = test::run("window", {{blocks, 1, 1}, {32, 1, 1}, 0}, [&] {
    const i64 row = static_cast<i64>(block_index_x()) * 32 + thread_index();
    if (row >= rows) return;
    found.evaluated[static_cast<size_t>(row)] = in_window<kWindow>(run, row);
    found.carrying[static_cast<size_t>(row)] = carrying_row<kWindow>(run, row);
  });
  EXPECT_EQ(static_cast<int>(outcome.fault()), 0) << outcome.text();
  return found;
}

TEST(CheckSchedule, KernelsFindTheListedRows) {
  int rowsSeen = 0, evaluated = 0, carried = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    const int64_t batch = 1 + below(3), length = 1 + below(90), count = below(10);
    std::vector<int32_t> anchors(static_cast<size_t>(batch * count));
    for (int32_t &a : anchors) a = below(20) ? static_cast<int32_t>(below(length + 12)) - 1 : INT32_MAX - static_cast<int32_t>(below(2)); // in any order, duplicates, padding, far behind the end
    std::vector<int64_t> first(static_cast<size_t>(batch));
    for (int64_t &f : first) f = below(2) ? 0 : below(length + 1);
    Request request;
    int64_t past = below(4) ? 0 : below(length); // another context's past: nothing is carried
    while (past < length) {
      const int64_t tokens = std::min(length - past, 1 + below(40));
      std::vector<int64_t> mask(static_cast<size_t>(batch * (past + tokens)));
      for (int64_t i = 0; i < batch * (past + tokens); ++i) mask[static_cast<size_t>(i)] = i % (past + tokens) >= first[static_cast<size_t>(i / (past + tokens))];
      const std::vector<int64_t> list = request.run(batch, tokens, past, &anchors, &mask, 7, below(5) != 0); // now and then a run that is not committed
      const CheckRows &c = request.schedule.check(0);
      ASSERT_EQ(c.anchorCount, count);
      const CheckRun given{{c.anchors, batch * count, "anchors", nullptr}, c.anchorCount, {reinterpret_cast<const i64 *>(c.first), batch, "first", nullptr}, c.tokens, c.past, {}, {}};
      const ListedRun listed{{reinterpret_cast<const i64 *>(c.rows), c.count, "rows", nullptr}, c.count, c.tokens, {}, {}};
      const FoundByKernel byAnchors = foundBy(given, batch * tokens), byList = foundBy(listed, batch * tokens);
      std::set<int64_t> rows(list.begin(), list.end());
      for (int64_t row = 0; row < batch * tokens; ++row) {
        const auto next = rows.lower_bound(row);
        const int64_t before = next != rows.begin() && *std::prev(next) >= row / tokens * tokens ? *std::prev(next) : -1;
        for (const FoundByKernel *found : {&byAnchors, &byList}) {
          ASSERT_EQ(found->evaluated[static_cast<size_t>(row)], rows.count(row)) << (found == &byList ? "list" : "anchors") << ", past " << past << ", row " << row;
          ASSERT_EQ(found->carrying[static_cast<size_t>(row)], before) << (found == &byList ? "list" : "anchors") << ", past " << past << ", row " << row;
        }
        ++rowsSeen, evaluated += rows.count(row) != 0, carried += before >= 0;
      }
      past += tokens;
    }
  }
  EXPECT_TRUE(evaluated > rowsSeen / 10 && evaluated < rowsSeen * 9 / 10 && carried > rowsSeen / 10) << evaluated << " and " << carried << " of " << rowsSeen;
}

TEST(CheckSchedule, WithoutAnchorsEveryRow) {
  Request request;
  EXPECT_EQ(request.run(2, 5, 0, nullptr, nullptr, 1), std::vector<int64_t>{-1});
  EXPECT_EQ(request.schedule.counts().dense, 10);
  EXPECT_EQ(request.schedule.counts().sparse, 10);
  std::vector<int32_t> none;
  EXPECT_EQ(request.run(2, 1, 5, &none, nullptr, 3), std::vector<int64_t>{}); // goes on with the bits of the dense run
  EXPECT_EQ(request.carried, (std::vector<uint32_t>{1, 2}));
}

TEST(CheckSchedule, WhatIsNotCarriedIsEvaluated) {
  Request request;
  std::vector<int32_t> none;
  EXPECT_EQ(request.run(1, 4, 9, &none, nullptr, 5), std::vector<int64_t>{0}); // a past that this context has not seen
  EXPECT_EQ(request.carried, std::vector<uint32_t>{0});
  EXPECT_EQ(request.run(1, 2, 13, &none, nullptr, 6, false), std::vector<int64_t>{}); // fails: not committed
  EXPECT_EQ(request.carried, std::vector<uint32_t>{5});
  EXPECT_EQ(request.run(1, 2, 13, &none, nullptr, 8), std::vector<int64_t>{});
  EXPECT_EQ(request.carried, std::vector<uint32_t>{5});
  EXPECT_EQ(request.run(1, 2, 16, &none, nullptr, 9), std::vector<int64_t>{0}); // a gap
  EXPECT_EQ(request.run(3, 2, 18, &none, nullptr, 9), (std::vector<int64_t>{0, 2, 4})); // another batch
  request.schedule.reset();
  EXPECT_EQ(request.run(3, 2, 20, &none, nullptr, 9), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_FALSE(request.schedule.bits(2, 0));
  EXPECT_FALSE(request.schedule.bits(0, 3));
  EXPECT_EQ(*request.schedule.bits(1, 2), 11u);
}

TEST(CheckSchedule, RefusesAnchorsBelowMinusOne) {
  Request request;
  Shape shapes[4] = {{Shape::From::Caller, 2, {1, 4}}, {Shape::From::Caller, 2, {1, 2}}, {}, {Shape::From::Caller, 2, {1, 0}}};
  ASSERT_TRUE(request.binding.bind(shapes, nullptr) && request.schedule.prepare(request.binding));
  int32_t anchors[2] = {1, -2};
  auto result = request.schedule.begin(anchors, nullptr, 4);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Status::Refused);
  EXPECT_STREQ(result.error().tensor, "anchors");
}
