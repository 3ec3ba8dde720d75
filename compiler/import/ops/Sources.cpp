// Ops without tensor operands in the graph: Constant, ConstantOfShape, Range.
#include "compiler/import/SymbolicContent.h"
#include "compiler/import/ops/Ops.h"
#include <cmath>

using namespace mlir;

namespace tare::ops {

void constant(NodeImport &n) {
  using A = onnx::AttributeProto;
  const A *given = nullptr;
  for (const char *name : {"value", "value_float", "value_floats", "value_int", "value_ints", "sparse_value", "value_string", "value_strings"})
    if (auto *a = n.attribute(name)) {
      if (given) return n.fail("two values are given: '" + given->name() + "' and '" + a->name() + "'");
      given = a;
    }
  if (!given) return n.fail("no value is given");
  onnx::TensorProto made;
  const onnx::TensorProto *tensor = &made;
  StringRef name = given->name();
  if (name == "value" && given->type() == A::TENSOR) {
    tensor = &given->t();
  } else if (name == "value_float" || name == "value_floats") {
    made.set_data_type(1);
    if (name == "value_floats") made.add_dims(given->floats_size());
    if (name == "value_float") made.add_float_data(given->f());
    for (float v : given->floats()) made.add_float_data(v);
  } else if (name == "value_int" || name == "value_ints") {
    made.set_data_type(7);
    if (name == "value_ints") made.add_dims(given->ints_size());
    if (name == "value_int") made.add_int64_data(given->i());
    for (int64_t v : given->ints()) made.add_int64_data(v);
  } else {
    return n.fail("attribute '" + name.str() + "' is not supported");
  }
  auto value = n.g.constant(*tensor, "", n.location);
  if (!value) return n.fail(llvm::toString(value.takeError()));
  n.out(0, *value);
}

void constantOfShape(NodeImport &n) {
  auto *shape = n.requireContent(0, "shape");
  if (!shape) return;
  Dims dims(shape->begin(), shape->end());
  for (auto &d : dims)
    if (d.constant() && *d.constant() < 0) return n.fail("shape " + text(dims) + " has a negative size");
  TypedAttr fill = n.g.builder.getF32FloatAttr(0);
  if (auto *a = n.attribute("value", onnx::AttributeProto::TENSOR)) {
    auto value = n.g.constant(a->t(), "", n.location);
    if (!value) return n.fail(llvm::toString(value.takeError()));
    auto elements = dyn_cast<DenseElementsAttr>(value->getDefiningOp<graph::ConstantOp>().getValue());
    n.g.erase(*value);
    if (!elements || elements.getNumElements() != 1) return n.fail("attribute 'value' must have one element");
    fill = cast<TypedAttr>(*elements.getValues<Attribute>().begin());
  }
  if (n.failed()) return;
  auto type = n.type(fill.getType(), dims);
  if (n.failed()) return;
  if (auto small = smallShape(dims); small && isa<IntegerType>(fill.getType()) && type.getNumElements() <= kMaxContent) {
    auto integer = cast<IntegerAttr>(fill).getValue();
    bool isUnsigned = fill.getType().isUnsignedInteger() || fill.getType().isInteger(1);
    Dim one(isUnsigned ? static_cast<int64_t>(integer.getZExtValue()) : integer.getSExtValue());
    if (n.outContent(0, fill.getType(), dims, Dims(type.getNumElements(), one))) return;
  }
  n.out(0, n.emit<graph::FillOp>(type, fill));
}

/// The elements of a float Range from constant operands, as ONNX defines it: max(ceil((limit - start) / delta), 0) of them.
static bool floatRange(NodeImport &n) {
  double v[3];
  for (unsigned i = 0; i < 3; ++i) {
    auto c = graph::scalarValue(n.in(i));
    if (!c) return false;
    v[i] = *c;
  }
  double length = std::max(std::ceil((v[1] - v[0]) / v[2]), 0.0);
  if (v[2] == 0 || !(length < 1e6)) {
    n.fail("delta is 0 or the result is too long", "", ExitCode::Limit);
    return true;
  }
  SmallVector<Attribute> elements;
  for (int64_t i = 0; i < static_cast<int64_t>(length); ++i) elements.push_back(FloatAttr::get(n.element(0), v[0] + static_cast<double>(i) * v[2]));
  auto type = RankedTensorType::get({static_cast<int64_t>(length)}, n.element(0));
  n.out(0, n.emit<graph::ConstantOp>(type, n.g.builder.getStringAttr(""), DenseElementsAttr::get(type, elements), UnitAttr()));
  return true;
}

void range(NodeImport &n) {
  n.ignoreAttribute("stash_type");
  for (unsigned i = 0; i < 3; ++i) {
    if (elementCount(n.dims(i)).constant() != 1) return n.fail("start, limit and delta must be scalars");
    if (n.element(i) != n.element(0)) return n.fail("start, limit and delta have different element types");
  }
  // Contents of float operands are known when a Cast made them of sizes; plain float constants go the other way.
  auto known = [&](unsigned i) -> std::optional<Dim> {
    if (auto *c = n.content(i)) return (*c)[0];
    auto value = graph::scalarValue(n.in(i));
    if (value && *value == std::floor(*value) && std::fabs(*value) < 1e15) return Dim(static_cast<int64_t>(*value));
    return std::nullopt;
  };
  auto start = known(0), limit = known(1), delta = known(2);
  if (!start || !limit || !delta) {
    if (isa<FloatType>(n.element(0)) && floatRange(n)) return;
    for (unsigned i = 0; i < 3; ++i) n.requireContent(i, i == 0 ? "start" : i == 1 ? "limit" : "delta");
    return n.fail("its length is not known before a run");
  }
  auto step = delta->constant();
  if (!step || *step == 0) return n.fail("delta must be a constant other than 0, got " + delta->str());
  Dim span = *step > 0 ? *limit - *start : *start - *limit, stride(std::abs(*step));
  Dim length = Dim::floorDiv(span + stride - 1, stride);
  if (!length.provablyNonNegative()) length = Dim::max(length, 0);
  if (auto small = smallShape({length}); small && isa<IntegerType>(n.element(0))) {
    Dims content;
    for (int64_t i = 0; i < (*small)[0]; ++i) content.push_back(*start + Dim(i * *step));
    if (n.outContent(0, n.element(0), {length}, std::move(content))) return;
  }
  n.out(0, n.emit<graph::RangeOp>(n.type(n.element(0), {length}), graph::DimsAttr::get(&n.g.context, {*start, *delta})));
}

} // namespace tare::ops
