// How much memory a plan needs. In: a plan.program. Out: bytes as formulas over its symbols, for the whole plan and for
// parts of it. Holds: a weight counts once; nothing is counted that a fused kernel never stores. What the runtime
// places may be a little more: buffers are aligned, and gaps can remain.
#pragma once
#include "compiler/plan/Plan.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <string>

namespace tare::plan {

struct Footprint {
  /// Weights, inputs and outputs, and the scratch memory (one thread's) that is alive at the fullest step.
  Dim all;
  /// The same by part: the weights that its steps are the first to read, and the scratch memory at its own fullest
  /// step.
  llvm::MapVector<std::string, Dim, std::map<std::string, unsigned>> parts;
};
/// `partOf` names the part of every step.
Footprint footprintOf(ProgramOp program, llvm::function_ref<std::string(DispatchOp)> partOf);

} // namespace tare::plan
