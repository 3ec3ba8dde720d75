// The part of a certificate about fidelity checks (spec 6). In: a module after `clean`, whose `graph.checks` says what each check became. Out: JSON: form,
// precision, code, and every agreement that was measured, with the threshold, the window and where the anchors came from.
#include "compiler/checks/Certificate.h"
#include "compiler/checks/CheckLadder.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using nlohmann::json;

namespace tare::checks {

static json textOf(DictionaryAttr d, llvm::StringRef key) {
  auto value = d ? d.getAs<StringAttr>(key) : StringAttr();
  return value ? json(value.str()) : json("");
}

static json realsOf(DictionaryAttr d, llvm::StringRef key) {
  auto values = d.getAs<DenseF64ArrayAttr>(key);
  return values ? json(std::vector<double>(values.asArrayRef())) : json::array();
}

json certifyChecks(ModuleOp module, const CompileOptions &options) {
  json c = {{"fidelity_threshold", options.checkFidelity}, {"window", options.checkWindow}, {"forced", options.checkPrecision}, {"checks", json::array()}};
  auto entries = module->getAttrOfType<ArrayAttr>("graph.checks");
  if (!entries) return c;
  for (auto d : entries.getAsRange<DictionaryAttr>()) {
    json check = {{"name", textOf(d, "name")}, {"form", textOf(d, "form")}, {"precision", textOf(d, "precision")}, {"code", textOf(d, "code")}, {"tried", json::array()}};
    if (auto evidence = d.getAs<DictionaryAttr>("evidence")) {
      check["anchors"] = textOf(evidence, "anchors");
      for (const char *key : {"evaluated", "tokens"})
        if (auto number = evidence.getAs<IntegerAttr>(key)) check[key] = number.getInt();
      for (const char *key : {"output_difference", "output_magnitude"})
        if (auto number = evidence.getAs<FloatAttr>(key)) check[key] = number.getValueAsDouble();
      if (auto tried = evidence.getAs<ArrayAttr>("tried"))
        for (auto form : tried.getAsRange<DictionaryAttr>())
          check["tried"].push_back({{"precision", textOf(form, "precision")}, {"window_agreement", realsOf(form, "window")}, {"overall_agreement", realsOf(form, "overall")}});
    }
    c["checks"].push_back(check);
  }
  return c;
}

} // namespace tare::checks
