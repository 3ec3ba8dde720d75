// Ops that move elements. Each is one function that says, for every element of the result in row-major order, which element of operand 0 it is
// (-1: none, the result is zero or the padding value). Forward reads through that map, the VJP adds through it; so both agree by construction.
// Indices are checked: one out of range is a Failure that names index and size.
#include "compiler/graph/Failure.h"
#include "compiler/reference/Walk.h"

namespace tare::reference {

using Sources = std::vector<int64_t>;

static Tensor readThrough(const Call &call, const Sources &sources, const Tensor *padding = nullptr) {
  const Tensor &x = call.operand(0);
  Tensor y = call.result();
  for (size_t i = 0; i < sources.size(); ++i) {
    int64_t at = sources[i];
    if (y.isFloat())
      y.floats[i] = at >= 0 ? x.floats[at] : padding ? padding->floats[0] : 0;
    else
      y.ints[i] = at >= 0 ? x.ints[at] : padding ? padding->ints[0] : 0;
  }
  return y;
}

static Cotangents addThrough(const VjpCall &call, const Sources &sources) {
  Cotangents result(call.operands.size());
  const Tensor &x = call.operand(0);
  if (!call.wanted[0] || !x.isFloat()) return result;
  result[0] = Tensor::zeros(x.element, x.shape);
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i] >= 0) result[0].floats[sources[i]] += call.cotangent.floats[i];
  return result;
}

static Sources stridedSources(llvm::ArrayRef<int64_t> shape, Shape strides, int64_t start = 0) {
  Sources sources;
  walk<1>(shape, {std::move(strides)}, [&](auto &at) { sources.push_back(at[0]); }, {start});
  return sources;
}

/// Calls fn(index) for every index of the result and collects what it returns.
template <typename Fn> static Sources indexedSources(llvm::ArrayRef<int64_t> shape, Fn fn) {
  Sources sources;
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  sources.reserve(count);
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    sources.push_back(fn(index));
    for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
  return sources;
}

static Sources transposeSources(const Call &call) {
  Shape own = rowMajorStrides(call.operand(0).shape), strides;
  for (int64_t d : llvm::cast<graph::TransposeOp>(call.op).getPerm()) strides.push_back(own[d]);
  return stridedSources(call.shape, strides);
}
static Sources expandSources(const Call &call) { return stridedSources(call.shape, broadcastStrides(call.operand(0).shape, call.shape)); }

static llvm::Expected<Sources> sliceSources(const Call &call) {
  auto op = llvm::cast<graph::SliceOp>(call.op);
  auto starts = evaluateDims(op.getStarts().dims(), call.symbols);
  if (!starts) return starts.takeError();
  const Shape &from = call.operand(0).shape;
  Shape own = rowMajorStrides(from), strides;
  int64_t start = 0;
  for (size_t d = 0; d < own.size(); ++d) {
    int64_t step = op.getSteps()[d], last = (*starts)[d] + (call.shape[d] - 1) * step;
    if (call.shape[d] > 0 && ((*starts)[d] < 0 || (*starts)[d] >= from[d] || last < 0 || last >= from[d]))
      return refuse("slice of [" + std::to_string((*starts)[d]) + ", " + std::to_string(last) + "] leaves a dimension of " + std::to_string(from[d]));
    start += (*starts)[d] * own[d];
    strides.push_back(own[d] * step);
  }
  return stridedSources(call.shape, strides, start);
}

static llvm::Expected<Sources> padSources(const Call &call) {
  auto before = evaluateDims(llvm::cast<graph::PadOp>(call.op).getBefore().dims(), call.symbols);
  if (!before) return before.takeError();
  const Shape &from = call.operand(0).shape;
  Shape own = rowMajorStrides(from);
  return indexedSources(call.shape, [&](const Shape &index) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      int64_t i = index[d] - (*before)[d];
      if (i < 0 || i >= from[d]) return int64_t(-1);
      at += i * own[d];
    }
    return at;
  });
}

static Sources tileSources(const Call &call) {
  const Shape &from = call.operand(0).shape;
  Shape own = rowMajorStrides(from);
  return indexedSources(call.shape, [&](const Shape &index) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] % from[d] * own[d];
    return at;
  });
}

