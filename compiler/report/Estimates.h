// Estimates of a whole graph for the report (spec 9). In: a module of graph ops with symbolic dims. Out: FLOPs and bytes as formulas and as numbers at the
// report's shape, in total and per module group. Holds: the same counting before and after removals, so that differences are the removals. FLOPs are those of
// the graph's ops; memory is what the fused plan really holds (compiler/plan/Footprint.h), never the sum of all values.
#pragma once
#include "compiler/graph/Dim.h"
#include "compiler/report/Report.h"
#include "mlir/IR/BuiltinOps.h"

namespace tare::plan {
class ProgramOp;
}

namespace tare::report {

/// The formula and its value with the symbols of `shape`.
Count countAt(const Dim &dim, const std::map<std::string, int64_t> &shape);
/// Sets the report's shape (batch 1, past 0, every other symbol 128), the FLOPs of the full graph, per group, and the picture of the graph.
void addFull(Report &report, mlir::ModuleOp module);
/// FLOPs of the graph after removals.
void addPrunedEstimates(Report &report, mlir::ModuleOp module);
/// Memory of the full graph, in total and per module group, from its plan; of the graph after removals.
void addFullMemory(Report &report, plan::ProgramOp program);
void addPrunedMemory(Report &report, plan::ProgramOp program);
/// For every integer input of `main` that indexes a table: the rows of the smallest one (what ids must stay below).
std::map<std::string, int64_t> idBounds(mlir::ModuleOp module);

} // namespace tare::report
