// Bookkeeping of the importer: contents, constraints, symbols, small constants.
#include "compiler/import/GraphBuilder.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tare {

GraphBuilder::GraphBuilder(MLIRContext &context, std::string file, ExternalData &external)
    : context(context), builder(&context), file(std::move(file)), external(external),
      made(std::make_shared<std::vector<std::unique_ptr<google::protobuf::Message>>>()) {}

const Dims *GraphBuilder::content(Value value) const {
  auto it = contents.find(value);
  return it == contents.end() ? nullptr : &it->second;
}

void GraphBuilder::setContent(Value value, Dims elements) { contents[value] = std::move(elements); }

void GraphBuilder::erase(Value value) {
  contents.erase(value);
  value.getDefiningOp()->erase();
}

void GraphBuilder::require(StringRef kind, const Dim &a, const Dim &b, const std::string &message) {
  std::string key = (kind + "|" + a.str() + "|" + b.str()).str();
  if (!constraintKeys.insert(key).second) return;
  constraints.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr("kind", builder.getStringAttr(kind)), builder.getNamedAttr("a", graph::DimsAttr::get(&context, a)),
       builder.getNamedAttr("b", graph::DimsAttr::get(&context, b)), builder.getNamedAttr("message", builder.getStringAttr(message))}));
}

ArrayAttr GraphBuilder::constraintsAttr() { return builder.getArrayAttr(constraints); }

Dim GraphBuilder::inputDim(StringRef parameter, StringRef fallback) {
  StringRef source = parameter.empty() ? fallback : parameter;
  if (auto it = renamed.find(source); it != renamed.end() && !parameter.empty()) return Dim::symbol(it->second);
  std::string name;
  for (char c : source.take_front(200)) name += llvm::isAlnum(c) || c == '_' || c == '.' ? c : '_';
  if (name.empty() || llvm::isDigit(name[0])) name = "d" + name;
  if (name == "min" || name == "max" || name == "mod" || name == "floordiv") name += "_";
  std::string unique = name;
  for (int i = 2; !symbols.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  renamed[source] = unique;
  return Dim::symbol(unique);
}

std::optional<Dim> GraphBuilder::inputExpression(StringRef parameter) const {
  if (parameter.find_first_of("+-*(") == StringRef::npos) return std::nullopt;
  auto parsed = Dim::parse(parameter);
  if (!parsed || parsed->symbols().empty()) return std::nullopt;
  for (auto &name : parsed->symbols())
    if (auto it = renamed.find(name); it == renamed.end() || it->second != name) return std::nullopt;
  return parsed;
}

Value GraphBuilder::integers(Type element, ArrayRef<int64_t> shape, ArrayRef<int64_t> values, Location location) {
  auto type = RankedTensorType::get(shape, element);
  SmallVector<APInt> elements;
  Dims content;
  for (int64_t v : values) {
    elements.push_back(APInt(64, static_cast<uint64_t>(v)).trunc(element.getIntOrFloatBitWidth()));
    content.push_back(v);
  }
  auto op = builder.create<graph::ConstantOp>(location, type, builder.getStringAttr(""), DenseElementsAttr::get(type, elements), UnitAttr());
  setContent(op, std::move(content));
  return op;
}

Value GraphBuilder::scalar(Type element, double value, Location location) {
  if (isa<IntegerType>(element)) return integers(element, {}, {static_cast<int64_t>(value)}, location);
  auto type = RankedTensorType::get({}, element);
  Attribute attr = FloatAttr::get(element, value);
  return builder.create<graph::ConstantOp>(location, type, builder.getStringAttr(""), DenseElementsAttr::get(type, attr), UnitAttr());
}

} // namespace tare