/// Makes an index non-negative; records the first one that is out of range.
struct IndexCheck {
  std::string error;
  int64_t operator()(int64_t index, int64_t size) {
    int64_t i = index < 0 ? index + size : index;
    if (i >= 0 && i < size) return i;
    if (error.empty()) error = "index " + std::to_string(index) + " is out of range for a dimension of " + std::to_string(size);
    return 0;
  }
  llvm::Expected<Sources> done(Sources sources) const {
    if (!error.empty()) return refuse(error);
    return sources;
  }
};

static llvm::Expected<Sources> gatherSources(const Call &call) {
  int64_t axis = llvm::cast<graph::GatherOp>(call.op).getAxis();
  const Tensor &x = call.operand(0), &indices = call.operand(1);
  if (axis < 0) axis += x.shape.size();
  IndexCheck check;
  int64_t outer = 1, inner = 1, size = x.shape[axis];
  for (int64_t d = 0; d < axis; ++d) outer *= x.shape[d];
  for (size_t d = axis + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  Sources sources;
  sources.reserve(outer * inner * indices.ints.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : indices.ints) {
      int64_t row = (o * size + check(index, size)) * inner;
      for (int64_t i = 0; i < inner; ++i) sources.push_back(row + i);
    }
  return check.done(std::move(sources));
}

static llvm::Expected<Sources> gatherElementsSources(const Call &call) {
  int64_t axis = llvm::cast<graph::GatherElementsOp>(call.op).getAxis();
  const Tensor &x = call.operand(0), &indices = call.operand(1);
  if (axis < 0) axis += x.shape.size();
  Shape own = rowMajorStrides(x.shape);
  IndexCheck check;
  int64_t n = 0;
  Sources sources = indexedSources(call.shape, [&](const Shape &index) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d)
      at += (static_cast<int64_t>(d) == axis ? check(indices.ints[n], x.shape[d]) : index[d]) * own[d];
    ++n;
    return at;
  });
  return check.done(std::move(sources));
}

static llvm::Expected<Sources> gatherNDSources(const Call &call) {
  int64_t batchDims = llvm::cast<graph::GatherNDOp>(call.op).getBatchDims();
  const Tensor &x = call.operand(0), &indices = call.operand(1);
  int64_t depth = indices.shape.back(), tuples = depth ? indices.elementCount() / depth : 0, batches = 1;
  for (int64_t d = 0; d < batchDims; ++d) batches *= x.shape[d];
  Shape own = rowMajorStrides(x.shape);
  int64_t batchStride = batchDims ? own[batchDims - 1] : 0, inner = 1;
  for (size_t d = batchDims + depth; d < x.shape.size(); ++d) inner *= x.shape[d];
  IndexCheck check;
  Sources sources;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t at = batches ? t / (tuples / batches) * batchStride : 0;
    for (int64_t k = 0; k < depth; ++k) at += check(indices.ints[t * depth + k], x.shape[batchDims + k]) * own[batchDims + k];
    for (int64_t i = 0; i < inner; ++i) sources.push_back(at + i);
  }
  return check.done(std::move(sources));
}

static llvm::Expected<Sources> triluSources(const Call &call) {
  auto op = llvm::cast<graph::TriluOp>(call.op);
  auto shift = evaluateDims(op.getK().dims(), call.symbols);
  if (!shift) return shift.takeError();
  int64_t k = shift->empty() ? 0 : shift->front(), n = 0;
  bool upper = op.getUpper();
  return indexedSources(call.shape, [&](const Shape &index) {
    int64_t row = index[index.size() - 2], column = index.back();
    bool kept = upper ? column >= row + k : column <= row + k;
    ++n;
    return kept ? n - 1 : int64_t(-1);
  });
}

// Reshape moves nothing; concat has several sources.
llvm::Expected<Tensor> reshape(const Call &call) {
  Tensor y = call.operand(0);
  y.shape = call.shape;
  if (y.elementCount() != call.operand(0).elementCount()) return refuse("reshape changes the number of elements");
  return y;
}
Cotangents reshapeVjp(const VjpCall &call) {
  Cotangents result(1);
  result[0] = call.cotangent;
  result[0].shape = call.operand(0).shape;
  return result;
}

