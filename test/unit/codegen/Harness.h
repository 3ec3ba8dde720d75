// Runs a planned module's machine code in the test process and compares every output with the float64 reference. In: graph IR whose `main` is in fused form,
// values for its symbols, a seed. Out: GoogleTest failures that print the seed. Integer inputs take values from the argument attribute
// `test.range = [lo, hi]` (default [-9, 9]).
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <string>

namespace tare::test {

struct RunOptions {
  std::map<std::string, int64_t> symbols;
  uint64_t seed = 1;
  double tolerance = 1e-5; ///< times (1 + |reference|)
  bool expectFault = false;
  bool linked = false; ///< append states: the cache is owned, input and output are the same memory with room for more rows
};

/// One compile, many runs.
class Program {
public:
  /// Parses `text`, plans, emits and compiles it for the best level of this CPU; null module on failure (reported through GoogleTest).
  explicit Program(const std::string &text);
  explicit Program(mlir::MLIRContext &context, mlir::OwningOpRef<mlir::ModuleOp> module);
  ~Program();
  bool ok() const { return entry != nullptr; }
  void check(const RunOptions &options);
  void checkThreads(const RunOptions &options, int64_t threads);

private:
  void build();
  std::unique_ptr<mlir::MLIRContext> own;
  mlir::OwningOpRef<mlir::ModuleOp> fused, planned;
  void *entry = nullptr;
  size_t bytes = 0;
};

} // namespace tare::test
