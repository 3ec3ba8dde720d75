// Helpers behind NodeImport: checked access to operands and attributes, results, errors.
#include "compiler/import/NodeImport.h"
#include "compiler/graph/Checked.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tare {

std::string text(ArrayRef<Dim> dims) {
  std::string result = "[";
  for (auto &d : dims) result += (result.size() > 1 ? ", " : "") + d.str();
  return result + "]";
}

NodeImport::NodeImport(GraphBuilder &g, const onnx::NodeProto &proto, int64_t version, Location location, ArrayRef<Value> operands)
    : g(g), proto(proto), version(version), location(location), operands(operands), operandDims(operands.size()) {
  results.resize(proto.output_size());
}

const Dims &NodeImport::dims(unsigned i) {
  auto &slot = operandDims[i];
  if (!slot) slot = graph::dimsOf(operands[i]);
  return *slot;
}

Type NodeImport::element(unsigned i) const { return mlir::cast<RankedTensorType>(operands[i].getType()).getElementType(); }

const Dims *NodeImport::requireContent(unsigned i, StringRef what) {
  const Dims *known = content(i);
  if (!known && in(i))
    fail("the shape of the result depends on data: " + what.str() + " (tensor '" + proto.input(i) + "') is not known before a run",
         "export the model with shapes that depend on input sizes only");
  else if (!known)
    fail("operand " + what.str() + " is missing");
  return known;
}

std::optional<SmallVector<int64_t>> NodeImport::requireIntegers(unsigned i, StringRef what) {
  const Dims *known = requireContent(i, what);
  if (!known) return std::nullopt;
  SmallVector<int64_t> values;
  for (auto &d : *known) {
    auto c = d.constant();
    if (!c) {
      fail(what.str() + " must be constant, got " + ::tare::text(*known));
      return std::nullopt;
    }
    values.push_back(*c);
  }
  return values;
}

static std::string kindName(onnx::AttributeProto::AttributeType type) { return StringRef(onnx::AttributeProto::AttributeType_Name(type)).lower(); }

const onnx::AttributeProto *NodeImport::attribute(StringRef name, std::optional<onnx::AttributeProto::AttributeType> type) {
  read.insert(name);
  for (auto &a : proto.attribute()) {
    if (StringRef(a.name()) != name) continue;
    if (type && a.type() != *type) {
      fail("attribute '" + name.str() + "' must be of kind " + kindName(*type) + ", got " + kindName(a.type()));
      return nullptr;
    }
    return &a;
  }
  return nullptr;
}

std::optional<int64_t> NodeImport::integer(StringRef name) {
  auto *a = attribute(name, onnx::AttributeProto::INT);
  return a ? std::optional<int64_t>(a->i()) : std::nullopt;
}
int64_t NodeImport::integer(StringRef name, int64_t fallback) { return integer(name).value_or(fallback); }
std::optional<double> NodeImport::real(StringRef name) {
  auto *a = attribute(name, onnx::AttributeProto::FLOAT);
  return a ? std::optional<double>(a->f()) : std::nullopt;
}
double NodeImport::real(StringRef name, double fallback) { return real(name).value_or(fallback); }
std::optional<SmallVector<int64_t>> NodeImport::integers(StringRef name) {
  auto *a = attribute(name, onnx::AttributeProto::INTS);
  if (!a) return std::nullopt;
  return SmallVector<int64_t>(a->ints().begin(), a->ints().end());
}
std::optional<SmallVector<double>> NodeImport::reals(StringRef name) {
  auto *a = attribute(name, onnx::AttributeProto::FLOATS);
  if (!a) return std::nullopt;
  return SmallVector<double>(a->floats().begin(), a->floats().end());
}
std::string NodeImport::text(StringRef name, StringRef fallback) {
  auto *a = attribute(name, onnx::AttributeProto::STRING);
  return a ? a->s() : fallback.str();
}

void NodeImport::refuseUnknownAttributes() {
  for (auto &a : proto.attribute())
    if (!read.contains(a.name()))
      return fail("attribute '" + a.name() + "' is not known for this op at version " + std::to_string(version));
}

int64_t NodeImport::axis(int64_t axis, int64_t rank, bool inclusive) {
  int64_t top = inclusive ? rank : rank - 1;
  if (axis < -rank || axis > top) {
    fail("axis " + std::to_string(axis) + " is out of range [" + std::to_string(-rank) + ", " + std::to_string(top) + "] for rank " + std::to_string(rank));
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

SmallVector<int64_t> NodeImport::axes(ArrayRef<int64_t> list, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t a : list) {
    int64_t normal = axis(a, rank);
    if (failed()) return {};
    if (llvm::is_contained(result, normal)) {
      fail("axis " + std::to_string(a) + " appears twice");
      return {};
    }
    result.push_back(normal);
  }
  llvm::sort(result);
  return result;
}

RankedTensorType NodeImport::type(Type element, ArrayRef<Dim> dims) {
  uint64_t known = 1;
  for (auto &d : dims) {
    auto c = d.constant();
    if (!c) continue;
    if (*c < 0) {
      fail("a result dimension is negative: " + ::tare::text(dims));
      return graph::tensorType(element, Dims(dims.size(), Dim(0)));
    }
    if (*c != 0 && known > kMaxElements / static_cast<uint64_t>(*c)) {
      fail("the result " + ::tare::text(dims) + " has more than 2^40 elements", "", ExitCode::Limit);
      return graph::tensorType(element, Dims(dims.size(), Dim(0)));
    }
    known *= std::max<uint64_t>(*c, 1);
  }
  if (dims.size() > 8) fail("the result has rank " + std::to_string(dims.size()) + ", the limit is 8", "", ExitCode::Limit);
  return graph::tensorType(element, dims);
}

bool NodeImport::outContent(unsigned i, Type element, ArrayRef<Dim> shape, Dims elements) {
  SmallVector<int64_t> sizes, values;
  for (auto &d : shape) {
    if (!d.constant()) return false;
    sizes.push_back(*d.constant());
  }
  for (auto &d : elements)
    if (auto c = d.constant()) values.push_back(*c);
  if (!isa<IntegerType>(element)) return false;
  if (values.size() == elements.size()) {
    results[i] = g.integers(element, sizes, values, location);
    return true;
  }
  if (sizes.size() > 1 || !(element.isInteger(64) || element.isInteger(32))) return false;
  results[i] = emit<graph::DimsConstantOp>(RankedTensorType::get(sizes, element), graph::DimsAttr::get(&g.context, elements));
  g.setContent(results[i], std::move(elements));
  return true;
}

void NodeImport::fail(std::string message, std::string hint, ExitCode code) {
  if (failure) return; // the first reason is the one to tell
  failure.emplace(code, proto.op_type() + ": " + message);
  failure->withHint(std::move(hint)).inFile(g.file).atNode(graph::nodeName(location));
  if (proto.output_size()) failure->ofTensor(proto.output(0));
}

llvm::Error NodeImport::takeError() { return failure ? llvm::make_error<Failure>(*failure) : llvm::Error::success(); }

} // namespace tare
