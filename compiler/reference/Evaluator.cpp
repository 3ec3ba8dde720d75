// Forward evaluation of blocks. In: a block of graph ops and tensors for its arguments. Out: every SSA value of the run, bodies of layers and groups
// included. Shapes come from the result types' symbolic dims under the symbols that the inputs bind; a shape that does not fit is a Failure.
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
      if (auto name = cast<DictionaryAttr>(attrs[argument.getArgNumber()]).getAs<StringAttr>(graph::kNameAttr)) return name.str();
  return "input " + std::to_string(argument.getArgNumber());
}

llvm::Expected<Symbols> bindSymbols(Block &entry, ArrayRef<Tensor> inputs) {
  Symbols symbols;
  if (inputs.size() != entry.getNumArguments())
    return refuse("the graph has " + std::to_string(entry.getNumArguments()) + " inputs, " + std::to_string(inputs.size()) + " were given");
  for (auto [argument, input] : llvm::zip(entry.getArguments(), inputs)) {
    Dims dims = graph::dimsOf(argument);
    if (dims.size() != input.shape.size())
      return refuse("input has rank " + std::to_string(input.shape.size()) + ", the graph wants " + std::to_string(dims.size())).ofTensor(argumentName(argument));
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
        return refuse("input has shape " + text(input.shape) + ", but " + dim.str() + " is " + std::to_string(*value)).ofTensor(argumentName(argument));
    }
  return symbols;
}

llvm::Expected<SmallVector<Tensor>> evaluateOp(Operation *op, ArrayRef<const Tensor *> operands, const Symbols &symbols) {
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
    return refuse(op->getName().getStringRef().str() + " gives " + text(result->shape) + ", its type says " + text(*shape)).atNode(name);
  SmallVector<Tensor> results;
  results.push_back(std::move(*result));
  return results;
}

namespace {

struct Run {
  const Values *known;
  Symbols symbols;
  Values values;

  const Tensor *find(Value value) const {
    auto at = values.find(value);
    if (at != values.end()) return &at->second;
    if (!known) return nullptr;
    auto constant = known->find(value);
    return constant == known->end() ? nullptr : &constant->second;
  }

  llvm::Error block(Block &body) {
    for (Operation &op : body) {
      if (op.hasTrait<OpTrait::IsTerminator>()) continue;
      if (llvm::Error error = op.getNumRegions() ? region(op) : plain(op)) return error;
    }
    return llvm::Error::success();
  }

  llvm::Error plain(Operation &op) {
    if (op.getNumOperands() == 0 && find(op.getResult(0))) return llvm::Error::success();
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands()) {
      operands.push_back(find(operand));
      if (!operands.back()) return refuse("an operand of " + op.getName().getStringRef().str() + " has no value").atNode(graph::nodeName(op.getLoc()));
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
      if (!value) return refuse("an operand of " + op.getName().getStringRef().str() + " has no value").atNode(graph::nodeName(op.getLoc()));
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

llvm::Expected<Values> evaluate(Block &block, ArrayRef<Tensor> inputs, const Values *known, const Symbols *given) {
  auto symbols = bindSymbols(block, inputs);
  if (!symbols) return symbols.takeError();
  for (auto &entry : given ? *given : Symbols()) symbols->try_emplace(entry.getKey(), entry.getValue());
  Run run{known, std::move(*symbols), Values()};
  for (auto [argument, input] : llvm::zip(block.getArguments(), inputs)) run.values[argument] = input;
  if (llvm::Error error = run.block(block)) return std::move(error);
  return std::move(run.values);
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
