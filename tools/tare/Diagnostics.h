// MLIR diagnostics become Failures. In: emitError/attachNote of importers and passes. Out: the same message format as everywhere, with the node's name from the
// location; warnings go to the console. Holds: nothing is printed by MLIR itself.
#pragma once
#include "compiler/graph/Failure.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include <mutex>

namespace tare::cli {

struct Console;

class DiagnosticCollector {
public:
  DiagnosticCollector(mlir::MLIRContext &context, Console &console, std::string file);
  ~DiagnosticCollector();
  /// What was collected, for a step that failed: the first error leads, the others follow. `step` names what failed when nobody said anything.
  Failure takeFailure(llvm::StringRef step);

private:
  mlir::MLIRContext &context;
  Console &console;
  std::string file;
  mlir::DiagnosticEngine::HandlerID handler;
  std::mutex mutex;
  std::vector<Failure> errors;
};

} // namespace tare::cli
