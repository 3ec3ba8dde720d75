// Evidence to attributes and back; totals over tensors.
#include "compiler/checks/Evidence.h"
#include "mlir/IR/Builders.h"
#include <algorithm>

using namespace mlir;

namespace tare::checks {

static int64_t total(const std::vector<TensorEvidence> &tensors, int64_t TensorEvidence::*field) {
  int64_t sum = 0;
  for (const TensorEvidence &t : tensors) sum += t.*field;
  return sum;
}
int64_t Evidence::elements() const { return total(tensors, &TensorEvidence::elements); }
int64_t Evidence::nonzero() const { return total(tensors, &TensorEvidence::nonzero); }
int64_t Evidence::aboveThreshold() const { return total(tensors, &TensorEvidence::aboveThreshold); }
int64_t Evidence::nonFinite() const { return total(tensors, &TensorEvidence::nonFinite); }

const TensorEvidence *Evidence::largest() const {
  const TensorEvidence *best = nullptr;
  for (const TensorEvidence &t : tensors)
    if (!best || t.maxAbs > best->maxAbs) best = &t;
  return best;
}
double Evidence::maxAbs() const { return largest() ? largest()->maxAbs : 0; }

DictionaryAttr toAttribute(MLIRContext *context, const Evidence &e) {
  Builder b(context);
  SmallVector<NamedAttribute> entries;
  auto put = [&](StringRef name, Attribute value) { entries.push_back(b.getNamedAttr(name, value)); };
  SmallVector<Attribute> tensors;
  for (const TensorEvidence &t : e.tensors)
    tensors.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(t.name)), b.getNamedAttr("storage", b.getStringAttr(t.storage)),
         b.getNamedAttr("elements", b.getI64IntegerAttr(t.elements)), b.getNamedAttr("nonzero", b.getI64IntegerAttr(t.nonzero)),
         b.getNamedAttr("above_threshold", b.getI64IntegerAttr(t.aboveThreshold)), b.getNamedAttr("non_finite", b.getI64IntegerAttr(t.nonFinite)),
         b.getNamedAttr("max_abs", b.getF64FloatAttr(t.maxAbs)), b.getNamedAttr("largest_value", b.getF64FloatAttr(t.largestValue)),
         b.getNamedAttr("largest_index", b.getI64ArrayAttr(t.largestIndex)), b.getNamedAttr("sha256", b.getStringAttr(t.sha256))}));
  put("elements", b.getI64IntegerAttr(e.elements()));
  put("nonzero", b.getI64IntegerAttr(e.nonzero()));
  put("above_threshold", b.getI64IntegerAttr(e.aboveThreshold()));
  put("non_finite", b.getI64IntegerAttr(e.nonFinite()));
  put("max_abs", b.getF64FloatAttr(e.maxAbs()));
  if (const TensorEvidence *t = e.largest()) {
    put("largest_tensor", b.getStringAttr(t->name));
    put("largest_index", b.getI64ArrayAttr(t->largestIndex));
    put("largest_value", b.getF64FloatAttr(t->largestValue));
  }
  put("tensors", b.getArrayAttr(tensors));
  if (e.forward) put("forward_l2", b.getF64FloatAttr(*e.forward));
  if (!e.forwardWhy.empty()) put("forward_why", b.getStringAttr(e.forwardWhy));
  if (e.branch) put("gradient_branch", b.getF64FloatAttr(*e.branch));
  if (e.parameters) put("gradient_parameters", b.getF64FloatAttr(*e.parameters));
  if (!e.gradientWhy.empty()) put("gradient_why", b.getStringAttr(e.gradientWhy));
  if (e.parameters) put("trainable", b.getBoolAttr(*e.parameters != 0));
  put("proved", b.getBoolAttr(e.proved));
  put("needs_finite", b.getBoolAttr(e.needsFinite));
  put("proof_rule", b.getStringAttr(e.proofRule));
  if (!e.line.empty()) put("line", b.getStringAttr(e.line));
  return b.getDictionaryAttr(entries);
}

static int64_t integer(DictionaryAttr d, StringRef name) {
  auto value = d.getAs<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}
static std::optional<double> real(DictionaryAttr d, StringRef name) {
  auto value = d.getAs<FloatAttr>(name);
  return value ? std::optional<double>(value.getValueAsDouble()) : std::nullopt;
}
static std::string text(DictionaryAttr d, StringRef name) {
  auto value = d.getAs<StringAttr>(name);
  return value ? value.str() : "";
}

Evidence fromAttribute(DictionaryAttr d) {
  Evidence e;
  if (auto tensors = d.getAs<ArrayAttr>("tensors"))
    for (Attribute entry : tensors) {
      auto t = cast<DictionaryAttr>(entry);
      TensorEvidence tensor;
      tensor.name = text(t, "name"), tensor.storage = text(t, "storage"), tensor.sha256 = text(t, "sha256");
      tensor.halfPrecision = tensor.storage == "f16" || tensor.storage == "bf16";
      tensor.elements = integer(t, "elements"), tensor.nonzero = integer(t, "nonzero");
      tensor.aboveThreshold = integer(t, "above_threshold"), tensor.nonFinite = integer(t, "non_finite");
      tensor.maxAbs = real(t, "max_abs").value_or(0), tensor.largestValue = real(t, "largest_value").value_or(0);
      if (auto index = t.getAs<ArrayAttr>("largest_index"))
        for (Attribute i : index) tensor.largestIndex.push_back(cast<IntegerAttr>(i).getInt());
      e.tensors.push_back(std::move(tensor));
    }
  e.forward = real(d, "forward_l2"), e.branch = real(d, "gradient_branch"), e.parameters = real(d, "gradient_parameters");
  e.forwardWhy = text(d, "forward_why"), e.gradientWhy = text(d, "gradient_why"), e.proofRule = text(d, "proof_rule"), e.line = text(d, "line");
  if (auto proved = d.getAs<BoolAttr>("proved")) e.proved = proved.getValue();
  if (auto needs = d.getAs<BoolAttr>("needs_finite")) e.needsFinite = needs.getValue();
  return e;
}

} // namespace tare::checks
