// Integer arithmetic of an Emitter: constants and dims in the entry block, folded and memoised index expressions, linearisation.
#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;

namespace tare::codegen {

namespace {
enum IndexOp { Add, Sub, Mul, Div, Rem, Less, Equal };
std::optional<int64_t> known(Value v) {
  if (auto c = v.getDefiningOp<arith::ConstantOp>())
    if (auto i = dyn_cast<IntegerAttr>(c.getValue())) return i.getInt();
  return std::nullopt;
}
} // namespace

Emitter::Emitter(OpBuilder &b, Location loc, ArrayRef<Dim> table) : b(b), loc(loc), entry(b.getInsertionBlock()) {
  for (auto [i, d] : llvm::enumerate(table)) tableIndex.try_emplace(d.str(), i);
  memos.emplace_back();
}

/// Entry-block values dominate everything: they are inserted one after another at the top of the block.
namespace {
struct AtEntry {
  OpBuilder::InsertionGuard guard;
  AtEntry(OpBuilder &b, Block *entry, Operation *last) : guard(b) {
    if (last)
      b.setInsertionPointAfter(last);
    else
      b.setInsertionPointToStart(entry);
  }
};
} // namespace

Value Emitter::number(Type type, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isa<IntegerType>(type)) bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  Value &slot = constants[{type.getAsOpaquePointer(), bits}];
  if (slot) return slot;
  AtEntry at(b, entry, lastEntryOp);
  TypedAttr attr = isa<FloatType>(type) ? TypedAttr(b.getFloatAttr(type, value)) : TypedAttr(b.getIntegerAttr(type, static_cast<int64_t>(value)));
  slot = b.create<arith::ConstantOp>(loc, attr);
  lastEntryOp = slot.getDefiningOp();
  return slot;
}

Value Emitter::integer(int64_t value) {
  Value &slot = constants[{i64().getAsOpaquePointer(), static_cast<uint64_t>(value)}];
  if (slot) return slot;
  AtEntry at(b, entry, lastEntryOp);
  slot = b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(value));
  lastEntryOp = slot.getDefiningOp();
  return slot;
}

void Emitter::bindSymbol(StringRef symbol, Value value) { dimValues[Dim::symbol(symbol).str()] = value; }

Value Emitter::dim(const Dim &d) {
  if (auto c = d.constant()) return integer(*c);
  std::string text = d.str();
  if (auto it = dimValues.find(text); it != dimValues.end()) return it->second;
  Value result;
  if (auto it = tableIndex.find(text); it != tableIndex.end()) {
    AtEntry at(b, entry, lastEntryOp);
    Value slot = b.create<LLVM::GEPOp>(loc, env.dims.getType(), i64(), env.dims, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(it->second)});
    auto load = b.create<LLVM::LoadOp>(loc, i64(), slot);
    load.setInvariant(true);
    lastEntryOp = load;
    result = load;
  } else {
    auto combine = [&](auto op, Value x, Value y) {
      AtEntry at(b, entry, lastEntryOp);
      Value v = b.create<decltype(op)>(loc, x, y);
      lastEntryOp = v.getDefiningOp();
      return v;
    };
    for (auto &[key, coefficient] : d.terms()) {
      Value term = key.empty() || coefficient != 1 ? integer(coefficient) : Value();
      for (auto &atom : key) {
        Value factor;
        using K = Dim::Atom::Kind;
        if (atom->kind == K::Symbol) {
          factor = dim(Dim::symbol(atom->name));
        } else {
          Value x = dim(atom->a), y = dim(atom->b);
          if (atom->kind == K::Min) factor = combine(arith::MinSIOp(), x, y);
          if (atom->kind == K::Max) factor = combine(arith::MaxSIOp(), x, y);
          if (atom->kind == K::FloorDiv || atom->kind == K::Mod) { // rounds down; operands of either sign, a zero divisor gives 0 instead of a trap
            Value safe = combine(arith::MaxSIOp(), y, integer(1));
            Value remainder = combine(arith::RemSIOp(), x, safe);
            Value shifted = combine(arith::AddIOp(), remainder, safe);
            Value modulo = combine(arith::RemSIOp(), shifted, safe);
            factor = atom->kind == K::Mod ? modulo : combine(arith::DivSIOp(), combine(arith::SubIOp(), x, modulo), safe);
          }
        }
        term = term ? combine(arith::MulIOp(), term, factor) : factor;
      }
      result = result ? combine(arith::AddIOp(), result, term) : term;
    }
  }
  return dimValues[text] = result;
}

