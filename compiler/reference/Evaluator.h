// The slow readable evaluation of graph IR, forward and reverse: the checks, constant folding and tests use it. In: a function or single ops and
// input tensors. Out: values in float64 with a fixed summation order, independent of threads and ISA; VJPs of the same.
#pragma once
#include "compiler/graph/Graph.h"
#include "compiler/reference/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace tare::reference {

/// Values of symbols, bound from the shapes of the inputs (dims of function arguments that are a plain symbol; others are checked against).
using Symbols = llvm::StringMap<int64_t>;
llvm::Expected<Symbols> bindSymbols(mlir::Block &entry, llvm::ArrayRef<Tensor> inputs);

/// All values of a block after a run, by SSA value; values inside graph.layer bodies included.
using Values = llvm::DenseMap<mlir::Value, Tensor>;

/// One op on given operands (no regions). Fails with a Failure that names the op for bad indices and the like.
llvm::Expected<llvm::SmallVector<Tensor>> evaluateOp(mlir::Operation *op, llvm::ArrayRef<const Tensor *> operands, const Symbols &symbols);

/// A whole block; `inputs` bind the block's arguments. graph.layer bodies are entered; graph.group bodies too. Overridable constants keep their own value.
/// `known`: values that are there already (constants decoded once for many runs); they are read, never copied into the result.
/// `given`: symbols that the inputs do not bind (a layer's body reads sizes of captured values).
llvm::Expected<Values> evaluate(mlir::Block &block, llvm::ArrayRef<Tensor> inputs, const Values *known = nullptr, const Symbols *given = nullptr);

struct EvaluateOptions {
  const Values *known = nullptr; ///< as above
  /// A value of more bytes than this is dropped after its last reader unless `keep` has it; a Recall computes it again when it is asked for.
  uint64_t largest = UINT64_MAX;
  const llvm::DenseSet<mlir::Value> *keep = nullptr;
  /// Called before each op of the block itself (not of bodies inside).
  llvm::function_ref<void(mlir::Operation &)> onOp;
};
llvm::Expected<Values> evaluate(mlir::Block &block, llvm::ArrayRef<Tensor> inputs, const EvaluateOptions &options);
/// Bytes that all values of such a run take, those of `known` excepted; UINT64_MAX when that overflows or a size is not known.
uint64_t bytesOfRun(mlir::Block &block, const Symbols &symbols);

/// The values of every graph.constant of a block (bodies included).
Values decodeConstants(mlir::Block &block);

struct BackwardOptions {
  const Values *known = nullptr; ///< as given to evaluate()
  /// Only these cotangents are asked for: whatever none of them depends on is skipped, and nothing else is returned. Null: all.
  const llvm::DenseSet<mlir::Value> *wanted = nullptr;
  /// Collects names of ops without a VJP that a cotangent had to stop at.
  llvm::SmallVectorImpl<std::string> *missing = nullptr;
  /// Called before each op of the block itself is gone back through.
  llvm::function_ref<void(mlir::Operation &)> onOp = {};
};
/// Reverse mode. `seeds`: cotangents of some values. Returns the cotangent of every floating-point value it reaches (constants included).
/// `symbols`: as bound for the run that gave `values`. Values that the run dropped are computed again and freed when they have served.
llvm::Expected<Values> backward(mlir::Block &block, const Values &values, const Values &seeds, const Symbols &symbols, const BackwardOptions &options = {});

/// The same over a list of ops in an order in which every op comes after those that compute its operands.
llvm::Expected<Values> backward(llvm::ArrayRef<mlir::Operation *> ops, const Values &values, const Values &seeds, const Symbols &symbols,
                                const BackwardOptions &options = {});

/// A value that only constants reach, computed from their decoded values.
llvm::Expected<Tensor> evaluateConstant(mlir::Value value, const Values &constants);

/// True when the op has a reference; when it has a VJP (`tare compile --supported`, docs/ops.md).
bool hasReference(mlir::OperationName name);
bool hasVjp(mlir::OperationName name);

} // namespace tare::reference
