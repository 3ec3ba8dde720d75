// Forward evaluation of blocks. In: a block of graph ops and tensors for its arguments. Out: every SSA value of the
// run, bodies of layers and groups included. Shapes come from the result types' symbolic dims under the symbols that
// the inputs bind; a shape that does not fit is a Failure.
#include "compiler/reference/Evaluator.h"
#include "compiler/graph/Failure.h"
#include "compiler/reference/Ops.h"

using namespace mlir;

namespace tare::reference {

static std::string text(llvm::ArrayRef<int64_t> shape) {
  std::string s = "[";
  for (int64_t d : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(d);
  return s + "]";
}

/// The name under which a block argument is known to the user.
static std::string argumentName(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto attrs = parent ? parent->getAttrOfType<ArrayAttr>("arg_attrs") : ArrayAttr())
    if (argument.getArgNumber() < attrs.size())
      if (auto name = cast<DictionaryAttr>(attrs[argument.getArgNumber()]).getAs<StringAttr>(graph::kNameAttr))
        return name.str();
  return "input " + std::to_string(argument.getArgNumber());
}

llvm::Expected<Symbols> bindSymbols(Block &entry, ArrayRef<Tensor> inputs) {
  Symbols symbols;
  if (inputs.size() != entry.getNumArguments())
    return refuse("the graph has " + std::to_string(entry.getNumArguments()) + " inputs, " +
                  std::to_string(inputs.size()) + " were given");
  for (auto [argument, input] : llvm::zip(entry.getArguments(), inputs)) {
    Dims dims = graph::dimsOf(argument);
    if (dims.size() != input.shape.size())
      return refuse("input has rank " + std::to_string(input.shape.size()) + ", the graph wants " +
                    std::to_string(dims.size()))
          .ofTensor(argumentName(argument));
    for (auto [dim, size] : llvm::zip(dims, input.shape)) {
      auto names = dim.symbols();
      if (names.size() == 1 && dim == Dim::symbol(names[0])) symbols.try_emplace(names[0], size);
    }
  }
  for (auto [argument, input] : llvm::zip(entry.getArguments(), inputs))
    for (auto [dim, size] : llvm::zip(graph::dimsOf(argument), input.shape)) {
      auto value = dim.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
        auto at = symbols.find(name);
        return at == symbols.end() ? std::nullopt : std::optional<int64_t>(at->second);
      });
      if (value && *value != size)
        return refuse("input has shape " + text(input.shape) + ", but " + dim.str() + " is " + std::to_string(*value))
            .ofTensor(argumentName(argument));
    }
  return symbols;
}

llvm::Expected<SmallVector<Tensor>> evaluateOp(Operation *op, ArrayRef<const Tensor *> operands,
                                               const Symbols &symbols) {
  const Row *row = findRow(op->getName().getStringRef());
  std::string name = graph::nodeName(op->getLoc());
  if (!row) return refuse("the reference does not know " + op->getName().getStringRef().str()).atNode(name);
  auto shape = evaluateDims(graph::dimsOf(op->getResult(0)), symbols);
  if (!shape) return shape.takeError();
  for (int64_t d : *shape)
    if (d < 0) return refuse("a dimension of the result is negative: " + text(*shape)).atNode(name);
  auto result = row->forward(Call{op, operands, *shape, symbols});
  if (!result) {
    std::string why = llvm::toString(result.takeError());
    return refuse(op->getName().getStringRef().str() + ": " + why).atNode(name);
  }
  if (result->shape != *shape)
    return refuse(op->getName().getStringRef().str() + " gives " + text(result->shape) + ", its type says " +
                  text(*shape))
        .atNode(name);
  SmallVector<Tensor> results;
  results.push_back(std::move(*result));
  return results;
}

namespace {

/// Which values an op reads last, by the ancestor of their last reader in the block that they are defined in; one
/// without readers is its own last. What a terminator reads stays: it leaves the block.
llvm::DenseMap<Operation *, SmallVector<Value>> lastReads(Block &block) {
  llvm::DenseMap<Operation *, SmallVector<Value>> reads;
  auto note = [&](Value value, Operation *definition) {
    Operation *last = definition;
    for (Operation *user : value.getUsers()) {
      Operation *reader = value.getParentBlock()->findAncestorOpInBlock(*user);
      if (!last || last->isBeforeInBlock(reader)) last = reader;
    }
    if (last && !last->hasTrait<OpTrait::IsTerminator>()) reads[last].push_back(value);
  };
  block.walk([&](Operation *op) {
    for (Value result : op->getResults()) note(result, op);
    for (Region &region : op->getRegions())
      for (Value argument : region.getArguments()) note(argument, nullptr);
  });
  return reads;
}

uint64_t bytesOf(const Tensor &tensor) { return 8 * (tensor.floats.size() + tensor.ints.size()); }

struct Run {
  const EvaluateOptions &options;
  Symbols symbols;
  llvm::DenseMap<Operation *, SmallVector<Value>> dropAfter;
  Values values;
  Block *outer;

  Run(const EvaluateOptions &options, Symbols symbols, Block *outer)
      : options(options), symbols(std::move(symbols)), outer(outer) {}

