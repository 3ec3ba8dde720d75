// Arithmetic on the contents of small integer tensors while importing. In: elements as Dims. Out: elements as Dims, or nothing where the
// result is not the same in every run. Comparisons are 0 or 1 and hold for all sizes >= 0 of the symbols.
#pragma once
#include "compiler/graph/Graph.h"

namespace tare {

/// One element of a binary op, nothing when undecided (a comparison that depends on a run, a division that may not be exact or safe).
std::optional<Dim> evaluateBinary(graph::BinaryKind kind, const Dim &a, const Dim &b);
/// The flat index into a tensor of `shape` (broadcast to `target`) for the flat index `i` of `target`; all sizes constant.
int64_t broadcastIndex(int64_t i, llvm::ArrayRef<int64_t> target, llvm::ArrayRef<int64_t> shape);
/// The constant sizes of dims when all are constant and their product is at most kMaxContent.
std::optional<llvm::SmallVector<int64_t>> smallShape(llvm::ArrayRef<Dim> dims);

} // namespace tare
