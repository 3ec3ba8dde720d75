// graph-measure-fidelity-checks. In: clean ops with graph.fidelity_check. Out: `precision` on every check, `quantized` and `scale` where it is int4 or int8, and
// the evidence as `graph.check_evidence`. No other op is changed: graph-sparsify-fidelity-checks acts on what stands here.
#include "compiler/checks/CheckLadder.h"
#include "compiler/checks/QuantizedCheck.h"
#include "compiler/graph/Failure.h"
#include "passes/FidelityPlaces.h"
#include "passes/Passes.h"
#include <cmath>

using namespace mlir;

namespace tare {
#define GEN_PASS_DEF_MEASUREFIDELITYCHECKSPASS
#include "passes/Passes.h.inc"

namespace {

DictionaryAttr evidenceOf(Builder &b, const checks::CheckDecision &d, const checks::CheckLadder &ladder) {
  NamedAttrList entry;
  auto integer = [&](StringRef key, int64_t value) { entry.set(key, b.getI64IntegerAttr(value)); };
  auto text = [&](StringRef key, StringRef value) { entry.set(key, b.getStringAttr(value)); };
  text("precision", d.precision), text("code", d.code), text("line", d.line), text("why", d.why), text("anchors", ladder.anchors);
  integer("evaluated", d.evaluated), integer("tokens", d.tokens);
  SmallVector<Attribute> tried;
  for (const checks::FormAgreement &form : d.forms) {
    NamedAttrList one;
    one.set("precision", b.getStringAttr(form.precision));
    one.set("fidelity", b.getF64FloatAttr(form.fidelity()));
    one.set("window", b.getDenseF64ArrayAttr(form.window));
    one.set("overall", b.getDenseF64ArrayAttr(form.overall));
    tried.push_back(one.getDictionary(b.getContext()));
  }
  entry.set("tried", b.getArrayAttr(tried));
  entry.set("output_difference", b.getF64FloatAttr(ladder.outputDifference));
  entry.set("output_magnitude", b.getF64FloatAttr(ladder.outputMagnitude));
  return entry.getDictionary(b.getContext());
}

struct MeasureFidelityChecksPass : impl::MeasureFidelityChecksPassBase<MeasureFidelityChecksPass> {
  using MeasureFidelityChecksPassBase::MeasureFidelityChecksPassBase;

  void fail(Location at, llvm::Error error) {
    llvm::handleAllErrors(
        std::move(error),
        [&](const Failure &f) {
          auto diagnostic = emitError(f.node.empty() ? at : NameLoc::get(StringAttr::get(&getContext(), f.node))) << f.message;
          if (!f.hint.empty()) diagnostic.attachNote() << f.hint;
        },
        [&](const llvm::ErrorInfoBase &other) { emitError(at) << other.message(); });
    signalPassFailure();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    if (!main) return;
    if (!(fidelity >= 0 && fidelity <= 100) || !llvm::is_contained({"", "int4", "int8", "f32", "dense"}, std::string(precision))) {
      module.emitError() << "unknown precision '" << precision << "' or a fidelity outside of 0 to 100";
      return signalPassFailure();
    }
    bool any = false;
    main.walk([&](graph::FidelityCheckOp) { any = true; });
    if (!any) return;
    CompileOptions o;
    o.calibration = calibration, o.seed = seed, o.samples = samples, o.sequence = sequence, o.past = past, o.threads = threads;
    o.checkPrecision = precision, o.checkWindow = static_cast<int>(window), o.checkFidelity = fidelity;
    auto inputs = checks::loadCalibration(main, o);
    if (!inputs) return fail(main.getLoc(), inputs.takeError());
    CheckTokens tokens = checkTokens(main);
    auto ladder = checks::climbLadder(main, *inputs, o, [&](graph::FidelityCheckOp check) { return whyNotFusable(check, tokens); });
    if (!ladder) return fail(main.getLoc(), ladder.takeError());
    Builder b(&getContext());
    for (checks::CheckDecision &d : ladder->checks) {
      if (d.precision == "int4" || d.precision == "int8") checks::setQuantized(d.check, d.quantized);
      else d.check.setPrecision(d.precision);
      d.check->setAttr("graph.check_evidence", evidenceOf(b, d, *ladder));
    }
  }
};

} // namespace
} // namespace tare
