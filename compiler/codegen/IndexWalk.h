// Index arithmetic that both back ends do in the same order on values of their own: MLIR values on the CPU, C++ expressions
// in CUDA text. In: dims and, as `Index`, whatever an index is. Out: calls in order, or indices. Must hold: nothing here
// computes an index; it only says which ones belong together.
#pragma once
#include "compiler/graph/Graph.h"

namespace tare::codegen {

/// The smallest runs of dims [i, iEnd) of `from` and [j, jEnd) of `to` that hold the same number of elements, in order:
/// visit(i, iEnd, j, jEnd). An index of `to` depends on those of its run alone. Dims of size 1 belong to no run.
template <class Visit> void reshapeRuns(llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to, Visit visit) {
  size_t i = 0, j = 0;
  auto skipOnes = [&] {
    while (i < from.size() && from[i].isConstant(1))
      ++i;
    while (j < to.size() && to[j].isConstant(1))
      ++j;
  };
  for (skipOnes(); i < from.size() && j < to.size(); skipOnes()) {
    size_t iEnd = i + 1, jEnd = j + 1; // grow the shorter side until both hold the same number of elements
    Dim have = from[i], want = to[j];
    while (!(have == want) && (iEnd < from.size() || jEnd < to.size())) {
      bool growFrom = iEnd < from.size() && (jEnd == to.size() || want.dividedBy(have));
      if (growFrom)
        have = have * from[iEnd++];
      else if (jEnd < to.size())
        want = want * to[jEnd++];
      else
        have = have * from[iEnd++];
    }
    if (!(have == want)) iEnd = from.size(), jEnd = to.size();
    visit(i, iEnd, j, jEnd);
    i = iEnd, j = jEnd;
  }
}

/// Where a reduction reads: `kept` are the result's indices, `reduced` those along its axes, in order.
template <class Index>
llvm::SmallVector<Index> reductionIndices(graph::ReduceOp op, llvm::ArrayRef<Index> kept, llvm::ArrayRef<Index> reduced) {
  llvm::SmallVector<Index> inner;
  llvm::ArrayRef<int64_t> axes = op.getAxes();
  size_t next = 0, result = 0, rank = graph::dimsOf(op.getX()).size();
  for (size_t d = 0; d < rank; ++d) {
    bool isReduced = next < axes.size() && axes[next] == static_cast<int64_t>(d);
    inner.push_back(isReduced ? reduced[next++] : kept[result]);
    if (!isReduced || op.getKeepdims()) ++result;
  }
  return inner;
}

/// All values that `value` is computed from, itself included, each once.
inline void collectSources(mlir::Value value, llvm::SmallVectorImpl<mlir::Value> &all, llvm::DenseSet<mlir::Value> &seen) {
  if (!seen.insert(value).second) return;
  all.push_back(value);
  if (mlir::Operation *op = value.getDefiningOp())
    for (mlir::Value operand : op->getOperands())
      collectSources(operand, all, seen);
}

/// True when element i of every target depends on element i (or the only one) of everything it is computed from.
/// `isPlain(memory)`: element i of a tensor lies at i of this memory, if its size is the tensor's.
template <class Target, class MemoryMap, class IsPlain>
bool isFlat(llvm::ArrayRef<Target> targets, const MemoryMap &memory, IsPlain isPlain) {
  llvm::SmallVector<mlir::Value> all;
  llvm::DenseSet<mlir::Value> seen;
  Dim count = elementCount(graph::dimsOf(targets.front().value));
  for (auto &t : targets) {
    collectSources(t.value, all, seen);
    if (!t.offset.empty() || !(elementCount(t.memory.physical) == count)) return false;
  }
  return llvm::all_of(all, [&](mlir::Value v) {
    Dim own = elementCount(graph::dimsOf(v));
    mlir::Operation *op = v.getDefiningOp();
    bool plain = !op || mlir::isa<graph::UnaryOp, graph::BinaryOp, graph::SelectOp, graph::CastOp, graph::ConstantOp,
                                  graph::FillOp, graph::ReshapeOp>(op);
    auto stored = memory.find(v);
    if (stored != memory.end() && (!isPlain(stored->second) || !(elementCount(stored->second.physical) == own)))
      return false; // a pitch, or a packed weight
    return plain && (own.isConstant(1) || own == count);
  });
}

} // namespace tare::codegen
