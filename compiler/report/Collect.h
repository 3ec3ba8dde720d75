// Fills a Report from a module while it is compiled. In: the module after phase `checked` (candidates carry evidence and verdicts) and after phase
// `pruned`. Out: the Report. Holds: only reads; every missing measurement gets its why from the evidence.
#pragma once
#include "compiler/graph/Options.h"
#include "compiler/report/Report.h"
#include "mlir/IR/BuiltinOps.h"

namespace tare::report {

/// What the report says about the source; the driver copies it from the importer.
struct ModelInfo {
  std::string name, format, sha256;
  int64_t parameters = 0;
  std::vector<std::string> warnings;
};

/// Everything but memory and the pruned plan's estimates. `module` is as phase `checked` leaves it.
Report collect(mlir::ModuleOp module, const ModelInfo &model, const CompileOptions &options);
/// Adds the heatmap and the FLOPs of the graph after removals; `module` is as phase `pruned` leaves it.
void addPruned(Report &report, mlir::ModuleOp module);

/// What the checks became (`graph.checks`); `module` is as phase `fused` or `clean` leaves it. Checks that were not measured stay as collect() saw them.
void addChecks(Report &report, mlir::ModuleOp module);

/// The module group an op counts for: its path up to and with the first numbered segment ("layers.7"), "embed", or "" without any path.
std::string moduleGroup(mlir::Operation *op);

} // namespace tare::report
