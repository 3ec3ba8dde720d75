// Index maps of the moving ops: each result element is one element of one operand. Sizes may be 0 at run time: an operand is only read where its indices are
// inside, so concat and pad branch, and gather checks its index, clamps it and reports a bad one through the fault flag instead of reading.
#include "compiler/codegen/IndexWalk.h"
#include "compiler/codegen/cpu/Emitter.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tare::codegen {

static Type elementType(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

SmallVector<Value> Emitter::reshapeIndices(Indices indices, ArrayRef<Dim> from, ArrayRef<Dim> to) {
  if (flat) return SmallVector<Value>(indices);
  SmallVector<Value> result(to.size(), integer(0));
  reshapeRuns(from, to, [&](size_t i, size_t iEnd, size_t j, size_t jEnd) {
    Value offset = linear(indices.slice(i, iEnd - i), from.slice(i, iEnd - i));
    for (auto [k, index] : llvm::enumerate(delinearise(offset, to.slice(j, jEnd - j)))) result[j + k] = index;
  });
  return result;
}

Value Emitter::pullSmallTable(ArrayRef<Dim> content, Indices indices, Type element) {
  Type i64Type = i64();
  if (content.empty()) return number(scalarType(element), 0);
  if (indices.empty() || content.size() == 1) return cast(dim(content[0]), i64Type, element);
  Value value = dim(content.back());
  for (size_t i = content.size() - 1; i-- > 0;) value = select(equal(indices[0], integer(i)), dim(content[i]), value);
  return cast(value, i64Type, element);
}

/// What is known at compile time about an index: a constant, or the range of a split loop.
static std::optional<std::pair<int64_t, int64_t>> rangeOf(const DenseMap<Value, std::pair<int64_t, int64_t>> &ranges, Value index) {
  if (auto c = index.getDefiningOp<arith::ConstantOp>())
    if (auto i = dyn_cast<IntegerAttr>(c.getValue())) return std::pair(i.getInt(), i.getInt() + 1);
  if (auto it = ranges.find(index); it != ranges.end()) return it->second;
  return std::nullopt;
}

Value Emitter::pullConcat(graph::ConcatOp op, Indices indices) {
  size_t axis = op.getAxis();
  auto range = rangeOf(ranges, indices[axis]);
  Type type = scalarType(elementType(op.getResult()));
  auto from = [&](Value input, const Dim &offset) {
    SmallVector<Value> inner(indices);
    inner[axis] = sub(indices[axis], dim(offset));
    if (range && offset.constant()) knowRange(inner[axis], range->first - *offset.constant(), range->second - *offset.constant());
    return element(input, inner);
  };
  llvm::unique_function<Value(size_t, Dim)> rest = [&](size_t i, Dim offset) -> Value {
    Value input = op.getInputs()[i];
    Dim end = offset + graph::dimsOf(input)[axis];
    if (i + 1 == op.getInputs().size()) return from(input, offset);
    if (auto fixed = end.constant(); fixed && range) {
      if (range->second <= *fixed) return from(input, offset);
      if (range->first >= *fixed) return rest(i + 1, end);
    }
    return choose(less(indices[axis], dim(end)), type, [&] { return from(input, offset); }, [&] { return rest(i + 1, end); });
  };
  return rest(0, 0);
}

Value Emitter::pullPad(graph::PadOp op, Indices indices) {
  Dims before = op.getBefore().dims(), own = graph::dimsOf(op.getX()), dims = graph::dimsOf(op.getResult());
  SmallVector<Value> inner(indices);
  Value inside;
  auto also = [&](Value cond) { inside = inside ? b.create<arith::AndIOp>(loc, inside, cond).getResult() : cond; };
  for (size_t i = 0; i < own.size(); ++i) {
    inner[i] = sub(indices[i], dim(before[i]));
    if (!before[i].isConstant(0)) also(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, inner[i], integer(0)));
    if (!(before[i] + own[i] == dims[i])) also(less(inner[i], dim(own[i])));
  }
  if (!inside) return element(op.getX(), inner);
  auto padding = [&] { return element(op.getValue(), SmallVector<Value>(graph::dimsOf(op.getValue()).size(), integer(0))); };
  return choose(inside, scalarType(elementType(op.getX())), [&] { return element(op.getX(), inner); }, padding);
}

Value Emitter::checkedIndex(Value index, Type indexElement, const Dim &size) {
  index = cast(index, indexElement, i64());
  Value end = dim(size);
  Value wrapped = select(less(index, integer(0)), add(index, end), index);
  Value bad = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::uge, wrapped, end);
  if (badIndex) {
    Value flag = b.create<LLVM::LoadOp>(loc, b.getI8Type(), badIndex);
    b.create<LLVM::StoreOp>(loc, b.create<arith::OrIOp>(loc, flag, b.create<arith::ExtUIOp>(loc, b.getI8Type(), bad)), badIndex);
  }
  return select(bad, integer(0), wrapped);
}

/// The load behind a checked index: an axis of size 0 has no element 0 either.
static Value guarded(Emitter &e, ArrayRef<Dim> sizes, Type type, llvm::function_ref<Value()> load) {
  Value nonEmpty;
  for (const Dim &size : sizes)
    if (!size.constant() || *size.constant() == 0) {
      Value cond = e.less(e.integer(0), e.dim(size));
      nonEmpty = nonEmpty ? e.b.create<arith::AndIOp>(e.loc, nonEmpty, cond).getResult() : cond;
    }
  return nonEmpty ? e.choose(nonEmpty, type, load, [&] { return e.number(type, 0); }) : load();
}

