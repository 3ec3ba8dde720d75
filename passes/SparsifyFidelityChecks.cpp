// Sparse, fused fidelity checks (spec 6). In: graph.fidelity_check ops, with what evidence says about them (`precision`, `quantized`; graph.check_evidence). Out: a check
// whose h is the FFN-up GEMM's own input stands right behind that matmul, reads main's new optional input `anchors`, and becomes part of its kernel; every
// other one is left for graph-expand-fidelity-checks. Module attributes: graph.checks (what reports say), graph.check_input (what the runtime must know).
#include "compiler/checks/QuantizedCheck.h"
#include "compiler/graph/Cost.h"
#include "passes/FidelityPlaces.h"
#include "passes/Groups.h"
#include "passes/Passes.h"
#include "passes/Rewrite.h"
#include <cmath>

namespace tare {
#define GEN_PASS_DEF_SPARSIFYFIDELITYCHECKSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;
using tare::Dim;
using tare::Dims;

namespace {
/// The constant behind casts, as it is stored.
Value stored(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>()) value = cast.getX();
  return value;
}

struct SparsifyFidelityChecksPass : tare::impl::SparsifyFidelityChecksPassBase<SparsifyFidelityChecksPass> {
  using SparsifyFidelityChecksPassBase::SparsifyFidelityChecksPassBase;

  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    SmallVector<FidelityCheckOp> checks(body->getOps<FidelityCheckOp>());
    if (checks.empty()) return;
    Builder b(&getContext());
    auto main = cast<func::FuncOp>(body->getParentOp());
    tokens = tare::checkTokens(main);
    SmallVector<std::string> reasons; // before anything moves
    for (FidelityCheckOp check : checks) reasons.push_back(tare::whyNotFusable(check, tokens));
    if (tokens.blocked.empty()) addInput(main);
    SmallVector<Attribute> entries;
    for (auto [check, why] : llvm::zip(checks, reasons)) {
      auto place = tare::placeOf(check); // once more: one that was fused before may have taken the product
      if (why.empty() && !place) why = "the product that it is added to has a check already";
      std::string code = why.empty() ? "" : "CHECK_NOT_FUSABLE";
      auto weights = tare::checks::checkWeights(check);
      std::string chosen = precision.empty() ? check.getPrecision().str() : std::string(precision);
      bool sparse = why.empty() && chosen != "dense";
      auto evidence = check->getAttrOfType<DictionaryAttr>("graph.check_evidence");
      if (why.empty() && !sparse) {
        auto said = [&](StringRef key) { auto text = evidence ? evidence.getAs<StringAttr>(key) : StringAttr(); return text ? text.str() : std::string(); };
        code = said("code"), why = said("why");
        if (why.empty()) why = "dense by --check-precision";
      }
      if (sparse && failed(checkThresholds(check, *weights))) return signalPassFailure();
      if (code == "CHECK_NOT_FUSABLE") check.emitWarning() << "[CHECK_NOT_FUSABLE] " << nameOf(check) << " stays dense: " << why;
      auto entry = [&](StringRef key, Attribute value) { return b.getNamedAttr(key, value); };
      SmallVector<NamedAttribute> fields = {entry("name", b.getStringAttr(nameOf(check))), entry("form", b.getStringAttr(sparse ? "sparse" : "dense")),
                                            entry("precision", b.getStringAttr(sparse ? chosen : "f32")), entry("code", b.getStringAttr(code)), entry("why", b.getStringAttr(why))};
      Dims p = dimsOf(check.getP());
      for (auto [key, dim] : {std::pair("heads", p[0]), std::pair("rank", p[1])})
        if (auto number = dim.constant()) fields.push_back(entry(key, b.getI64IntegerAttr(*number)));
      if (evidence) fields.push_back(entry("evidence", evidence));
      entries.push_back(b.getDictionaryAttr(fields));
      if (sparse) fuse(check, *place, *weights, chosen);
    }
    getOperation()->setAttr("graph.checks", b.getArrayAttr(entries));
    tare::eraseDeadOps(*body);
  }

  static std::string nameOf(FidelityCheckOp check) {
    auto name = check->getAttrOfType<StringAttr>("graph.check");
    return name ? name.str() : nodeName(check.getLoc());
  }

  /// A threshold that is no distance makes the head a constant: that is a broken checkpoint, not a check.
  static LogicalResult checkThresholds(FidelityCheckOp check, const tare::checks::CheckWeights &weights) {
    for (auto [k, tau] : llvm::enumerate(weights.tau)) {
      if (tau >= 0) continue;
      auto diagnostic = check.emitError() << "tau of head " << k << " of the fidelity check " << nameOf(check) << " is " << (std::isnan(tau) ? std::string("NaN") : std::to_string(tau))
                                          << ": no distance is below it";
      diagnostic.attachNote() << "correct the checkpoint, or keep the check as the source has it: --check-precision dense";
      return failure();
    }
    return success();
  }

