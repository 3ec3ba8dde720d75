// Random expressions of pointwise and moving ops in many element types, planned, compiled and run at sizes 0, 1, odd and large on 1 to 3 threads, against the
// float64 reference. The seed of a failing module is printed; TARE_TEST_SEED runs one seed, TARE_TEST_MODULES sets how many modules are made.
#include "compiler/graph/Graph.h"
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "test/unit/codegen/Harness.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace tare;
using graph::BinaryKind;
using graph::UnaryKind;

namespace {

/// Makes one module of independent groups, each a chain of random ops with fresh operands.
class Generator {
public:
  Generator(MLIRContext &context, uint64_t seed) : b(&context), loc(b.getUnknownLoc()), random(seed) {}

  OwningOpRef<ModuleOp> module(int groups) {
    OwningOpRef<ModuleOp> result = ModuleOp::create(loc);
    b.setInsertionPointToEnd(result->getBody());
    main = b.create<func::FuncOp>(loc, "main", b.getFunctionType({}, {}));
    entry = main.addEntryBlock();
    SmallVector<Value> results;
    for (int i = 0; i < groups; ++i) results.push_back(group());
    b.setInsertionPointToEnd(entry);
    b.create<func::ReturnOp>(loc, results);
    main.setFunctionType(b.getFunctionType(entry->getArgumentTypes(), ValueRange(results).getTypes()));
    for (auto [i, range] : llvm::enumerate(ranges)) {
      main.setArgAttr(i, graph::kNameAttr, b.getStringAttr("in" + std::to_string(i)));
      main.setArgAttr(i, "test.range", b.getI64ArrayAttr({range.first, range.second}));
    }
    for (size_t i = 0; i < results.size(); ++i) main.setResultAttr(i, graph::kNameAttr, b.getStringAttr("out" + std::to_string(i)));
    return result;
  }

private:
  int pick(int n) { return static_cast<int>(random() % n); }
  Dim randomDim() {
    const Dim choices[] = {Dim::symbol("n"), Dim::symbol("m"), Dim::symbol("n"), 1, 2, 3, 8, 17, 32};
    return choices[pick(9)];
  }
  Dims dimsOf(Value v) { return graph::dimsOf(v); }
  Type elementOf(Value v) { return cast<RankedTensorType>(v.getType()).getElementType(); }
  Value fresh(Type element, ArrayRef<Dim> dims, int64_t lo = -9, int64_t hi = 9) {
    Type type = graph::tensorType(element, dims);
    ranges.push_back({lo, hi});
    inputs.push_back(entry->addArgument(type, loc));
    return body->addArgument(type, loc);
  }
  /// Dims that broadcast to `dims`: some are 1, leading ones may be missing.
  Dims broadcastable(ArrayRef<Dim> dims) {
    Dims result(dims.drop_front(pick(3) ? 0 : pick(dims.size() + 1)));
    for (Dim &d : result)
      if (!pick(4)) d = 1;
    return result;
  }

  Value group() {
    const Type types[] = {b.getF32Type(), b.getF32Type(), b.getF32Type(), b.getF64Type(), b.getF16Type(), b.getBF16Type(), b.getI64Type(), b.getI32Type(), b.getI8Type(),
                          b.getIntegerType(8, false), b.getI16Type()};
    Type element = types[pick(11)];
    Block local;
    body = &local;
    inputs.clear();
    b.setInsertionPointToEnd(body);
    Dims dims;
    for (int rank = pick(4) + 1; rank > 0; --rank) dims.push_back(randomDim());
    Value v = fresh(element, dims);
    int steps = pick(6) + 1;
    for (int i = 0; i < steps; ++i) v = step(v);
    b.create<graph::YieldOp>(loc, v);
    b.setInsertionPointToEnd(entry);
    auto op = b.create<graph::GroupOp>(loc, TypeRange{v.getType()}, graph::GroupKind::Pointwise, inputs);
    Block &inside = op.getBody().emplaceBlock();
    for (BlockArgument a : local.getArguments()) a.replaceAllUsesWith(inside.addArgument(a.getType(), loc));
    inside.getOperations().splice(inside.end(), local.getOperations());
    return op.getResult(0);
  }

