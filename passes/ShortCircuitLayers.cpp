// graph-short-circuit-layers. In: layers with verdict and evidence. Out: pruned layers are gone, the consumers of their output read their input; removals
// are listed in `graph.removed`. Erases only what the independent checker (compiler/checks/Recheck.h) comes to the same verdict about, and refuses to
// take out most of a model unless that is asked for.
#include "compiler/checks/Parameters.h"
#include "compiler/checks/Recheck.h"
#include "compiler/checks/Rules.h"
#include "compiler/graph/Failure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace tare {
#define GEN_PASS_DEF_SHORTCIRCUITLAYERSPASS
#include "passes/Passes.h.inc"

namespace {

struct ShortCircuitLayersPass : impl::ShortCircuitLayersPassBase<ShortCircuitLayersPass> {
  using ShortCircuitLayersPassBase::ShortCircuitLayersPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    auto named = checks::policyOf(policy);
    if (!main || !named) return signalPassFailure();
    CompileOptions options;
    options.policy = *named, options.weightThreshold = weightThreshold, options.forwardThreshold = forwardThreshold, options.strictNans = strictNans;

    SmallVector<graph::LayerOp> doomed; // inner layers of a removed one go with it
    SmallVector<graph::LayerOp> candidates;
    main.walk<WalkOrder::PreOrder>([&](graph::LayerOp layer) {
      if (layer.getRole() == "fidelity_check") return WalkResult::advance();
      candidates.push_back(layer);
      if (!layer.getVerdict() || layer.getVerdict()->getVerdict() != "pruned") return WalkResult::advance();
      doomed.push_back(layer);
      return WalkResult::skip();
    });
    for (graph::LayerOp layer : doomed)
      if (llvm::Error error = checks::recheck(layer, options)) {
        auto diagnostic = emitError(layer.getLoc()) << "internal error: the independent checker does not agree that " << layer.getName() << " may be removed: "
                                                    << llvm::toString(std::move(error));
        diagnostic.attachNote() << "this is a defect of Tare, not of the model; --keep '" << layer.getName() << "' compiles it as it is";
        return signalPassFailure();
      }
    if (failed(guard(main, doomed, candidates))) return signalPassFailure();

    Builder b(&getContext());
    SmallVector<Attribute> removed;
    for (graph::LayerOp layer : doomed) {
      SmallVector<NamedAttribute> entry{b.getNamedAttr("name", layer.getNameAttr())};
      for (StringRef key : {"input_name", "output_name"})
        if (auto name = layer->getAttrOfType<StringAttr>(key)) entry.push_back(b.getNamedAttr(key, name));
      removed.push_back(b.getDictionaryAttr(entry));
      layer.getResult().replaceAllUsesWith(layer.getInput());
      layer->erase();
    }
    if (!removed.empty()) module->setAttr("graph.removed", b.getArrayAttr(removed));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(main.getBody().front())))
      if (op.use_empty() && isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>()) op.erase();
  }

  /// Elements of floating-point constants that only `inside` reads count as its own.
  static int64_t parametersOf(func::FuncOp main, ArrayRef<graph::LayerOp> inside, int64_t &total) {
    int64_t gone = 0;
    total = 0;
    main.walk([&](graph::ConstantOp op) {
      auto type = op.getResult().getType();
      if (!isa<FloatType>(type.getElementType()) && type.getNumElements() < 64) return;
      total += type.getNumElements();
      if (onlyReadInside(op, inside)) gone += type.getNumElements();
    });
    return gone;
  }

  static bool onlyReadInside(Operation *op, ArrayRef<graph::LayerOp> inside) {
    SmallVector<Operation *> work{op};
    while (!work.empty()) {
      Operation *at = work.pop_back_val();
      if (llvm::any_of(inside, [&](graph::LayerOp layer) { return layer->isProperAncestor(at); })) continue;
      if (at->getNumResults() == 0 || !checks::isConstantOnly(at->getResult(0)) || (at != op && at->use_empty())) return false;
      work.append(at->user_begin(), at->user_end());
    }
    return true;
  }

  LogicalResult guard(func::FuncOp main, ArrayRef<graph::LayerOp> doomed, ArrayRef<graph::LayerOp> candidates) {
    if (allowLargeRemoval || doomed.empty()) return success();
    int64_t total, gone = parametersOf(main, doomed, total);
    size_t blocks = llvm::count_if(candidates, [](graph::LayerOp l) { return l.getRole() == "block"; });
    size_t goneBlocks = llvm::count_if(doomed, [](graph::LayerOp l) { return l.getRole() == "block"; });
    bool large = total > 0 && gone * 2 > total, all = blocks > 0 && goneBlocks == blocks;
    if (!large && !all) return success();
    auto diagnostic = main.emitError() << (large ? "the removals would take " + std::to_string(gone) + " of " + std::to_string(total) + " parameters"
                                                 : "the removals would take every block (" + std::to_string(blocks) + ")");
    diagnostic.attachNote() << "look at the report; --allow-large-removal compiles it all the same";
    return failure();
  }
};

} // namespace
} // namespace tare
