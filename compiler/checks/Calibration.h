// The inputs on which layers are measured (spec 3, "Calibration"). In: --calibration (npz with `sample_N.<input>`, or a folder), or nothing. Out: samples
// for the arguments of `main`. Random ones respect the input's kind: ids below the vocabulary, masks 1, positions counting, states normal.
#pragma once
#include "compiler/graph/Options.h"
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tare::checks {

struct Calibration {
  std::string source; ///< "file" or "random"
  std::string sha256; ///< of the file (of all files of a folder, in the order of their names); empty for random
  uint64_t seed = 0;
  std::vector<std::vector<reference::Tensor>> samples; ///< one tensor per argument of main
  /// Per sample the `sample_N.anchors` of each batch element (int32 or int64 [batch, A], -1 is padding); empty for a sample without them.
  std::vector<std::vector<std::vector<int64_t>>> anchors;
};

/// Missing, extra, misshapen or wrongly typed inputs are refused with the names of both sides; `sample_N.anchors` is always legal.
llvm::Expected<Calibration> loadCalibration(mlir::func::FuncOp main, const CompileOptions &options);

/// The name of an argument of main (graph.name, else "input N").
std::string inputName(mlir::func::FuncOp main, unsigned argument);

} // namespace tare::checks
