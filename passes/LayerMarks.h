// Which nodes belong to which layer. In: the body of `main` as imported, rules. Out: groups of ops, each with name, role and source of the mark, in the
// order of their first op; nested layers share ops. What the groups look like as regions is decided in LayerRegions.h.
#pragma once
#include "compiler/checks/Rules.h"
#include "compiler/graph/Graph.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace tare {

struct LayerGroup {
  std::string name, role, source; ///< source: rules, metadata or path
  bool byInitializer = false;     ///< marked only because of the names of its weights
  llvm::SetVector<mlir::Operation *> members;
};

/// What is known about the values of a block before any marking.
struct BlockFacts {
  explicit BlockFacts(mlir::Block &block);
  /// Computed from constants only (overridable ones count as constants here: they are parameters too).
  bool isConstantOnly(mlir::Value value) const { return constantOnly.contains(value); }
  /// A floating-point tensor that is not constant-only.
  bool isActivation(mlir::Value value) const;
  /// The op depends on no activation (spec 2: Shape, Range, the Gather of a position table).
  bool isActivationFree(mlir::Operation *op) const { return activationFree.contains(op); }

private:
  llvm::DenseSet<mlir::Value> constantOnly;
  llvm::DenseSet<mlir::Operation *> activationFree;
};

/// Module path of an op: graph.scope, PyTorch's name scopes, or the node's own name; empty when none of them has one.
std::string modulePath(mlir::Operation *op);

/// `user`: the rules file (may be empty); `defaults`: passes/default-rules.yaml. `used`: the user rules that matched a node.
std::vector<LayerGroup> collectMarks(mlir::Block &block, const BlockFacts &facts, const checks::Rules &user, const checks::Rules &defaults,
                                     llvm::DenseSet<const checks::Rule *> &used);

} // namespace tare
