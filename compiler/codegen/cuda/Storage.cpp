// Begins with every buffer that could hold rounded values and takes out what has another reader or writer, until no kernel
// has some of its operands rounded and others not.
#include "compiler/codegen/cuda/Storage.h"

using namespace mlir;

namespace tare::cuda {

/// A buffer that only kernels see, laid out as its tensor. What a caller or a later run reads keeps its type.
static bool isPrivate(plan::BufferOp buffer) {
  return buffer.getKind() == "arena" && cast<RankedTensorType>(buffer.getType()).getElementType().isF32() &&
         buffer.getPacking() == "raw" && !buffer.getPitch();
}

/// An append may extend its operand in place: both are one piece of memory.
static bool writesInPlace(plan::DispatchOp step) { return step.getKind() == "append"; }

llvm::BitVector roundedBuffers(plan::ProgramOp program, const RoundedOperands &operands) {
  SmallVector<plan::BufferOp> buffers(program.getBody().getOps<plan::BufferOp>());
  SmallVector<plan::DispatchOp> steps(program.getBody().getOps<plan::DispatchOp>());
  auto roundedBy = [&](plan::DispatchOp step) -> ArrayRef<unsigned> {
    auto it = operands.find(step.getKernel());
    return it == operands.end() ? ArrayRef<unsigned>() : ArrayRef<unsigned>(it->second);
  };
  llvm::BitVector fits(buffers.size()), written(buffers.size()), read(buffers.size());
  for (auto [i, buffer] : llvm::enumerate(buffers))
    if (isPrivate(buffer)) fits.set(i);
  for (plan::DispatchOp step : steps) {
    for (auto [position, buffer] : llvm::enumerate(step.getOperands())) {
      read.set(buffer);
      if (!llvm::is_contained(roundedBy(step), position)) fits.reset(buffer);
    }
    for (int64_t buffer : step.getResults()) {
      if (written.test(buffer) || writesInPlace(step)) fits.reset(buffer);
      written.set(buffer);
    }
  }
  fits &= read;
  for (bool changed = true; changed;) {
    changed = false;
    for (plan::DispatchOp step : steps) {
      auto fitsAt = [&](unsigned position) { return fits.test(step.getOperands()[position]); };
      if (llvm::all_of(roundedBy(step), fitsAt) || llvm::none_of(roundedBy(step), fitsAt)) continue;
      for (unsigned position : roundedBy(step))
        fits.reset(step.getOperands()[position]);
      changed = true;
    }
  }
  return fits;
}

} // namespace tare::cuda
