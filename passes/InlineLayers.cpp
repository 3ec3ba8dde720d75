// graph-inline-layers. In: a module after graph-short-circuit-layers. Out: the same without graph.layer: every layer
// that is still there was kept (or is a fidelity check), so its body takes its place. Values and names stay as they
// are.
#include "compiler/graph/Graph.h"
#include "compiler/graph/ModulePath.h"
#include "passes/Passes.h"

using namespace mlir;

namespace tare {
#define GEN_PASS_DEF_INLINELAYERSPASS
#include "passes/Passes.h.inc"

namespace {

struct InlineLayersPass : impl::InlineLayersPassBase<InlineLayersPass> {
  using InlineLayersPassBase::InlineLayersPassBase;

  void runOnOperation() override {
    SmallVector<graph::LayerOp> layers; // inner ones first
    getOperation().walk([&](graph::LayerOp layer) { layers.push_back(layer); });
    for (graph::LayerOp layer : layers) {
      Block &body = layer.getBody().front();
      for (Operation &op : body.without_terminator()) // names from metadata or rules would be lost with the region
        if (graph::modulePath(&op) == graph::modulePath(layer)) op.setAttr(graph::kScopeAttr, layer.getNameAttr());
      if (layer.getRole() == "fidelity_check") // its name outlives the region: reports and graph-recognise-fidelity-checks read it
        for (Operation &op : body)
          if (isa<graph::FidelityCheckOp, graph::MatmulOp>(op) && !op.hasAttr("graph.check")) op.setAttr("graph.check", layer.getNameAttr());
      body.getArgument(0).replaceAllUsesWith(layer.getInput());
      Operation *yield = body.getTerminator();
      layer.getResult().replaceAllUsesWith(yield->getOperand(0));
      yield->erase();
      layer->getBlock()->getOperations().splice(layer->getIterator(), body.getOperations());
      layer->erase();
    }
  }
};

} // namespace
} // namespace tare
