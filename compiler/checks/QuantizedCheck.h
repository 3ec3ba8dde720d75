// The weights of a fidelity check (spec 6) as numbers, and as the integers that stand for them. In: a graph.fidelity_check. Out: its constants in f32, or
// operands `quantized` and `scale`. Who chooses the integers (scale search, rounding) is free; how they lie in memory is not: natural order here and in
// the graph, the kernel's order is made by compiler/codegen/cpu/Packing.
#pragma once
#include "compiler/checks/CheckWeights.h"
#include "compiler/graph/Graph.h"
#include <optional>

namespace tare::checks {

/// The operands of the check when all are constants (through casts, of any float type, none overridable) and their bytes are present; nothing otherwise.
std::optional<CheckWeights> checkWeights(graph::FidelityCheckOp check);

/// Gives the check the operands `quantized` and `scale` (constants in front of it) and the attributes `precision` and `group`.
void setQuantized(graph::FidelityCheckOp check, const QuantizedCheck &quantized);

/// Plain rounding to nearest, each scale the largest magnitude of its group over 7 (int4) or 127 (int8).
QuantizedCheck roundToNearest(const CheckWeights &weights, int64_t bits, int64_t group = 32);

} // namespace tare::checks
