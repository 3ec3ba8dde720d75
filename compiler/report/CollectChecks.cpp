// The fidelity checks of a report (spec 6). In: `graph.checks`, made by graph-sparsify-fidelity-checks, with the evidence of graph-measure-fidelity-checks
// inside. Out: one entry per check, in the order of the graph. Holds: only reads; a check that was found in the source and left no evidence keeps its entry and its why.
#include "compiler/report/Collect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace tare::report {

static std::string text(DictionaryAttr d, llvm::StringRef key) {
  auto value = d.getAs<StringAttr>(key);
  return value ? value.str() : "";
}

static int64_t integer(DictionaryAttr d, llvm::StringRef key) {
  auto value = d.getAs<IntegerAttr>(key);
  return value ? value.getInt() : 0;
}

static std::vector<double> reals(DictionaryAttr d, llvm::StringRef key) {
  auto values = d.getAs<DenseF64ArrayAttr>(key);
  return values ? std::vector<double>(values.asArrayRef()) : std::vector<double>();
}

static Check checkOf(DictionaryAttr d) {
  Check c;
  c.name = text(d, "name"), c.form = text(d, "form"), c.precision = text(d, "precision"), c.code = text(d, "code"), c.why = text(d, "why");
  if (d.get("heads")) c.heads = integer(d, "heads");
  if (d.get("rank")) c.rank = integer(d, "rank");
  auto evidence = d.getAs<DictionaryAttr>("evidence");
  if (!c.code.empty()) c.line = "[SPARSIFY_REJECTED: " + c.code + "] " + c.name + ": " + c.why;
  if (!evidence) return c;
  // The line of the measurement says what to do, too; a check that is dense for another reason has its own.
  if (text(evidence, "code") == c.code && !c.code.empty()) c.line = text(evidence, "line");
  if (c.why.empty()) c.why = text(evidence, "why");
  c.evaluated = integer(evidence, "evaluated"), c.tokens = integer(evidence, "tokens");
  if (auto tried = evidence.getAs<ArrayAttr>("tried"))
    for (auto form : tried.getAsRange<DictionaryAttr>()) {
      auto fidelity = form.getAs<FloatAttr>("fidelity");
      c.tried.push_back({text(form, "precision"), fidelity ? fidelity.getValueAsDouble() : 0, reals(form, "window"), reals(form, "overall")});
    }
  if (!c.tried.empty()) {
    const CheckForm &last = c.tried.back();
    c.fidelity = last.fidelity, c.windowAgreement = last.window, c.overallAgreement = last.overall, c.anchors = text(evidence, "anchors");
  }
  return c;
}

void addChecks(Report &report, ModuleOp module) {
  auto entries = module->getAttrOfType<ArrayAttr>("graph.checks");
  if (!entries) return;
  for (auto d : entries.getAsRange<DictionaryAttr>()) {
    Check check = checkOf(d);
    auto known = llvm::find_if(report.checks, [&](const Check &c) { return c.name == check.name; });
    if (known != report.checks.end()) *known = std::move(check);
    else report.checks.push_back(std::move(check));
  }
}

} // namespace tare::report
