// Building `main`: inputs, initializers, nodes, calls, outputs.
#include "compiler/import/GraphImport.h"
#include "compiler/import/FidelityFunction.h"
#include "compiler/import/NodeImport.h"
#include "compiler/import/OpTable.h"
#include "compiler/import/Unsupported.h"
#include "compiler/import/TopologicalOrder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tare {

/// Functions that call functions may multiply nodes exponentially; a real model has far fewer.
static constexpr uint64_t kMaxNodes = 2000000;

GraphImport::GraphImport(MLIRContext &context, const OnnxModel &model, ExternalData &external)
    : g(context, model.file->path(), external), module(ModuleOp::create(UnknownLoc::get(&context))), model(model) {
  top.opsets = model.opsets;
}

Location GraphImport::locationOf(const std::string &name) {
  std::string unique = name;
  for (unsigned &count = usedNames[name]; count++ > 0;) { // equal node names are legal: later ones get a number
    unique = name + "_" + std::to_string(count);
    if (usedNames.try_emplace(unique, 1).second) break;
  }
  return NameLoc::get(g.builder.getStringAttr(unique));
}

llvm::Error GraphImport::run() {
  if (auto error = checkSupport(model, g.external)) return error;
  auto function = func::FuncOp::create(UnknownLoc::get(&g.context), "main", g.builder.getFunctionType({}, {}));
  module->push_back(function);
  body = function.addEntryBlock();
  g.builder.setInsertionPointToEnd(body);
  if (auto error = inputs()) return error;
  if (auto error = initializers()) return error;
  if (auto error = nodes(model.proto.graph().node(), top, 0)) return error;
  if (auto error = outputs()) return error;
  // What was read by contents only (shapes, axes and how they were computed) is left without uses, as are constants nobody reads.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body))) {
    auto constant = dyn_cast<graph::ConstantOp>(op);
    if (!op.use_empty() || op.getNumResults() != 1 || (constant && constant.getOverridable())) continue; // overridable: an input, read or not
    if (constant || isa<IntegerType>(getElementTypeOrSelf(op.getResult(0)))) op.erase();
  }
  auto warn = [&](const std::vector<std::string> &names, const char *what) {
    if (names.empty()) return;
    g.warnings.push_back(std::to_string(names.size()) + " " + what + " (the first: '" + names[0] + "')");
  };
  warn(g.trainingDropouts, "Dropout node(s) with training_mode = true: treated as inference");
  warn(g.overridables, "initializer(s) that are also graph inputs (overridable): optional inputs of the engine whose default is their own value; no check or fold relies on them");
  if (!g.overridables.empty()) {
    SmallVector<Attribute> order;
    for (auto &input : model.proto.graph().input()) order.push_back(g.builder.getStringAttr(input.name()));
    module->getOperation()->setAttr("graph.input_order", g.builder.getArrayAttr(order));
  }
  if (auto constraints = g.constraintsAttr(); !constraints.empty()) module->getOperation()->setAttr(graph::kConstraintsAttr, constraints);
  Metadata metadata = metadataOf(model.proto);
  for (auto &[key, value] : metadataOf(model.proto.graph())) metadata.emplace(key, value);
  SmallVector<NamedAttribute> entries;
  for (auto &[key, value] : metadata)
    if (!key.empty() && value.size() <= 1024) entries.push_back(g.builder.getNamedAttr(key, g.builder.getStringAttr(value))); // not whole export logs
  if (!entries.empty()) module->getOperation()->setAttr(graph::kMetaAttr, g.builder.getDictionaryAttr(entries));
  return llvm::Error::success();
}