  const Tensor *find(Value value) const {
    auto at = values.find(value);
    if (at != values.end()) return &at->second;
    if (!options.known) return nullptr;
    auto constant = options.known->find(value);
    return constant == options.known->end() ? nullptr : &constant->second;
  }

  void drop(Operation &op) {
    auto at = dropAfter.find(&op);
    if (at == dropAfter.end()) return;
    for (Value value : at->second) {
      auto kept = values.find(value);
      if (kept != values.end() && bytesOf(kept->second) > options.largest &&
          !(options.keep && options.keep->contains(value)))
        values.erase(kept);
    }
  }

  llvm::Error block(Block &body) {
    for (Operation &op : body) {
      if (op.hasTrait<OpTrait::IsTerminator>()) continue;
      if (options.onOp && &body == outer) options.onOp(op);
      if (llvm::Error error = op.getNumRegions() ? region(op) : plain(op)) return error;
      drop(op);
    }
    return llvm::Error::success();
  }

  llvm::Error plain(Operation &op) {
    if (op.getNumOperands() == 0 && find(op.getResult(0))) return llvm::Error::success();
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands()) {
      operands.push_back(find(operand));
      if (!operands.back())
        return refuse("an operand of " + op.getName().getStringRef().str() + " has no value")
            .atNode(graph::nodeName(op.getLoc()));
    }
    auto results = evaluateOp(&op, operands, symbols);
    if (!results) return results.takeError();
    values[op.getResult(0)] = std::move(results->front());
    return llvm::Error::success();
  }

  /// graph.layer, graph.group: arguments are the operands, results what the body yields.
  llvm::Error region(Operation &op) {
    Block &body = op.getRegion(0).front();
    for (auto [argument, operand] : llvm::zip(body.getArguments(), op.getOperands())) {
      const Tensor *value = find(operand);
      if (!value)
        return refuse("an operand of " + op.getName().getStringRef().str() + " has no value")
            .atNode(graph::nodeName(op.getLoc()));
      Tensor copy = *value;
      values[argument] = std::move(copy);
    }
    if (llvm::Error error = block(body)) return error;
    for (auto [result, yielded] : llvm::zip(op.getResults(), body.getTerminator()->getOperands())) {
      Tensor copy = *find(yielded);
      values[result] = std::move(copy);
    }
    return llvm::Error::success();
  }
};

} // namespace

static llvm::Expected<Values> evaluate(Block &block, ArrayRef<Tensor> inputs, const Symbols *given,
                                       const EvaluateOptions &options) {
  auto symbols = bindSymbols(block, inputs);
  if (!symbols) return symbols.takeError();
  for (auto &entry : given ? *given : Symbols()) symbols->try_emplace(entry.getKey(), entry.getValue());
  Run run(options, std::move(*symbols), &block);
  if (options.largest != UINT64_MAX) run.dropAfter = lastReads(block);
  for (auto [argument, input] : llvm::zip(block.getArguments(), inputs)) run.values[argument] = input;
  if (llvm::Error error = run.block(block)) return std::move(error);
  return std::move(run.values);
}

llvm::Expected<Values> evaluate(Block &block, ArrayRef<Tensor> inputs, const Values *known, const Symbols *given) {
  EvaluateOptions options;
  options.known = known;
  return evaluate(block, inputs, given, options);
}

llvm::Expected<Values> evaluate(Block &block, ArrayRef<Tensor> inputs, const EvaluateOptions &options) {
  return evaluate(block, inputs, nullptr, options);
}

uint64_t bytesOfRun(Block &block, const Symbols &symbols) {
  uint64_t total = 0;
  bool known = true;
  auto add = [&](Value value) {
    auto count = elementCount(graph::dimsOf(value)).evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
      auto at = symbols.find(name);
      return at == symbols.end() ? std::nullopt : std::optional<int64_t>(at->second);
    });
    uint64_t bytes;
    known = known && count && *count >= 0 &&
            !__builtin_mul_overflow(uint64_t(8), static_cast<uint64_t>(*count), &bytes) &&
            !__builtin_add_overflow(total, bytes, &total);
  };
  for (Value argument : block.getArguments()) add(argument);
  block.walk([&](Operation *op) {
    if (isa<graph::ConstantOp>(op)) return;
    for (Value result : op->getResults()) add(result);
    for (Region &region : op->getRegions())
      for (Value argument : region.getArguments()) add(argument);
  });
  return known ? total : UINT64_MAX;
}

llvm::Expected<Tensor> evaluateConstant(Value value, const Values &constants) {
  if (auto at = constants.find(value); at != constants.end()) return at->second;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions()) return refuse("the value is not computed from constants");
  std::vector<Tensor> inputs;
  for (Value operand : op->getOperands()) {
    auto input = evaluateConstant(operand, constants);
    if (!input) return input.takeError();
    inputs.push_back(std::move(*input));
  }
  SmallVector<const Tensor *> operands;
  for (const Tensor &t : inputs) operands.push_back(&t);
  auto results = evaluateOp(op, operands, {});
  if (!results) return results.takeError();
  return std::move(results->front());
}

Values decodeConstants(Block &block) {
  Values values;
  block.walk([&](graph::ConstantOp op) { values[op.getResult()] = decode(op.getValue()); });
  return values;
}

} // namespace tare::reference
