// Sums over lifetimes (Footprint.h). In: buffers and steps. Out: formulas. The largest of many sums keeps only those
// that no other one exceeds for every value of the symbols, so that a model of equal layers has a short formula.
#include "compiler/plan/Footprint.h"

using namespace mlir;

namespace tare::plan {

static Dim largestOf(ArrayRef<Dim> sums) {
  SmallVector<Dim> largest;
  for (const Dim &sum : sums) {
    auto exceeds = [](const Dim &a, const Dim &b) { return (a - b).provablyNonNegative(); };
    if (llvm::any_of(largest, [&](const Dim &other) { return exceeds(other, sum); })) continue;
    llvm::erase_if(largest, [&](const Dim &other) { return exceeds(sum, other); });
    largest.push_back(sum);
  }
  Dim result;
  for (const Dim &sum : largest) result = Dim::max(result, sum);
  return result;
}

Footprint footprintOf(ProgramOp program, function_ref<std::string(DispatchOp)> partOf) {
  SmallVector<DispatchOp> steps(program.getBody().getOps<DispatchOp>());
  SmallVector<BufferOp> buffers(program.getBody().getOps<BufferOp>());
  Dim fixed;
  std::vector<Dim> scratch(steps.size());
  for (BufferOp buffer : buffers) {
    Dim bytes = buffer.getBytes().dims().front();
    if (buffer.getKind() == "weight") fixed = fixed + bytes;
    if (buffer.getKind() == "input" || buffer.getKind() == "output") { // a cache's capacity is the context's business
      auto type = cast<RankedTensorType>(buffer.getType());
      fixed = fixed + storedBytes(type.getElementType(), elementCount(graph::dimsOf(type)));
    }
    if (buffer.getKind() != "arena" && buffer.getKind() != "per_thread") continue;
    for (uint64_t step = buffer.getFirst(); step <= buffer.getLast() && step < steps.size(); ++step)
      scratch[step] = scratch[step] + bytes;
  }

  Footprint result;
  result.all = fixed + largestOf(scratch);
  llvm::MapVector<std::string, SmallVector<Dim>, std::map<std::string, unsigned>> sums;
  llvm::DenseSet<int64_t> read;
  for (auto [step, live] : llvm::zip_equal(steps, scratch)) {
    std::string part = partOf(step);
    sums[part].push_back(live);
    for (int64_t index : step.getOperands())
      if (buffers[index].getKind() == "weight" && read.insert(index).second)
        result.parts[part] = result.parts[part] + buffers[index].getBytes().dims().front();
  }
  for (auto &[part, lives] : sums) result.parts[part] = result.parts[part] + largestOf(lives);
  return result;
}

} // namespace tare::plan