llvm::Error GraphImport::inputs() {
  auto function = cast<func::FuncOp>(body->getParentOp());
  llvm::StringSet<> initialized;
  for (auto &t : model.proto.graph().initializer()) initialized.insert(t.name());
  // Plain symbols first: a dimension may be written as an expression of those of later inputs.
  constexpr llvm::StringLiteral operators = "+-*( ";
  for (auto &input : model.proto.graph().input())
    for (auto &d : input.type().tensor_type().shape().dim())
      if (!initialized.contains(input.name()) && !d.dim_param().empty() && StringRef(d.dim_param()).find_first_of(operators) == StringRef::npos)
        g.inputDim(d.dim_param(), "");
  SmallVector<Type> types;
  for (auto &input : model.proto.graph().input()) {
    if (input.name().empty()) return refuse("a graph input has no name");
    if (model.proto.ir_version() >= 4 && initialized.contains(input.name())) continue; // overridable initializer, see initializers()
    if (initialized.contains(input.name())) continue;
    if (top.values.count(input.name())) return refuse("two graph inputs are named '" + input.name() + "'").ofTensor(input.name());
    if (!input.has_type() || input.type().value_case() == onnx::TypeProto::VALUE_NOT_SET) return refuse("graph input '" + input.name() + "' has no type").ofTensor(input.name());
    if (!input.type().has_tensor_type()) return refuse("graph input '" + input.name() + "' is not a tensor").ofTensor(input.name());
    auto &tensor = input.type().tensor_type();
    Type element = elementType(g.context, tensor.elem_type());
    if (!element) return refuse("graph input '" + input.name() + "': element type " + typeName(tensor.elem_type()) + " is not supported").ofTensor(input.name());
    if (!tensor.has_shape()) return refuse("graph input '" + input.name() + "' has no shape; its rank is needed").ofTensor(input.name()).withHint("declare the input with symbolic dimensions");
    if (tensor.shape().dim_size() > 8) return refuse("graph input '" + input.name() + "' has rank " + std::to_string(tensor.shape().dim_size()) + ", the limit is 8").ofTensor(input.name());
    Dims dims;
    for (auto &d : tensor.shape().dim()) {
      bool fixed = d.value_case() == onnx::TensorShapeProto_Dimension::kDimValue && d.dim_value() >= 0; // -1 is written for "unknown"
      std::string fallback = input.name() + "_d" + std::to_string(dims.size());
      // Two inputs may only share a symbol when the model says so: a fallback is never looked up again.
      auto expression = g.inputExpression(d.dim_param());
      dims.push_back(fixed ? Dim(d.dim_value()) : expression ? *expression : g.inputDim(d.dim_param(), fallback));
    }
    auto type = graph::tensorType(element, dims);
    types.push_back(type);
    top.values[input.name()] = body->addArgument(type, NameLoc::get(g.builder.getStringAttr(input.name())));
    argumentNames.push_back(g.builder.getStringAttr(input.name()));
  }
  function.setFunctionType(g.builder.getFunctionType(types, {}));
  for (auto [i, name] : llvm::enumerate(argumentNames)) function.setArgAttr(i, graph::kNameAttr, name);
  return llvm::Error::success();
}

llvm::Error GraphImport::initializers() {
  llvm::StringSet<> inputs;
  if (model.proto.ir_version() >= 4)
    for (auto &input : model.proto.graph().input()) inputs.insert(input.name());
  for (auto &t : model.proto.graph().initializer()) {
    if (t.name().empty()) return refuse("an initializer has no name");
    if (top.values.count(t.name())) return refuse("two initializers are named '" + t.name() + "'").ofTensor(t.name());
    bool overridable = inputs.contains(t.name());
    if (overridable) g.overridables.push_back(t.name());
    auto value = g.constant(t, t.name(), NameLoc::get(g.builder.getStringAttr(t.name())), overridable);
    if (!value) return value.takeError();
    auto type = cast<RankedTensorType>(value->getType());
    if (isa<FloatType>(type.getElementType()) && type.getNumElements() > 1) g.parameters += type.getNumElements();
    top.values[t.name()] = *value;
  }
  for (auto &t : model.proto.graph().sparse_initializer())
    if (auto error = sparse(t)) return error;
  return llvm::Error::success();
}

llvm::Error GraphImport::nodes(const NodeList &list, Frame &frame, unsigned depth) {
  auto order = topologicalOrder(list, [&](StringRef name) { return frame.values.contains(name); });
  if (!order) return order.takeError();
  for (int i : *order)
    if (auto error = node(list[i], i, frame, depth)) return error;
  return llvm::Error::success();
}

