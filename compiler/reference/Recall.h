// The values of a run, also those that the run did not keep. In: what evaluate() returned, with
// EvaluateOptions::largest or without. Out: any value of the same run. Holds: a value is computed again from kept ones
// by the same functions, so it has the same bits.
#pragma once
#include "compiler/reference/Evaluator.h"
#include <memory>

namespace tare::reference {

class Recall {
public:
  /// All three are read as long as this lives; `known` may be null.
  Recall(const Values &values, const Values *known, const Symbols &symbols)
      : values(values), known(known), symbols(symbols) {}
  /// Never null; stays valid until the op that makes the value is forgotten. Fails for a value that the run does not
  /// reach.
  llvm::Expected<const Tensor *> find(mlir::Value value);
  /// Frees what was computed again for the op's results and for everything inside its regions.
  void forget(mlir::Operation &op);

private:
  const Values &values;
  const Values *known;
  const Symbols &symbols;
  llvm::DenseMap<mlir::Value, std::unique_ptr<Tensor>> again;
};

} // namespace tare::reference
