// Reverse mode over blocks. In: the values of a run and the cotangents of some of them. Out: the cotangents of the
// floating-point values that they depend on (all, or only the wanted ones). Ops are visited in reverse order and
// contributions are added in that order, so sums are fixed.
#include "compiler/graph/Failure.h"
#include "compiler/reference/Ops.h"
#include "compiler/reference/Recall.h"

using namespace mlir;

namespace tare::reference {
namespace {

struct Sweep {
  Recall run;
  const Symbols &symbols;
  const BackwardOptions &options;
  Values cotangents;
  llvm::DenseSet<Value> relevant; ///< depends on a wanted value; used only when options.wanted is set
  Block *outer = nullptr;

  Sweep(const Values &values, const Symbols &symbols, const BackwardOptions &options, const Values &seeds)
      : run(values, options.known, symbols), symbols(symbols), options(options), cotangents(seeds) {}

  bool isRelevant(Value value) const {
    return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()) &&
           (!options.wanted || relevant.contains(value));
  }

  void markRelevant(Block &block) {
    for (Value argument : block.getArguments())
      if (options.wanted->contains(argument)) relevant.insert(argument);
    for (Operation &op : block) markRelevant(op);
  }

  void inherit(Value to, Value from) {
    if (relevant.contains(from)) relevant.insert(to);
  }

  void markRelevant(Operation &op) {
    for (Value result : op.getResults())
      if (options.wanted->contains(result)) relevant.insert(result);
    if (op.getNumRegions()) {
      Block &body = op.getRegion(0).front();
      for (auto [argument, operand] : llvm::zip(body.getArguments(), op.getOperands())) inherit(argument, operand);
      markRelevant(body);
      for (auto [result, yielded] : llvm::zip(op.getResults(), body.getTerminator()->getOperands()))
        inherit(result, yielded);
      return;
    }
    for (Value result : op.getResults())
      for (Value operand : op.getOperands()) inherit(result, operand);
  }

  void add(Value value, Tensor &&contribution) {
    auto [at, isNew] = cotangents.try_emplace(value, std::move(contribution));
    if (isNew) return;
    for (size_t i = 0; i < at->second.floats.size(); ++i) at->second.floats[i] += contribution.floats[i];
  }

  /// A result's cotangent is complete when its op is visited; it is dropped afterwards unless it was asked for.
  std::optional<Tensor> take(Value value) {
    auto at = cotangents.find(value);
    if (at == cotangents.end()) return std::nullopt;
    if (!options.wanted || options.wanted->contains(value)) return at->second;
    Tensor t = std::move(at->second);
    cotangents.erase(at);
    return t;
  }

  llvm::Error block(Block &body) {
    for (Operation &op : llvm::reverse(body))
      if (llvm::Error error = visit(op)) return error;
    return llvm::Error::success();
  }

  llvm::Error visit(Operation &op) {
    if (op.hasTrait<OpTrait::IsTerminator>()) return llvm::Error::success();
    if (options.onOp && op.getBlock() == outer) options.onOp(op);
    llvm::Error error = op.getNumRegions() ? region(op) : op.getNumOperands() ? plain(op) : llvm::Error::success();
    run.forget(op); // nothing in front of it reads what it made
    return error;
  }

  /// Everything, or what was asked for.
  Values result() {
    if (!options.wanted) return std::move(cotangents);
    Values asked;
    for (Value value : *options.wanted)
      if (auto at = cotangents.find(value); at != cotangents.end()) asked[value] = std::move(at->second);
    return asked;
  }

  llvm::Error region(Operation &op) {
    Block &body = op.getRegion(0).front();
    bool reached = false;
    for (auto [result, yielded] : llvm::zip(op.getResults(), body.getTerminator()->getOperands()))
      if (auto cotangent = take(result)) add(yielded, std::move(*cotangent)), reached = true;
    if (!reached) return llvm::Error::success();
    if (llvm::Error error = block(body)) return error;
    for (auto [argument, operand] : llvm::zip(body.getArguments(), op.getOperands()))
      if (auto cotangent = take(argument); cotangent && isRelevant(operand)) add(operand, std::move(*cotangent));
    return llvm::Error::success();
  }

  llvm::Error plain(Operation &op) {
    auto cotangent = take(op.getResult(0));
    if (!cotangent) return llvm::Error::success();
    SmallVector<bool> wanted;
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands()) wanted.push_back(isRelevant(operand));
    if (!llvm::is_contained(wanted, true)) return llvm::Error::success();
    for (Value operand : op.getOperands()) {
      auto tensor = run.find(operand);
      if (!tensor) return tensor.takeError();
      operands.push_back(*tensor);
    }
    const Row *row = findRow(op.getName().getStringRef());
    if (!row || !row->vjp) {
      if (options.missing)
        options.missing->push_back(op.getName().getStringRef().str() + " (" + graph::nodeName(op.getLoc()) + ")");
      return llvm::Error::success();
    }
    auto value = run.find(op.getResult(0));
    if (!value) return value.takeError();
    VjpCall call{{&op, operands, (*value)->shape, symbols}, **value, *cotangent, wanted};
    Cotangents contributions = row->vjp(call);
    for (auto [operand, contribution, isWanted] : llvm::zip(op.getOperands(), contributions, wanted))
      if (contribution.element && isWanted) add(operand, std::move(contribution));
    return llvm::Error::success();
  }
};

} // namespace

llvm::Expected<Values> backward(Block &block, const Values &values, const Values &seeds, const Symbols &symbols,
                                const BackwardOptions &options) {
  Sweep sweep(values, symbols, options, seeds);
  sweep.outer = &block;
  if (options.wanted) sweep.markRelevant(block);
  if (llvm::Error error = sweep.block(block)) return std::move(error);
  return sweep.result();
}

llvm::Expected<Values> backward(ArrayRef<Operation *> ops, const Values &values, const Values &seeds,
                                const Symbols &symbols, const BackwardOptions &options) {
  Sweep sweep(values, symbols, options, seeds);
  if (options.wanted) {
    sweep.relevant.insert(options.wanted->begin(), options.wanted->end());
    for (Operation *op : ops) sweep.markRelevant(*op);
  }
  for (Operation *op : llvm::reverse(ops))
    if (llvm::Error error = sweep.visit(*op)) return std::move(error);
  return sweep.result();
}

} // namespace tare::reference