/// A copy with the attribute references of a function body replaced by the call's values or the function's defaults.
static std::unique_ptr<onnx::NodeProto> bindAttributes(const onnx::NodeProto &proto, const onnx::NodeProto &call, const onnx::FunctionProto &function) {
  auto copy = std::make_unique<onnx::NodeProto>(proto);
  copy->clear_attribute();
  for (auto &attribute : proto.attribute()) {
    if (attribute.ref_attr_name().empty()) { *copy->add_attribute() = attribute; continue; }
    const onnx::AttributeProto *value = nullptr;
    for (auto &given : call.attribute())
      if (given.name() == attribute.ref_attr_name()) value = &given;
    onnx::AttributeProto fallback;
    auto &unknown = function.unknown_fields();
    for (int i = 0; i < unknown.field_count() && !value; ++i) // attribute_proto = 11, newer than the installed ONNX
      if (unknown.field(i).number() == 11 && unknown.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
          fallback.ParsePartialFromString(unknown.field(i).length_delimited()) && fallback.name() == attribute.ref_attr_name())
        value = &fallback;
    if (!value) continue; // absent: the op's own default
    auto *bound = copy->add_attribute();
    *bound = *value;
    bound->set_name(attribute.name());
  }
  return copy;
}

llvm::Error GraphImport::node(const onnx::NodeProto &original, int index, Frame &frame, unsigned depth) {
  if (++imported > kMaxNodes) return fail(ExitCode::Limit, "more than " + std::to_string(kMaxNodes) + " nodes after inlining functions");
  const onnx::NodeProto *proto = &original;
  if (frame.call && llvm::any_of(original.attribute(), [](auto &a) { return !a.ref_attr_name().empty(); })) {
    auto copy = bindAttributes(original, *frame.call, *frame.function);
    proto = copy.get();
    g.made->push_back(std::move(copy));
  }
  std::string name = frame.prefix + displayName(*proto, index);
  if (auto *function = calledFunction(model, *proto); function && !isFidelityCheck(*function))
    return inlineCall(*function, *proto, name, frame, depth);
  auto opset = frame.opsets.find(normalDomain(proto->domain()).str());
  OpLookup found = lookUp(proto->domain(), proto->op_type(), opset == frame.opsets.end() ? -1 : opset->second);
  if (!found.row) return refuse(proto->op_type() + " is not supported: " + found.why).atNode(name); // checkSupport() has seen it before
  SmallVector<Value> operands;
  for (auto &input : proto->input()) operands.push_back(input.empty() ? Value() : frame.values.lookup(input));
  while (!operands.empty() && !operands.back()) operands.pop_back(); // trailing "" mean nothing
  Operation *before = body->empty() ? nullptr : &body->back();
  NodeImport n(g, *proto, opset->second, locationOf(name), operands);
  const OpRow &row = *found.row;
  if (operands.size() < row.minInputs || operands.size() > row.maxInputs)
    n.fail(std::to_string(operands.size()) + " operands, allowed are " + std::to_string(row.minInputs) + (row.maxInputs == row.minInputs ? "" : row.maxInputs == kVariadic ? " or more" : " to " + std::to_string(row.maxInputs)));
  for (unsigned i = 0; i < row.minInputs && i < operands.size(); ++i)
    if (!operands[i]) n.fail("required operand " + std::to_string(i) + " is missing");
  if (static_cast<unsigned>(proto->output_size()) > row.maxOutputs || proto->output_size() == 0)
    n.fail(std::to_string(proto->output_size()) + " outputs, allowed are 1 to " + std::to_string(row.maxOutputs));
  if (!n.failed()) row.import(n);
  if (!n.failed()) n.refuseUnknownAttributes();
  if (auto error = n.takeError()) return error;
  for (auto [i, output] : llvm::enumerate(proto->output())) {
    if (output.empty()) continue;
    if (!n.results[i]) return refuse(proto->op_type() + ": output " + std::to_string(i) + " ('" + output + "') is not supported").atNode(name);
    frame.values[output] = n.results[i];
  }
  annotate(*proto, index, frame, before, n.results);
  return llvm::Error::success();
}