  Value step(Value v) {
    if (pick(5) < 2) return move(v);
    return isa<FloatType>(elementOf(v)) ? floatStep(v) : integerStep(v);
  }
  Value unary(UnaryKind kind, Value x) { return b.create<graph::UnaryOp>(loc, x.getType(), kind, x); }
  Value binary(BinaryKind kind, Value x, Value y) { return b.create<graph::BinaryOp>(loc, graph::tensorType(elementOf(x), dimsOf(x)), kind, x, y); }
  Value castTo(Value x, Type element) { return b.create<graph::CastOp>(loc, graph::tensorType(element, dimsOf(x)), x); }
  Value condition(Value like) {
    if (pick(2)) return fresh(b.getI1Type(), broadcastable(dimsOf(like)));
    Value x = fresh(b.getI64Type(), dimsOf(like)), y = fresh(b.getI64Type(), broadcastable(dimsOf(like)));
    const BinaryKind kinds[] = {BinaryKind::Eq, BinaryKind::Lt, BinaryKind::Le, BinaryKind::Gt, BinaryKind::Ge};
    return b.create<graph::BinaryOp>(loc, graph::tensorType(b.getI1Type(), dimsOf(like)), kinds[pick(5)], x, y);
  }
  Value select(Value v) {
    return b.create<graph::SelectOp>(loc, v.getType(), condition(v), v, fresh(elementOf(v), broadcastable(dimsOf(v))));
  }

  Value floatStep(Value v) {
    Type element = elementOf(v);
    Value other = pick(2) ? fresh(element, broadcastable(dimsOf(v))) : v;
    switch (pick(9)) {
    case 0: return binary(BinaryKind::Add, v, other);
    case 1: return binary(BinaryKind::Sub, v, other);
    case 2: return unary(UnaryKind::Tanh, binary(BinaryKind::Mul, v, other));
    case 3: return binary(pick(2) ? BinaryKind::Min : BinaryKind::Max, v, other);
    case 4: return select(v);
    case 5: return binary(BinaryKind::Add, v, castTo(fresh(b.getI32Type(), dimsOf(v)), element));
    case 6: return unary(UnaryKind::Sqrt, unary(UnaryKind::Abs, v));
    case 7: return unary(UnaryKind::Exp, unary(UnaryKind::Neg, unary(UnaryKind::Relu, v)));
    default: {
      const UnaryKind kinds[] = {UnaryKind::Neg,  UnaryKind::Abs,  UnaryKind::Tanh,     UnaryKind::Sigmoid,  UnaryKind::Erf, UnaryKind::GeluErf, UnaryKind::GeluTanh,
                                 UnaryKind::Silu, UnaryKind::Relu, UnaryKind::Softplus, UnaryKind::Identity, UnaryKind::Sin, UnaryKind::Cos,     UnaryKind::Atan};
      return unary(kinds[pick(14)], v);
    }
    }
  }

  Value integerStep(Value v) {
    Type element = elementOf(v);
    Value other = fresh(element, broadcastable(dimsOf(v)));
    switch (pick(8)) {
    case 0: return select(v);
    case 1: { // a divisor that is never 0
      const BinaryKind kinds[] = {BinaryKind::Div, BinaryKind::Mod, BinaryKind::Fmod};
      return binary(kinds[pick(3)], v, fresh(element, broadcastable(dimsOf(v)), 1, 5));
    }
    case 2: return binary(BinaryKind::Pow, v, fresh(element, broadcastable(dimsOf(v)), 0, 3));
    case 3: {
      const UnaryKind kinds[] = {UnaryKind::Neg, UnaryKind::Abs, UnaryKind::Sign, UnaryKind::Not, UnaryKind::Relu};
      return element.isUnsignedInteger() ? unary(UnaryKind::Not, v) : unary(kinds[pick(5)], v);
    }
    case 4: {
      const Type types[] = {b.getI64Type(), b.getI32Type(), b.getI8Type(), b.getI16Type()};
      return castTo(v, types[pick(4)]);
    }
    default: {
      const BinaryKind kinds[] = {BinaryKind::Add, BinaryKind::Sub, BinaryKind::Mul, BinaryKind::Min, BinaryKind::Max, BinaryKind::And, BinaryKind::Or, BinaryKind::Xor};
      return binary(kinds[pick(8)], v, other);
    }
    }
  }

