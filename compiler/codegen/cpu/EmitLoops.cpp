// Control flow of an Emitter: counted loops, guarded code, and how an iteration space is shared between threads.
#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;

namespace tare::codegen {

SmallVector<Value> Emitter::loop(Value lo, Value hi, ValueRange init, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto op = b.create<scf::ForOp>(loc, lo, hi, integer(1), init, [&](OpBuilder &, Location, Value iv, ValueRange carried) {
    Scope scope(*this);
    SmallVector<Value> next = body(iv, carried);
    b.create<scf::YieldOp>(loc, next);
  });
  return SmallVector<Value>(op.getResults());
}

void Emitter::loop(Value lo, Value hi, llvm::function_ref<void(Value)> body) {
  loop(lo, hi, {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

Value Emitter::choose(Value cond, Type type, llvm::function_ref<Value()> yes, llvm::function_ref<Value()> no) {
  auto branch = [&](llvm::function_ref<Value()> make) {
    return [this, make](OpBuilder &, Location) {
      Scope scope(*this);
      Value v = make();
      b.create<scf::YieldOp>(loc, v);
    };
  };
  (void)type;
  return b.create<scf::IfOp>(loc, cond, branch(yes), branch(no)).getResult(0);
}

void Emitter::when(Value cond, llvm::function_ref<void()> yes) {
  b.create<scf::IfOp>(loc, cond, [&](OpBuilder &, Location) {
    Scope scope(*this);
    yes();
    b.create<scf::YieldOp>(loc);
  });
}

std::pair<Value, Value> Emitter::part(Value count, int64_t grain) {
  Value blocks = grain == 1 ? count : div(add(count, integer(grain - 1)), integer(grain));
  auto bound = [&](Value thread) { return mul(div(mul(thread, blocks), env.threads), integer(grain)); };
  Value lo = bound(env.thread), hi = bound(add(env.thread, integer(1)));
  if (grain != 1) {
    lo = smaller(lo, count);
    hi = smaller(hi, count);
  }
  return {lo, hi};
}

void Emitter::rows(ArrayRef<Dim> space, llvm::function_ref<void(Indices, Value, Value)> row, bool whole) {
  if (space.empty()) { // a scalar: thread 0 computes it
    when(equal(env.thread, integer(0)), [&] { row({}, integer(0), integer(1)); });
    return;
  }
  ArrayRef<Dim> outer = space.drop_back();
  Value inner = dim(space.back());
  Dim count = elementCount(outer);
  if (count.isConstant(1) && whole) {
    when(equal(env.thread, integer(0)), [&] { row(SmallVector<Value>(outer.size(), integer(0)), integer(0), inner); });
    return;
  }
  if (count.isConstant(1)) {
    auto [lo, hi] = part(inner, 16);
    SmallVector<Value> zeros(outer.size(), integer(0));
    row(zeros, lo, hi);
    return;
  }
  // Row indices are carried from row to row: a division per row would cost as much as a short row.
  auto [lo, hi] = part(dim(count));
  SmallVector<size_t> moving;
  for (auto [i, d] : llvm::enumerate(outer))
    if (!d.isConstant(1)) moving.push_back(i);
  SmallVector<Value> start;
  Value rest = lo;
  for (size_t i : llvm::reverse(moving)) {
    Value size = larger(dim(outer[i]), integer(1));
    start.insert(start.begin(), i == moving.front() ? rest : rem(rest, size));
    rest = div(rest, size);
  }
  loop(lo, hi, start, [&](Value, ValueRange carried) {
    SmallVector<Value> indices(outer.size(), integer(0));
    for (auto [slot, i] : llvm::enumerate(moving)) indices[i] = carried[slot];
    row(indices, integer(0), inner);
    SmallVector<Value> next(moving.size());
    Value carry; // i1: the digit to the right wrapped
    for (size_t slot = moving.size(); slot-- > 0;) {
      Value plus = b.create<arith::AddIOp>(loc, carried[slot], integer(1));
      Value stepped = carry ? select(carry, plus, carried[slot]) : plus;
      if (slot == 0) {
        next[slot] = stepped;
        break;
      }
      Value wraps = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, stepped, dim(outer[moving[slot]]));
      next[slot] = select(wraps, integer(0), stepped);
      carry = wraps;
    }
    return next;
  });
}

} // namespace tare::codegen