llvm::Error GraphImport::inlineCall(const onnx::FunctionProto &function, const onnx::NodeProto &call, const std::string &name, Frame &frame, unsigned depth) {
  if (depth >= 32) return fail(ExitCode::Limit, "function calls are nested deeper than 32").atNode(name);
  if (call.input_size() > function.input_size() || call.output_size() > function.output_size())
    return refuse("the call of function '" + function.name() + "' has more operands or results than the function").atNode(name);
  Frame inner;
  inner.opsets = frame.opsets;
  auto own = readOpsets(function.opset_import(), "function '" + function.name() + "'");
  if (!own) return own.takeError();
  for (auto &[domain, version] : *own) inner.opsets[domain] = version;
  inner.prefix = name + "/";
  inner.call = &call;
  inner.function = &function;
  inner.metadata = frame.metadata;
  for (auto &[key, value] : metadataOf(function)) inner.metadata[key] = value;
  for (auto &[key, value] : metadataOf(call)) inner.metadata[key] = value;
  for (int i = 0; i < call.input_size(); ++i)
    if (!call.input(i).empty()) inner.values[function.input(i)] = frame.values.lookup(call.input(i));
  if (auto error = nodes(function.node(), inner, depth + 1)) return error;
  for (int i = 0; i < call.output_size(); ++i) {
    if (call.output(i).empty()) continue;
    Value value = inner.values.lookup(function.output(i));
    if (!value) return refuse("function '" + function.name() + "' never produces its output '" + function.output(i) + "'").atNode(name);
    frame.values[call.output(i)] = value;
  }
  return llvm::Error::success();
}

llvm::Error GraphImport::outputs() {
  auto function = cast<func::FuncOp>(body->getParentOp());
  SmallVector<Value> values;
  SmallVector<Type> types;
  llvm::StringSet<> seen;
  for (auto &output : model.proto.graph().output()) {
    Value value = top.values.lookup(output.name());
    if (!value) return refuse("graph output '" + output.name() + "' is never produced").ofTensor(output.name());
    if (!seen.insert(output.name()).second) return refuse("two graph outputs are named '" + output.name() + "'").ofTensor(output.name());
    auto type = cast<RankedTensorType>(value.getType());
    auto &declared = output.type().tensor_type();
    if (output.type().has_tensor_type() && declared.elem_type() && elementType(g.context, declared.elem_type()) != type.getElementType())
      return refuse("graph output '" + output.name() + "' is declared as " + typeName(declared.elem_type()) + ", its node computes " + typeName(type.getElementType())).ofTensor(output.name());
    if (output.type().has_tensor_type() && declared.has_shape()) {
      Dims dims = graph::dimsOf(type), said;
      bool differs = declared.shape().dim_size() != static_cast<int>(dims.size());
      for (auto [i, d] : llvm::enumerate(declared.shape().dim())) {
        bool fixed = d.value_case() == onnx::TensorShapeProto_Dimension::kDimValue;
        said.push_back(fixed ? Dim(d.dim_value()) : Dim::symbol(d.dim_param().empty() ? "?" : d.dim_param()));
        // A declared name may stand for an expression of other names; a declared number must be what comes out.
        if (!differs && fixed && !(said.back() == dims[i])) differs = true;
      }
      if (differs) g.warnings.push_back("graph output '" + output.name() + "' is declared with shape " + text(said) + ", the graph computes " + text(dims) + ": the declaration is ignored");
    }
    values.push_back(value);
    types.push_back(type);
  }
  g.builder.create<func::ReturnOp>(UnknownLoc::get(&g.context), values);
  function.setFunctionType(g.builder.getFunctionType(function.getArgumentTypes(), types));
  for (auto [i, output] : llvm::enumerate(model.proto.graph().output())) function.setResultAttr(i, graph::kNameAttr, g.builder.getStringAttr(output.name()));
  return llvm::Error::success();
}

} // namespace tare
