// Parts that the independent checker uses for both of its jobs (one layer in a compile, a whole certificate). Written apart from the compile path on
// purpose: parameters are found from the constants downwards, counts are taken on raw numbers, the rows are a plain chain of ifs.
#pragma once
#include "compiler/graph/Graph.h"
#include "compiler/graph/Options.h"
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace tare::checks::again {

/// What the checker sees of one parameter.
struct Witness {
  std::string name, storage, sha256;
  mlir::Value decoded;
  bool there = true, overridable = false;
  int64_t elements = 0, nonzero = 0, above = 0, nonFinite = 0;
  double largest = 0; ///< largest magnitude of finite elements
};
/// In the order of the function's constants. `known`: decoded constants of the function.
llvm::Expected<std::vector<Witness>> witnessesOf(graph::LayerOp layer, const reference::Values &known, double threshold);

/// The measured numbers as a report or certificate has them; NaN stands for "not measured".
struct Numbers {
  double forward, branch, parameters;
};
struct Outcome {
  bool pruned = false;
  std::string basis, code;
};
Outcome outcome(const std::vector<Witness> &witnesses, const Numbers &numbers, bool proved, const CompileOptions &options);

struct MeasureSetup {
  const std::vector<std::vector<reference::Tensor>> *samples;
  uint64_t seed;
  unsigned cotangents;
  std::optional<unsigned> loss; ///< result of main, or nothing for random cotangents
};
/// Norms per layer, largest over samples and cotangents; NaN where one is not finite or was not asked for.
llvm::Expected<std::vector<Numbers>> measureAgain(mlir::func::FuncOp main, llvm::ArrayRef<graph::LayerOp> layers, llvm::ArrayRef<std::vector<Witness>> witnesses,
                                                  llvm::ArrayRef<bool> withGradient, const reference::Values &known, const MeasureSetup &setup);

/// Evaluates the layer's body on random finite inputs: false when some output element differs from the input. Nothing when it cannot be evaluated alone.
/// Elements that overflowed inside the branch count only under `strictNans`: otherwise finite activations are the licence.
std::optional<bool> isIdentityOnRandomInputs(graph::LayerOp layer, const reference::Values &known, uint64_t seed, bool strictNans);

} // namespace tare::checks::again
