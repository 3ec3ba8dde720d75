// graph-expose-overridables. In: a checked module. Out: every overridable constant (an initializer that is also a graph input) is an argument of main again, at the place
// that the source gives it (`graph.input_order`), optional, with its own value as default. Must hold: element types that cannot cross the runtime's border stay constants.
#include "compiler/graph/Graph.h"
#include "compiler/graph/InputDefault.h"
#include "passes/Passes.h"
#include "passes/Rewrite.h"

using namespace mlir;

namespace tare {
#define GEN_PASS_DEF_EXPOSEOVERRIDABLESPASS
#include "passes/Passes.h.inc"

namespace {

struct ExposeOverridablesPass : impl::ExposeOverridablesPassBase<ExposeOverridablesPass> {
  using ExposeOverridablesPassBase::ExposeOverridablesPassBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal()) return;
    auto order = getOperation()->getAttrOfType<ArrayAttr>("graph.input_order");
    auto placeOf = [&](StringRef name) {
      auto found = llvm::find_if(order ? order.getValue() : ArrayRef<Attribute>(), [&](Attribute a) { return cast<StringAttr>(a).getValue() == name; });
      return order ? found - order.begin() : int64_t(main.getNumArguments());
    };
    SmallVector<graph::ConstantOp> exposed;
    for (auto constant : main.getBody().front().getOps<graph::ConstantOp>())
      if (constant.getOverridable() && !constant.getName().empty() && constant.getResult().getType().getElementTypeBitWidth() != 4) exposed.push_back(constant);
    llvm::stable_sort(exposed, [&](graph::ConstantOp a, graph::ConstantOp b) { return placeOf(a.getName()) < placeOf(b.getName()); });
    Builder b(&getContext());
    for (graph::ConstantOp constant : exposed) {
      auto name = constant.getNameAttr();
      auto at = static_cast<unsigned>(std::min<int64_t>(placeOf(name), main.getNumArguments()));
      auto attributes = b.getDictionaryAttr({b.getNamedAttr(graph::kNameAttr, name), b.getNamedAttr(graph::kDefaultAttr, b.getStringAttr("weight")),
                                             b.getNamedAttr(graph::kDefaultValueAttr, constant.getValue())});
      main.insertArgument(at, constant.getResult().getType(), attributes, constant.getLoc());
      constant.getResult().replaceAllUsesWith(main.getArgument(at));
      constant.erase();
    }
  }
};

} // namespace
} // namespace tare
