// Passes stay linear: a chain of a million Identity nodes and a long chain of real work are cleaned and grouped in seconds. In: generated modules.
// Out: the right number of groups, and a time far below what a quadratic walk needs.
#include "Support.h"
#include <chrono>

using namespace tare;
using namespace tare::testing;
using namespace mlir;
using namespace tare::graph;

/// main(x) = f(f(...f(x))) with `length` unary ops of this kind.
static OwningOpRef<ModuleOp> chain(MLIRContext &context, UnaryKind kind, int64_t length) {
  OpBuilder builder(&context);
  auto module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module.getBody());
  auto type = tensorType(builder.getF32Type(), {Dim::symbol("n"), Dim(4)});
  auto main = builder.create<func::FuncOp>(builder.getUnknownLoc(), "main", builder.getFunctionType({type}, {type}));
  builder.setInsertionPointToEnd(main.addEntryBlock());
  Value value = main.getArgument(0);
  for (int64_t i = 0; i < length; ++i) value = builder.create<UnaryOp>(builder.getUnknownLoc(), type, kind, value);
  builder.create<func::ReturnOp>(builder.getUnknownLoc(), value);
  return module;
}

static double seconds(llvm::function_ref<void()> work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Scale, MillionIdentities) {
  Session session;
  auto module = chain(session.context, UnaryKind::Identity, 1'000'000);
  EXPECT_LT(seconds([&] { ASSERT_TRUE(succeeded(runTo(*module, Phase::Fused))); }), 60);
  int64_t groups = 0;
  module->walk([&](GroupOp) { ++groups; });
  EXPECT_EQ(groups, 1); // the copy from input to output
}

TEST(Scale, LongChainsBecomeGroupsOfBoundedSize) {
  Session session;
  auto module = chain(session.context, UnaryKind::Tanh, 20'000);
  EXPECT_LT(seconds([&] { ASSERT_TRUE(succeeded(runTo(*module, Phase::Fused))); }), 60);
  size_t largest = 0, total = 0;
  module->walk([&](GroupOp group) {
    size_t ops = group.getBody().front().getOperations().size() - 1;
    largest = std::max(largest, ops);
    total += ops;
  });
  EXPECT_LE(largest, 64u);
  EXPECT_EQ(total, 20'000u);
}
