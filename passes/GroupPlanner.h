// Decides which values get memory. In: the ops of main. Out: for each op whether it is the root of a group, part of a root's epilogue, a view, or pulled into
// every group that reads it. FormGroups.cpp builds what is decided here.
#pragma once
#include "passes/Groups.h"
#include "llvm/ADT/DenseMap.h"

namespace tare {

struct PlannedGroup {
  graph::GroupKind kind;
  mlir::Operation *root;
  llvm::SmallVector<mlir::Operation *> epilogue; ///< in block order; the last one's result is the group's result
  llvm::SmallVector<mlir::Operation *> extra;    ///< ops that become further results: the sum of residual + norm, sibling pointwise ops
  mlir::Operation *last() const { return epilogue.empty() ? root : epilogue.back(); }
};

class GroupPlanner {
public:
  explicit GroupPlanner(mlir::Block &body);
  /// All groups, ordered by the place of their last op.
  llvm::ArrayRef<PlannedGroup> groups() const { return planned; }
  /// The ops that the group holds, in block order: pulled producers, root, epilogue.
  llvm::SmallVector<mlir::Operation *> opsOf(const PlannedGroup &group) const;

private:
  enum class State { Undecided, Root, Inner, Extra, Pulled, View };
  /// A place where an expression is evaluated: which group, at which indices (ops that change the index make a new id), how often.
  struct Request {
    uint64_t place;
    double count;
  };
  struct Info {
    int64_t index = 0;
    double elements = 0, weight = 0; ///< estimates: elements of the result, cost of one element with everything pulled
    State state = State::Undecided;
    bool mustHaveMemory = false, inBias = false; ///< inBias: pulled into the bias of an attention
    llvm::SmallVector<Request, 2> requests;
  };

  void estimate(mlir::Block &body);
  void growEpilogue(PlannedGroup &group);
  void decide(mlir::Operation *op);
  bool isWorthMemory(mlir::Operation *op, const Info &info) const;
  void requestOperands(mlir::Operation *op, llvm::ArrayRef<Request> places, const PlannedGroup *group);
  void request(mlir::Value value, uint64_t place, double count);
  void needMemory(mlir::Value value);
  bool hasMemory(mlir::Value value) const;
  void attachExtraResults();
  void mergeSiblings();
  int64_t firstUse(mlir::Value value) const;
  double elementsOf(mlir::Value value);

  llvm::DenseMap<mlir::Operation *, Info> infos;
  llvm::DenseMap<mlir::Operation *, size_t> groupOf; ///< roots and epilogue ops
  std::vector<PlannedGroup> planned;
};

} // namespace tare