Value Emitter::memoised(int op, Value a, Value c, llvm::function_ref<Value()> make) {
  static const char tags[8] = {};
  Key key{&tags[op], {a.getAsOpaquePointer(), c.getAsOpaquePointer()}};
  for (auto &scope : llvm::reverse(memos))
    if (auto it = scope.find(key); it != scope.end()) return it->second;
  return memos.back()[key] = make();
}

Value Emitter::add(Value a, Value c) {
  auto x = known(a), y = known(c);
  if (x && y) return integer(*x + *y);
  if (x == 0) return c;
  if (y == 0) return a;
  return memoised(Add, a, c, [&] { return b.create<arith::AddIOp>(loc, a, c); });
}
Value Emitter::sub(Value a, Value c) {
  auto x = known(a), y = known(c);
  if (x && y) return integer(*x - *y);
  if (y == 0) return a;
  return memoised(Sub, a, c, [&] { return b.create<arith::SubIOp>(loc, a, c); });
}
Value Emitter::mul(Value a, Value c) {
  auto x = known(a), y = known(c);
  if (x && y) return integer(*x * *y);
  if (x == 0 || y == 1) return a;
  if (y == 0 || x == 1) return c;
  return memoised(Mul, a, c, [&] { return b.create<arith::MulIOp>(loc, a, c); });
}
Value Emitter::div(Value a, Value c) {
  auto x = known(a), y = known(c);
  if (y == 1 || (x == 0)) return a;
  if (x && y && *y > 0) return integer(*x / *y);
  return memoised(Div, a, c, [&] { return b.create<arith::DivUIOp>(loc, a, c); });
}
Value Emitter::rem(Value a, Value c) {
  auto x = known(a), y = known(c);
  if (y == 1) return integer(0);
  if (x == 0) return a;
  if (x && y && *y > 0) return integer(*x % *y);
  return memoised(Rem, a, c, [&] { return b.create<arith::RemUIOp>(loc, a, c); });
}
Value Emitter::less(Value a, Value c) {
  return memoised(Less, a, c, [&] { return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, a, c); });
}
Value Emitter::equal(Value a, Value c) {
  return memoised(Equal, a, c, [&] { return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, a, c); });
}
Value Emitter::select(Value cond, Value a, Value c) { return a == c ? a : b.create<arith::SelectOp>(loc, cond, a, c).getResult(); }
Value Emitter::smaller(Value a, Value c) { return b.createOrFold<arith::MinSIOp>(loc, a, c); }
Value Emitter::larger(Value a, Value c) { return b.createOrFold<arith::MaxSIOp>(loc, a, c); }

Value Emitter::linear(Indices indices, ArrayRef<Dim> dims) {
  Value offset = integer(0);
  for (auto [i, d] : llvm::zip(indices, dims)) offset = add(mul(offset, dim(d)), i);
  return offset;
}

SmallVector<Value> Emitter::delinearise(Value index, ArrayRef<Dim> dims) {
  SmallVector<Value> indices(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i].isConstant(1)) {
      indices[i] = integer(0);
      continue;
    }
    bool outermost = llvm::all_of(dims.take_front(i), [](const Dim &d) { return d.isConstant(1); });
    indices[i] = outermost ? index : rem(index, dim(dims[i]));
    if (!outermost) index = div(index, dim(dims[i]));
  }
  return indices;
}

} // namespace tare::codegen
