// What ids may be: the rows of the tables that integer inputs index. In: a module of graph ops. Out: input name to exclusive bound. Holds: follows only ops that
// keep the values (cast, reshape, expand, slice, transpose, layer and identity borders); an input that indexes nothing is not listed.
#include "compiler/graph/Graph.h"
#include "compiler/report/Estimates.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tare::report {

static std::optional<int64_t> boundOf(Value input) {
  std::optional<int64_t> bound;
  llvm::SetVector<Value> work;
  work.insert(input);
  for (size_t i = 0; i < work.size(); i++)
    for (OpOperand &use : work[i].getUses()) {
      Operation *op = use.getOwner();
      if (auto gather = llvm::dyn_cast<graph::GatherOp>(op); gather && use.getOperandNumber() == 1) {
        Dims dims = graph::dimsOf(gather.getX());
        int64_t axis = gather.getAxis() < 0 ? gather.getAxis() + static_cast<int64_t>(dims.size()) : gather.getAxis();
        auto rows = axis >= 0 && axis < static_cast<int64_t>(dims.size()) ? dims[static_cast<size_t>(axis)].constant() : std::nullopt;
        if (rows) bound = bound ? std::min(*bound, *rows) : *rows;
      } else if (auto layer = llvm::dyn_cast<graph::LayerOp>(op)) {
        work.insert(layer.getBody().front().getArgument(0));
      } else if (llvm::isa<graph::CastOp, graph::ReshapeOp, graph::ExpandOp, graph::SliceOp, graph::TransposeOp>(op) && use.getOperandNumber() == 0) {
        work.insert(op->getResult(0));
      }
    }
  return bound;
}

std::map<std::string, int64_t> idBounds(ModuleOp module) {
  std::map<std::string, int64_t> bounds;
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal()) return bounds;
  for (BlockArgument argument : main.getArguments()) {
    auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
    auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), graph::kNameAttr);
    if (!type || !type.getElementType().isInteger() || !name) continue;
    if (auto bound = boundOf(argument)) bounds[name.str()] = *bound;
  }
  return bounds;
}

} // namespace tare::report
