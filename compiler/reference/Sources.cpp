// Forward functions of the source ops: constants, symbolic dims as data, ranges, fills.
#include "compiler/graph/Failure.h"
#include "compiler/reference/Ops.h"

namespace tare::reference {

llvm::Expected<Shape> evaluateDims(llvm::ArrayRef<Dim> dims, const Symbols &symbols) {
  Shape shape;
  for (const Dim &d : dims) {
    auto value = d.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
      auto at = symbols.find(name);
      return at == symbols.end() ? std::nullopt : std::optional<int64_t>(at->second);
    });
    if (!value) return refuse("the dimension " + d.str() + " has no value for these input shapes");
    shape.push_back(*value);
  }
  return shape;
}

Tensor Call::result() const {
  return Tensor::zeros(llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType()).getElementType(), shape);
}

llvm::Expected<Tensor> constant(const Call &call) { return decode(llvm::cast<graph::ConstantOp>(call.op).getValue()); }

llvm::Expected<Tensor> dimsConstant(const Call &call) {
  auto values = evaluateDims(llvm::cast<graph::DimsConstantOp>(call.op).getContent().dims(), call.symbols);
  if (!values) return values.takeError();
  Tensor r = call.result();
  for (size_t i = 0; i < values->size(); ++i)
    if (r.isFloat())
      r.floats[i] = static_cast<double>((*values)[i]);
    else
      r.ints[i] = wrapTo(llvm::cast<mlir::IntegerType>(r.element), (*values)[i]);
  return r;
}

llvm::Expected<Tensor> range(const Call &call) {
  auto values = evaluateDims(llvm::cast<graph::RangeOp>(call.op).getStartDelta().dims(), call.symbols);
  if (!values) return values.takeError();
  Tensor r = call.result();
  int64_t at = (*values)[0];
  for (int64_t i = 0, n = r.elementCount(); i < n; ++i, at += (*values)[1])
    if (r.isFloat())
      r.floats[i] = static_cast<double>(at);
    else
      r.ints[i] = wrapTo(llvm::cast<mlir::IntegerType>(r.element), at);
  return r;
}

llvm::Expected<Tensor> fill(const Call &call) {
  auto value = llvm::cast<graph::FillOp>(call.op).getValue();
  Tensor r = call.result();
  if (auto elements = llvm::dyn_cast<mlir::ElementsAttr>(value); elements && elements.getNumElements() == 1) {
    Tensor one = decode(elements);
    if (one.isFloat() && r.isFloat()) return r.floats.assign(r.floats.size(), one.floats[0]), r;
    if (!one.isFloat() && !r.isFloat()) return r.ints.assign(r.ints.size(), one.ints[0]), r;
  }
  if (auto real = llvm::dyn_cast<mlir::FloatAttr>(value); real && r.isFloat())
    r.floats.assign(r.floats.size(), real.getValueAsDouble());
  else if (auto integer = llvm::dyn_cast<mlir::IntegerAttr>(value); integer && !r.isFloat())
    r.ints.assign(r.ints.size(), wrapTo(llvm::cast<mlir::IntegerType>(r.element), integer.getValue().getLimitedValue()));
  else
    return refuse("graph.fill has a value of another kind than its result");
  return r;
}

} // namespace tare::reference