  /// main's input `anchors` [batch, A] and graph.check_input.
  void addInput(func::FuncOp main) {
    Builder b(&getContext());
    int64_t mask = -1;
    std::string symbol = "anchors";
    Dim past = 0;
    for (BlockArgument argument : main.getArguments()) {
      auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr);
      Dims dims = dimsOf(argument);
      if (name && name == "attention_mask" && dims.size() == 2) mask = argument.getArgNumber();
      for (const Dim &d : dims)
        while (llvm::is_contained(d.symbols(), symbol)) symbol += ".count";
      for (Operation *user : argument.getUsers())
        if (auto concat = dyn_cast<ConcatOp>(user); concat && tare::groupKindOf(concat) == GroupKind::Append) past = dims[concat.getAxis()];
    }
    auto type = tensorType(b.getI32Type(), {tokens.batch, Dim::symbol(symbol)});
    unsigned index = main.getNumArguments();
    main.insertArgument(index, type, b.getDictionaryAttr({b.getNamedAttr(kNameAttr, b.getStringAttr("anchors")), b.getNamedAttr(kDefaultAttr, b.getStringAttr("empty"))}), main.getLoc());
    auto dims = [&](const Dim &d) { return DimsAttr::get(&getContext(), {d}); };
    getOperation()->setAttr("graph.check_input",
                            b.getDictionaryAttr({b.getNamedAttr("anchors", b.getI64IntegerAttr(index)), b.getNamedAttr("mask", b.getI64IntegerAttr(mask)),
                                                 b.getNamedAttr("batch", dims(tokens.batch)), b.getNamedAttr("tokens", dims(tokens.tokens)), b.getNamedAttr("past", dims(past)),
                                                 b.getNamedAttr("window", b.getI64IntegerAttr(window))}));
    anchors = main.getArgument(index);
  }

  void fuse(FidelityCheckOp check, tare::CheckPlace place, const tare::checks::CheckWeights &weights, StringRef chosen) {
    if (chosen != "f32" && check.getPrecision() != chosen) tare::checks::setQuantized(check, tare::checks::roundToNearest(weights, chosen == "int4" ? 4 : 8));
    OpBuilder b(check);
    b.setInsertionPointAfter(place.matmul);
    Location loc = check.getLoc();
    auto f32 = [&](StringRef part, const std::vector<float> &values, const Dims &dims) {
      return tare::makeConstant(b, loc, nameOf(check) + "." + part.str(), tensorType(b.getF32Type(), dims), {reinterpret_cast<const char *>(values.data()), values.size() * 4});
    };
    Dim heads(weights.heads), rank(weights.rank), columns(weights.columns);
    Value w = stored(check.getW());
    bool packable = getElementTypeOrSelf(w).isF32() || getElementTypeOrSelf(w).isF16() || getElementTypeOrSelf(w).isBF16();
    w = packable ? b.clone(*w.getDefiningOp())->getResult(0) : f32("W", weights.w, {heads, rank, Dim(weights.width)});
    Value p = f32("p", weights.p, {heads, rank}), tau = f32("tau", weights.tau, {heads}), e = f32("E", weights.e, {heads, columns}), q, scale;
    if (chosen != "f32") q = b.clone(*check.getQuantized().getDefiningOp())->getResult(0), scale = b.clone(*check.getScale().getDefiningOp())->getResult(0);
    auto fused = b.create<FidelityCheckOp>(loc, check.getType(), check.getH(), w, p, tau, e, anchors, q, scale, b.getStringAttr(chosen), b.getI64IntegerAttr(window),
                                           b.getI64IntegerAttr(q ? check.getGroup() : 0));
    fused->setDiscardableAttrs(check->getDiscardableAttrDictionary());
    auto sum = b.create<BinaryOp>(place.matmul.getLoc(), place.matmul.getType(), BinaryKind::Add, place.matmul, fused);
    sum->setDiscardableAttrs(place.matmul->getDiscardableAttrDictionary());
    place.matmul.getResult().replaceAllUsesExcept(sum.getResult(), sum);
    Value rest = place.own.getLhs() == check.getResult() ? place.own.getRhs() : place.own.getLhs();
    tare::replaceBy(place.own, rest);
    place.own->erase();
    check->erase();
  }

  Value anchors;
  tare::CheckTokens tokens;
};

} // namespace