Value Emitter::pullGather(graph::GatherOp op, Indices indices) {
  size_t axis = op.getAxis(), rank = graph::dimsOf(op.getIndices()).size();
  Dims own = graph::dimsOf(op.getX());
  Value index = checkedIndex(element(op.getIndices(), indices.slice(axis, rank)), elementType(op.getIndices()), own[axis]);
  SmallVector<Value> inner(indices.take_front(axis));
  inner.push_back(index);
  llvm::append_range(inner, indices.drop_front(axis + rank));
  return guarded(*this, own[axis], scalarType(elementType(op.getX())), [&] { return element(op.getX(), inner); });
}

Value Emitter::pullGatherElements(graph::GatherElementsOp op, Indices indices) {
  Dims own = graph::dimsOf(op.getX());
  SmallVector<Value> inner(indices);
  inner[op.getAxis()] = checkedIndex(element(op.getIndices(), indices), elementType(op.getIndices()), own[op.getAxis()]);
  return guarded(*this, own[op.getAxis()], scalarType(elementType(op.getX())), [&] { return element(op.getX(), inner); });
}

Value Emitter::pullGatherND(graph::GatherNDOp op, Indices indices) {
  Dims own = graph::dimsOf(op.getX()), table = graph::dimsOf(op.getIndices());
  size_t batch = op.getBatchDims(), lead = table.size() - 1;
  int64_t depth = *table.back().constant(); // the result's rank depends on it, so it is fixed
  SmallVector<Value> inner(indices.take_front(batch));
  SmallVector<Dim> sizes;
  for (int64_t l = 0; l < depth; ++l) {
    SmallVector<Value> at(indices.take_front(lead));
    at.push_back(integer(l));
    inner.push_back(checkedIndex(element(op.getIndices(), at), elementType(op.getIndices()), own[batch + l]));
    sizes.push_back(own[batch + l]);
  }
  llvm::append_range(inner, indices.drop_front(lead));
  return guarded(*this, sizes, scalarType(elementType(op.getX())), [&] { return element(op.getX(), inner); });
}

Value Emitter::pullMoving(Value tensor, Indices indices) {
  Type type = elementType(tensor);
  Dims dims = graph::dimsOf(tensor);
  return TypeSwitch<Operation *, Value>(tensor.getDefiningOp())
      .Case([&](graph::ReshapeOp r) { return element(r.getX(), reshapeIndices(indices, dims, graph::dimsOf(r.getX()))); })
      .Case([&](graph::TransposeOp t) {
        SmallVector<Value> inner(indices.size());
        for (auto [i, p] : llvm::enumerate(t.getPerm())) inner[p] = indices[i];
        return element(t.getX(), inner);
      })
      .Case([&](graph::ExpandOp x) { return element(x.getX(), broadcast(x.getX(), indices, dims)); })
      .Case([&](graph::SliceOp s) {
        SmallVector<Value> inner;
        Dims starts = s.getStarts().dims();
        for (auto [i, index] : llvm::enumerate(indices)) {
          inner.push_back(add(mul(index, integer(s.getSteps()[i])), dim(starts[i])));
          if (auto range = rangeOf(ranges, index); range && starts[i].constant() && s.getSteps()[i] == 1)
            knowRange(inner.back(), range->first + *starts[i].constant(), range->second + *starts[i].constant());
        }
        return element(s.getX(), inner);
      })
      .Case([&](graph::ConcatOp c) { return pullConcat(c, indices); })
      .Case([&](graph::PadOp p) { return pullPad(p, indices); })
      .Case([&](graph::TileOp t) {
        SmallVector<Value> inner;
        Dims own = graph::dimsOf(t.getX());
        for (auto [i, index] : llvm::enumerate(indices)) inner.push_back(own[i] == dims[i] ? index : own[i].isConstant(1) ? integer(0) : rem(index, dim(own[i])));
        return element(t.getX(), inner);
      })
      .Case([&](graph::GatherOp g) { return pullGather(g, indices); })
      .Case([&](graph::GatherElementsOp g) { return pullGatherElements(g, indices); })
      .Case([&](graph::GatherNDOp g) { return pullGatherND(g, indices); })
      .Case([&](graph::TriluOp t) {
        size_t rank = indices.size();
        Value diagonal = sub(indices[rank - 1], indices[rank - 2]), k = dim(t.getK().dims()[0]);
        Value keep = t.getUpper() ? b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, diagonal, k) : b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sle, diagonal, k);
        return select(keep, element(t.getX(), indices), number(scalarType(type), 0));
      })
      .Case([&](graph::RangeOp r) {
        Dims startDelta = r.getStartDelta().dims();
        return cast(add(dim(startDelta[0]), mul(indices[0], dim(startDelta[1]))), i64(), type);
      })
      .Case([&](graph::DimsConstantOp c) { return pullSmallTable(c.getContent().dims(), indices, type); })
      .Default([](Operation *) { return Value(); });
}

} // namespace tare::codegen