  Value move(Value v) {
    Dims dims = dimsOf(v);
    Type element = elementOf(v);
    size_t rank = dims.size(), axis = pick(rank);
    auto typed = [&](ArrayRef<Dim> d) { return graph::tensorType(element, d); };
    auto attr = [&](ArrayRef<Dim> d) { return graph::DimsAttr::get(b.getContext(), d); };
    switch (pick(9)) {
    case 0: {
      SmallVector<int64_t> perm;
      for (size_t i = 0; i < rank; ++i) perm.push_back(i);
      std::shuffle(perm.begin(), perm.end(), random);
      Dims moved;
      for (int64_t p : perm) moved.push_back(dims[p]);
      return b.create<graph::TransposeOp>(loc, typed(moved), v, perm);
    }
    case 1: { // merge two dims, or split an even one, or add a 1
      Dims shaped = dims;
      if (rank > 1 && pick(2)) {
        axis = pick(rank - 1);
        shaped[axis] = dims[axis] * dims[axis + 1];
        shaped.erase(shaped.begin() + axis + 1);
      } else if (auto half = dims[axis].dividedBy(2); half && rank < 5) {
        shaped[axis] = *half;
        shaped.insert(shaped.begin() + axis + (pick(2) ? 1 : 0), 2);
      } else {
        shaped.insert(shaped.begin() + axis, 1);
      }
      return b.create<graph::ReshapeOp>(loc, typed(shaped), v);
    }
    case 2: {
      auto size = dims[axis].constant();
      Dims starts(rank, 0), cut = dims;
      SmallVector<int64_t> steps(rank, 1);
      if (size && *size > 2) {
        bool back = pick(2);
        starts[axis] = back ? *size - 1 : 1;
        steps[axis] = back ? -2 : 1;
        cut[axis] = back ? (*size + 1) / 2 : *size - 1;
      }
      return b.create<graph::SliceOp>(loc, typed(cut), v, attr(starts), steps);
    }
    case 3: {
      Value other = fresh(element, dims);
      Dims joined = dims;
      joined[axis] = joined[axis] * 2;
      return b.create<graph::ConcatOp>(loc, typed(joined), ValueRange{v, other}, axis);
    }
    case 4: {
      Dims before(rank, 0), padded = dims;
      before[axis] = pick(3);
      padded[axis] = padded[axis] + before[axis] + pick(3);
      return b.create<graph::PadOp>(loc, typed(padded), v, fresh(element, {}), attr(before));
    }
    case 5: {
      Dims tiled = dims;
      tiled[axis] = tiled[axis] * 3;
      return b.create<graph::TileOp>(loc, typed(tiled), v);
    }
    case 6: {
      if (rank < 2) return v;
      return b.create<graph::TriluOp>(loc, v.getType(), v, attr({Dim(pick(5) - 2)}), pick(2) == 1);
    }
    case 7: { // a table of fixed size, so that every index is inside
      auto size = dims[axis].constant();
      if (!size) return v;
      Dims gathered = dims;
      gathered[axis] = Dim::symbol("m");
      Value indices = fresh(b.getI64Type(), {Dim::symbol("m")}, -*size, *size - 1);
      return b.create<graph::GatherOp>(loc, typed(gathered), v, indices, axis);
    }
    default: {
      Dims small = dims;
      small[axis] = 1;
      Value narrow = fresh(element, small);
      return b.create<graph::ExpandOp>(loc, typed(dims), narrow);
    }
    }
  }

  OpBuilder b;
  Location loc;
  std::mt19937_64 random;
  func::FuncOp main;
  Block *entry = nullptr, *body = nullptr;
  SmallVector<Value> inputs;
  std::vector<std::pair<int64_t, int64_t>> ranges;
};

int64_t setting(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

TEST(EmitProperty, RandomExpressions) {
  int64_t one = setting("TARE_TEST_SEED", -1), modules = setting("TARE_TEST_MODULES", 3);
  for (int64_t i = 0; i < (one >= 0 ? 1 : modules); ++i) {
    uint64_t seed = one >= 0 ? one : 1000 + i;
    SCOPED_TRACE("TARE_TEST_SEED=" + std::to_string(seed));
    MLIRContext context;
    context.loadDialect<graph::GraphDialect, plan::PlanDialect, func::FuncDialect>();
    auto module = Generator(context, seed).module(24);
    if (std::getenv("TARE_TEST_PRINT")) module->dump();
    test::Program program(context, std::move(module));
    ASSERT_TRUE(program.ok());
    for (auto [n, m] : {std::pair(1, 1), std::pair(3, 17), std::pair(0, 4), std::pair(37, 2), std::pair(5, 0)})
      program.check({{{"n", n}, {"m", m}}, seed, 1e-4});
    if (HasFailure()) return;
  }
}

} // namespace
