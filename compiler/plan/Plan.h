// The `plan` dialect for C++ and the names of the attributes that the planner puts on kernel functions (Plan.td says what they mean).
#pragma once
#include "compiler/graph/Graph.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

#include "compiler/plan/PlanDialect.h.inc"
#define GET_OP_CLASSES
#include "compiler/plan/PlanOps.h.inc"

namespace tare::plan {

/// On a kernel function: its graph::GroupKind as a string. On its arguments: how the buffer is stored, and physical dims.
inline constexpr llvm::StringLiteral kKindAttr = "plan.kind", kPackingAttr = "plan.packing", kPitchAttr = "plan.pitch";
/// On plan.program: the context-owned tensors, see Plan.td.
inline constexpr llvm::StringLiteral kStatesAttr = "states", kChecksAttr = "checks", kCheckInputAttr = "check_input";
/// On plan.dispatch: the number of an arena buffer that the step's CUDA kernels use between themselves.
inline constexpr llvm::StringLiteral kCudaScratchAttr = "plan.cuda_scratch";

/// Bytes of `elements` stored elements of this type: bool takes one byte, 4-bit types two to a byte.
Dim storedBytes(mlir::Type element, const Dim &elements);
/// The symbol that a kernel's `plan.pitch` uses for the dispatch's capacity `number`.
std::string capacitySymbol(unsigned number);

} // namespace tare::plan
