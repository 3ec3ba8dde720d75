// Sparse, fused fidelity checks (spec 6). In: graph.fidelity_check ops, with what evidence says about them (`precision`, `quantized`; graph.check_evidence). Out: a check
// whose h is the FFN-up GEMM's own input stands right behind that matmul, reads main's new optional input `anchors`, and becomes part of its kernel; every
// other one is left for graph-expand-fidelity-checks. Module attributes: graph.checks (what reports say), graph.check_input (what the runtime must know).
#include "compiler/checks/QuantizedCheck.h"
#include "compiler/graph/Cost.h"
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
/// Bits of one token lie in one word (kernels/cpu/kernels.h).
constexpr int64_t kMostHeads = 32;

/// matmul(h, ..) among the terms of a sum.
MatmulOp termOf(Value value, Value h, const Dims &dims, int depth = 0) {
  if (!value.hasOneUse() || dimsOf(value) != dims || depth > 8) return {};
  if (auto matmul = value.getDefiningOp<MatmulOp>()) return matmul.getLhs() == h && tare::groupKindOf(matmul) == GroupKind::Gemm ? matmul : MatmulOp();
  auto sum = tare::binaryOf(value, BinaryKind::Add);
  if (!sum) return {};
  MatmulOp left = termOf(sum->first, h, dims, depth + 1);
  return left ? left : termOf(sum->second, h, dims, depth + 1);
}

/// The sum that the check is a term of, and the FFN-up matmul among its other terms.
struct Place { BinaryOp own; MatmulOp matmul; };
std::optional<Place> placeOf(FidelityCheckOp check) {
  Dims dims = dimsOf(check.getResult());
  Value value = check.getResult();
  BinaryOp own;
  for (int i = 0; i < 8 && value.hasOneUse(); ++i) {
    auto sum = dyn_cast<BinaryOp>(*value.user_begin());
    if (!sum || sum.getKind() != BinaryKind::Add || dimsOf(sum.getResult()) != dims) return std::nullopt;
    if (!own) own = sum;
    if (MatmulOp matmul = termOf(sum.getLhs() == value ? sum.getRhs() : sum.getLhs(), check.getH(), dims)) return Place{own, matmul};
    value = sum.getResult();
  }
  return std::nullopt;
}

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
    std::string blocked = addInput(main, checks);
    SmallVector<Attribute> entries;
    for (FidelityCheckOp check : checks) {
      std::string why = blocked.empty() ? whyNotFusable(check) : blocked, code = why.empty() ? "" : "CHECK_NOT_FUSABLE";
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
      if (sparse) fuse(check, *placeOf(check), *weights, chosen);
    }
    getOperation()->setAttr("graph.checks", b.getArrayAttr(entries));
    tare::eraseDeadOps(*body);
  }

  static std::string nameOf(FidelityCheckOp check) {
    auto name = check->getAttrOfType<StringAttr>("graph.check");
    return name ? name.str() : nodeName(check.getLoc());
  }

  std::string whyNotFusable(FidelityCheckOp check) const {
    Dims h = dimsOf(check.getH());
    if (!tare::checks::checkWeights(check)) return "its weights are not constants of the file";
    if (h.size() != 3) return "its input is not [batch, tokens, width]";
    if (h[0] != batch || h[1] != tokens) return "its tokens are not those of the first check";
    if (dimsOf(check.getW())[0].constant().value_or(0) > kMostHeads) return "it has more than 32 heads";
    if (!placeOf(check)) return "its input is not the input of the product that it is added to";
    return "";
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

  /// main's input `anchors` [batch, A] and graph.check_input; says why there can be none.
  std::string addInput(func::FuncOp main, ArrayRef<FidelityCheckOp> checks) {
    auto first = llvm::find_if(checks, [](FidelityCheckOp c) { return dimsOf(c.getH()).size() == 3; });
    if (first == checks.end()) return "its input is not [batch, tokens, width]";
    FidelityCheckOp model = *first;
    Builder b(&getContext());
    Dims h = dimsOf(model.getH());
    int64_t mask = -1;
    std::string symbol = "anchors";
    Dim past = 0;
    for (BlockArgument argument : main.getArguments()) {
      auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr);
      Dims dims = dimsOf(argument);
      if (name && name == "anchors") return "the model has an input 'anchors' of its own";
      if (name && name == "attention_mask" && dims.size() == 2) mask = argument.getArgNumber();
      for (const Dim &d : dims)
        while (llvm::is_contained(d.symbols(), symbol)) symbol += ".count";
      for (Operation *user : argument.getUsers())
        if (auto concat = dyn_cast<ConcatOp>(user); concat && tare::groupKindOf(concat) == GroupKind::Append) past = dims[concat.getAxis()];
    }
    auto type = tensorType(b.getI32Type(), {h[0], Dim::symbol(symbol)});
    unsigned index = main.getNumArguments();
    main.insertArgument(index, type, b.getDictionaryAttr({b.getNamedAttr(kNameAttr, b.getStringAttr("anchors")), b.getNamedAttr(kDefaultAttr, b.getStringAttr("empty"))}), main.getLoc());
    auto dims = [&](const Dim &d) { return DimsAttr::get(&getContext(), {d}); };
    getOperation()->setAttr("graph.check_input",
                            b.getDictionaryAttr({b.getNamedAttr("anchors", b.getI64IntegerAttr(index)), b.getNamedAttr("mask", b.getI64IntegerAttr(mask)),
                                                 b.getNamedAttr("batch", dims(h[0])), b.getNamedAttr("tokens", dims(h[1])), b.getNamedAttr("past", dims(past)),
                                                 b.getNamedAttr("window", b.getI64IntegerAttr(window))}));
    anchors = main.getArgument(index);
    batch = h[0], tokens = h[1];
    return "";
  }

  void fuse(FidelityCheckOp check, Place place, const tare::checks::CheckWeights &weights, StringRef chosen) {
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
  Dim batch, tokens;
};

} // namespace
