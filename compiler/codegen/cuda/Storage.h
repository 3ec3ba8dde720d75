// How the CUDA program stores the plan's buffers. In: a planned program, which operands of its kernels are only read to be
// rounded. Out: the buffers that hold rounded values. Must hold: results do not change by a bit; the plan keeps its types,
// offsets and sizes, which it shares with the CPU (a buffer of narrower elements leaves part of its bytes unused).
#pragma once
#include "compiler/plan/Plan.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringMap.h"

namespace tare::cuda {

/// By kernel function: positions of the operands that its text reads to round them, and for nothing else. Its template takes
/// them stored rounded together or not at all.
using RoundedOperands = llvm::StringMap<std::vector<unsigned>>;

/// The f32 buffers of the run's own memory that nobody reads but to round them. Where that happens makes no difference to the
/// value, so whoever writes them does it: half the bytes, and readers copy them to shared memory as they are.
llvm::BitVector roundedBuffers(plan::ProgramOp program, const RoundedOperands &operands);

} // namespace tare::cuda
