// Definitions behind Graph.h: dialect registration, #graph.dims, type helpers.
#include "compiler/graph/Graph.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/graph/GraphDialect.cpp.inc"
#include "compiler/graph/GraphEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/graph/GraphAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/graph/GraphOps.cpp.inc"

using namespace mlir;

namespace tare::graph {

void GraphDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/graph/GraphAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/graph/GraphOps.cpp.inc"
      >();
}

LogicalResult DimsAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayAttr values) {
  for (Attribute value : values) {
    auto text = llvm::dyn_cast<StringAttr>(value);
    if (!llvm::isa<IntegerAttr>(value) && (!text || !Dim::parse(text.getValue())))
      return emitError() << "#graph.dims holds integers and dimension expressions, not " << value;
  }
  return success();
}

Dims DimsAttr::dims() const {
  Dims result;
  for (Attribute value : getValues()) {
    if (auto integer = llvm::dyn_cast<IntegerAttr>(value))
      result.push_back(integer.getInt());
    else
      result.push_back(*Dim::parse(llvm::cast<StringAttr>(value).getValue()));
  }
  return result;
}

DimsAttr DimsAttr::get(MLIRContext *context, ArrayRef<Dim> dims) {
  SmallVector<Attribute> values;
  for (auto &d : dims) {
    if (auto c = d.constant())
      values.push_back(IntegerAttr::get(IntegerType::get(context, 64), *c));
    else
      values.push_back(StringAttr::get(context, d.str()));
  }
  return Base::get(context, ArrayAttr::get(context, values));
}

RankedTensorType tensorType(Type element, ArrayRef<Dim> dims) {
  SmallVector<int64_t> shape;
  bool dynamic = false;
  for (auto &d : dims) {
    auto c = d.constant();
    shape.push_back(c ? *c : ShapedType::kDynamic);
    dynamic |= !c;
  }
  return RankedTensorType::get(shape, element, dynamic ? Attribute(DimsAttr::get(element.getContext(), dims)) : Attribute());
}

Dims dimsOf(RankedTensorType type) {
  if (auto encoding = dyn_cast_if_present<DimsAttr>(type.getEncoding())) return encoding.dims();
  Dims result;
  for (auto [i, size] : llvm::enumerate(type.getShape()))
    result.push_back(ShapedType::isDynamic(size) ? Dim::symbol("?" + std::to_string(i)) : Dim(size));
  return result;
}

Dims dimsOf(Value value) { return dimsOf(cast<RankedTensorType>(value.getType())); }

std::string nodeName(Location location) {
  std::string name;
  location->walk([&](Location l) {
    if (auto named = dyn_cast<NameLoc>(l)) {
      name = named.getName().str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return name;
}

ConstantOp constantOf(Value value) {
  auto op = value.getDefiningOp<ConstantOp>();
  return op && !op.getOverridable() ? op : ConstantOp();
}

ArrayRef<char> rawBytes(ElementsAttr value) {
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) return dense.getRawData();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob()) return blob->getData();
  return {};
}

static double toDouble(const APFloat &v) {
  APFloat wide = v;
  bool lost;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return wide.convertToDouble();
}

std::optional<double> scalarValue(Value value) {
  ConstantOp op = constantOf(value);
  if (!op) return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || !dense.isSplat()) return std::nullopt;
  if (isa<FloatType>(dense.getElementType())) return toDouble(dense.getSplatValue<APFloat>());
  APInt integer = dense.getSplatValue<APInt>();
  bool isUnsigned = dense.getElementType().isUnsignedInteger() || dense.getElementType().isInteger(1);
  return isUnsigned ? static_cast<double>(integer.getZExtValue()) : static_cast<double>(integer.getSExtValue());
}

} // namespace tare::graph
