// Groups to kernel functions. In: graph.group ops and how their buffers are stored. Out: one private function per distinct body, named after its
// kind and parameters; groups whose bodies are equal up to locations share one.
#pragma once
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tare::plan {

/// How one operand or result of a group is stored; `pitch` is null when the physical dims are the logical ones.
struct Storage {
  std::string packing = "raw";
  graph::DimsAttr pitch;
};

/// The op that gives a group its kind (matmul, softmax, attention, ...); the last op of a pointwise group. Never null for a non-empty body.
mlir::Operation *rootOf(mlir::Block &body, llvm::StringRef kind);

/// The number of the block argument that a gemm's right-hand side is read from, through at most one cast; -1 when the body has another form.
int gemmRhsArgument(mlir::Block &body);

/// The fidelity check that a gemm's rows carry with them; null when there is none.
graph::FidelityCheckOp checkOf(mlir::Block &body);
/// How block argument `argument` of a gemm body is stored (Plan.td, `packing`); "check" for the anchors of its check: what the runtime says about this run.
std::string gemmPacking(mlir::Block &body, unsigned argument);

class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module) : module(module) {}
  /// The kernel of this group; operands first in `storage`. Made at the end of the module when no equal one exists.
  mlir::func::FuncOp kernelFor(graph::GroupOp group, llvm::ArrayRef<Storage> storage);

private:
  std::string uniqueName(std::string base);
  mlir::ModuleOp module;
  llvm::StringMap<mlir::func::FuncOp> byBody;
  llvm::StringSet<> names;
};

/// Bytes of working memory that each thread needs in this kernel (one row of a `row` kernel, scores of an attention, ...); 0 when none.
Dim scratchBytes(mlir::func::FuncOp kernel);

} // namespace tare::plan