/// fn(operand number, offset in the result, offset in the operand, count) for every contiguous piece.
template <typename Fn> static void concatPieces(const Call &call, Fn fn) {
  int64_t axis = llvm::cast<graph::ConcatOp>(call.op).getAxis(), outer = 1, inner = 1, before = 0;
  if (axis < 0) axis += call.shape.size();
  for (int64_t d = 0; d < axis; ++d) outer *= call.shape[d];
  for (size_t d = axis + 1; d < call.shape.size(); ++d) inner *= call.shape[d];
  for (size_t n = 0; n < call.operands.size(); ++n) {
    int64_t size = call.operand(n).shape[axis] * inner;
    for (int64_t o = 0; o < outer; ++o) fn(n, o * call.shape[axis] * inner + before, o * size, size);
    before += size;
  }
}

llvm::Expected<Tensor> concat(const Call &call) {
  Tensor y = call.result();
  concatPieces(call, [&](size_t n, int64_t to, int64_t from, int64_t count) {
    const Tensor &x = call.operand(n);
    if (y.isFloat())
      std::copy_n(x.floats.begin() + from, count, y.floats.begin() + to);
    else
      std::copy_n(x.ints.begin() + from, count, y.ints.begin() + to);
  });
  return y;
}
Cotangents concatVjp(const VjpCall &call) {
  Cotangents result(call.operands.size());
  if (!call.value.isFloat()) return result;
  for (size_t n = 0; n < result.size(); ++n)
    if (call.wanted[n]) result[n] = Tensor::zeros(call.operand(n).element, call.operand(n).shape);
  concatPieces(call, [&](size_t n, int64_t from, int64_t to, int64_t count) {
    if (call.wanted[n]) std::copy_n(call.cotangent.floats.begin() + from, count, result[n].floats.begin() + to);
  });
  return result;
}

llvm::Expected<Tensor> pad(const Call &call) {
  auto sources = padSources(call);
  if (!sources) return sources.takeError();
  return readThrough(call, *sources, call.operands[1]);
}
Cotangents padVjp(const VjpCall &call) {
  Sources sources = llvm::cantFail(padSources(call));
  Cotangents result = addThrough(call, sources);
  if (call.wanted[1] && call.operand(1).isFloat()) {
    result[1] = Tensor::zeros(call.operand(1).element, call.operand(1).shape);
    for (size_t i = 0; i < sources.size(); ++i)
      if (sources[i] < 0) result[1].floats[0] += call.cotangent.floats[i];
  }
  return result;
}

// The rest: forward reads through the map, the VJP adds through it. A VJP runs only after its forward succeeded, so its map cannot fail.
#define TARE_INFALLIBLE(name)                                                                                                                        \
  llvm::Expected<Tensor> name(const Call &call) { return readThrough(call, name##Sources(call)); }                                                    \
  Cotangents name##Vjp(const VjpCall &call) { return addThrough(call, name##Sources(call)); }
#define TARE_FALLIBLE(name)                                                                                                                          \
  llvm::Expected<Tensor> name(const Call &call) {                                                                                                    \
    auto sources = name##Sources(call);                                                                                                              \
    if (!sources) return sources.takeError();                                                                                                        \
    return readThrough(call, *sources);                                                                                                              \
  }                                                                                                                                                  \
  Cotangents name##Vjp(const VjpCall &call) { return addThrough(call, llvm::cantFail(name##Sources(call))); }
TARE_INFALLIBLE(transpose)
TARE_INFALLIBLE(expand)
TARE_INFALLIBLE(tile)
TARE_FALLIBLE(slice)
TARE_FALLIBLE(gather)
TARE_FALLIBLE(gatherElements)
TARE_FALLIBLE(gatherND)
TARE_FALLIBLE(trilu)
#undef TARE_INFALLIBLE
#undef TARE_FALLIBLE

} // namespace tare::reference
