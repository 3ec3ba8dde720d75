// The shadow run (spec 12): source and engine side by side. In: an imported source, an engine, inputs. Out: per output the elements that violate, the largest
// difference. Holds: the source is evaluated by the float64 reference, which shares no code with code generation.
#pragma once
#include "compiler/import/Import.h"
#include "tools/tare/EngineHandle.h"
#include <map>

namespace tare::cli {

/// A violation: outside 1e-4 + 1e-4 * max|y| (f32; 2e-3 for tf32 and f16, 2e-2 for bf16), another argmax over the last axis, or for integers and bools not equal. No element counts twice.
struct Comparison {
  int64_t elements = 0, violations = 0, changedArgmax = 0;
  double largest = 0; ///< of |a - b|, over finite elements
  double rate() const { return elements ? static_cast<double>(violations) / static_cast<double>(elements) : 0; }
  void add(const Comparison &other);
};
/// Equal shapes and dtypes are the caller's business. NaN equals NaN. `precision` (f32, tf32, f16, bf16): what f32 results were computed in; its tolerance is theirs.
Comparison compareArrays(const Array &expected, const Array &actual, llvm::StringRef precision = "f32");

/// Gives an imported source the inputs of its engine: overridable initializers are arguments of main.
llvm::Error exposeInputs(mlir::ModuleOp module);
/// Outputs of the source graph for `inputs`, by output name, in the declared dtypes. `extra`: more values of `main` to return, by any name.
llvm::Expected<ArrayMap> evaluateSource(mlir::ModuleOp module, const ArrayMap &inputs, const std::map<std::string, mlir::Value> &extra = {});
/// Outputs of the engine.
llvm::Expected<ArrayMap> runEngine(const EngineHandle &engine, const ArrayMap &inputs);

/// Names of the results of main in order; of the arguments.
std::vector<std::string> resultNames(mlir::ModuleOp module);
std::vector<std::string> argumentNames(mlir::ModuleOp module);

} // namespace tare::cli
