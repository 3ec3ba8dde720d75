// graph-check-layers. In: graph.layer regions without verdict. Out: verdict and `graph.evidence` on every candidate,
// `graph.calibration` and, when all is measured, `graph.heatmap` on the module. Fidelity checks are no candidates. No
// op is changed: measuring and acting are different passes.
#include "compiler/checks/Heatmap.h"
#include "compiler/checks/Parameters.h"
#include "compiler/checks/Rules.h"
#include "compiler/checks/Verdict.h"
#include "compiler/graph/Cost.h"
#include "compiler/graph/Failure.h"
#include "passes/CheckLayers.h"
#include <cmath>

using namespace mlir;

namespace tare {
#define GEN_PASS_DEF_CHECKLAYERSPASS
#include "passes/Passes.h.inc"

namespace {

struct CheckLayersPass : impl::CheckLayersPassBase<CheckLayersPass> {
  using CheckLayersPassBase::CheckLayersPassBase;
  std::function<void(const std::string &)> working;

  std::optional<CompileOptions> options() {
    CompileOptions o;
    auto named = checks::policyOf(policy);
    if (!named || !(weightThreshold >= 0) || !(forwardThreshold >= 0) || !std::isfinite(weightThreshold) ||
        !std::isfinite(forwardThreshold))
      return std::nullopt;
    o.policy = *named, o.weightThreshold = weightThreshold, o.forwardThreshold = forwardThreshold,
    o.strictNans = strictNans;
    o.calibration = calibration, o.seed = seed, o.loss = loss, o.cotangents = cotangents, o.samples = samples,
    o.sequence = sequence, o.past = past;
    o.keep.assign(keep.begin(), keep.end()), o.only.assign(only.begin(), only.end());
    o.measureAll = measureAll, o.threads = threads;
    return o;
  }

  void fail(Location at, llvm::Error error) {
    llvm::handleAllErrors(
        std::move(error),
        [&](const Failure &f) {
          auto diagnostic = emitError(at) << f.message;
          if (!f.hint.empty()) diagnostic.attachNote() << f.hint;
        },
        [&](const llvm::ErrorInfoBase &other) { emitError(at) << other.message(); });
    signalPassFailure();
  }

  /// Bytes of the layer's parameters as the source stores them.
  static int64_t storedBytes(graph::LayerOp layer) {
    int64_t bytes = 0;
    for (checks::Parameter p : checks::parametersOf(layer))
      bytes += bytesOf(p.constant.getResult().getType()).constant().value_or(0);
    return bytes;
  }

  void setHeatmap(func::FuncOp main, ArrayRef<checks::HeatBlock> blocks, ArrayRef<std::vector<checks::HeatRow>> samples,
                  const reference::Symbols &symbols) {
    Builder b(&getContext());
    std::vector<checks::HeatRow> rows(blocks.size());
    for (auto &sample : samples) checks::joinRows(rows, sample);
    std::vector<double> shares = checks::flopShares(main, blocks, symbols);
    SmallVector<Attribute> entries;
    for (auto [block, row, share] : llvm::zip(blocks, rows, shares)) {
      NamedAttrList entry;
      entry.set("layer", b.getStringAttr(block.name));
      if (row.contribution) entry.set("contribution", b.getF64FloatAttr(*row.contribution));
      if (row.gradientNorm) entry.set("gradient_norm", b.getF64FloatAttr(*row.gradientNorm));
      if (!row.contribution || !row.gradientNorm)
        entry.set("why", b.getStringAttr("a norm is not finite or nothing flows back to it"));
      entry.set("flops_share", b.getF64FloatAttr(share));
      entries.push_back(entry.getDictionary(&getContext()));
    }
    getOperation()->setAttr("graph.heatmap", b.getArrayAttr(entries));
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    auto o = options();
    if (!o) {
      module.emitError() << "unknown policy '" << policy << "' or a threshold that is no finite number";
      return signalPassFailure();
    }
    if (!main) return;
    SmallVector<graph::LayerOp> layers;
    main.walk<WalkOrder::PreOrder>([&](graph::LayerOp layer) {
      if (layer.getRole() != "fidelity_check") layers.push_back(layer);
    });
    auto calibrated = checks::loadCalibration(main, *o);
    if (!calibrated) return fail(main.getLoc(), calibrated.takeError());
    std::vector<checks::HeatBlock> blocks;
    if (o->measureAll) blocks = checks::findBlocks(main);
    std::vector<std::vector<checks::HeatRow>> heat(calibrated->samples.size());
    reference::Symbols symbols;
    auto measureHeat = [&](unsigned sample, const checks::SampleRun &run) {
      heat[sample] = checks::measureBlocks(main, blocks, run, o->seed, sample);
      if (sample == 0) symbols = run.symbols;
    };
    llvm::function_ref<void(unsigned, const checks::SampleRun &)> onRun;
    if (!blocks.empty()) onRun = measureHeat;
    SmallVector<Value> streams;
    for (checks::HeatBlock &block : blocks) streams.push_back(block.in), streams.push_back(block.out);
    auto evidence = checks::measureLayers(main, layers, *calibrated, *o, onRun, streams, working);
    if (!evidence) return fail(main.getLoc(), evidence.takeError());

    auto *context = &getContext();
    Builder b(context);
    for (auto [layer, e] : llvm::zip(layers, *evidence)) {
      if (e.proved && ((e.forward && *e.forward != 0) || (e.branch && *e.branch != 0))) {
        emitError(layer.getLoc()) << "internal error: " << layer.getName()
                                  << " is proved to be the identity, but its measured norms are not 0";
        return signalPassFailure();
      }
      checks::Verdict verdict = checks::decide(e, layer.getName(), *o, e.needsFinite);
      e.line = verdict.line;
      layer.setVerdictAttr(
          graph::VerdictAttr::get(context, verdict.pruned ? "pruned" : "rejected", verdict.basis, verdict.code));
      NamedAttrList attributes(checks::toAttribute(context, e));
      attributes.set("flops", graph::DimsAttr::get(context, {flopsOf(layer)}));
      attributes.set("memory_bytes", b.getI64IntegerAttr(storedBytes(layer)));
      layer->setAttr("graph.evidence", attributes.getDictionary(context));
    }
    if (!blocks.empty()) setHeatmap(main, blocks, heat, symbols);
    module->setAttr("graph.calibration",
                    b.getDictionaryAttr({b.getNamedAttr("source", b.getStringAttr(calibrated->source)),
                                         b.getNamedAttr("sha256", b.getStringAttr(calibrated->sha256)),
                                         b.getNamedAttr("samples", b.getI64IntegerAttr(calibrated->samples.size())),
                                         b.getNamedAttr("seed", b.getI64IntegerAttr(calibrated->seed))}));
  }
};

} // namespace

std::unique_ptr<Pass> createCheckLayersPass(CheckLayersPassOptions options,
                                            std::function<void(const std::string &)> working) {
  auto pass = std::make_unique<CheckLayersPass>(std::move(options));
  pass->working = std::move(working);
  return pass;
}

} // namespace tare
