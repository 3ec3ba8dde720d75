// Writing the certificate (Certificate.h), and the two parts that writer and verifier must agree on: the hash over all constants and the stored samples.
#include "compiler/checks/Certificate.h"
#include "compiler/checks/Calibration.h"
#include "compiler/checks/CertificateParts.h"
#include "compiler/checks/Rules.h"
#include "compiler/graph/Graph.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using nlohmann::json;

namespace tare::checks {

std::string hashOfConstants(ModuleOp module) {
  llvm::SHA256 hash;
  module.walk([&](graph::ConstantOp op) {
    std::string head = op.getName().str() + '\0';
    llvm::raw_string_ostream(head) << op.getValue().getElementType();
    for (int64_t d : op.getValue().getShapedType().getShape()) head += ',' + std::to_string(d);
    hash.update(head);
    ArrayRef<char> bytes = graph::rawBytes(op.getValue());
    hash.update(llvm::StringRef(bytes.data(), bytes.size()));
  });
  return llvm::toHex(hash.final(), true);
}

static json tensorToJson(const reference::Tensor &t) {
  json j;
  j["shape"] = t.shape;
  if (t.isFloat())
    j["floats"] = t.floats;
  else
    j["ints"] = t.ints;
  return j;
}

static json orNull(DictionaryAttr d, StringRef key) {
  auto value = d.getAs<FloatAttr>(key);
  return value ? json(value.getValueAsDouble()) : json();
}

json makeCertificate(ModuleOp module, const CompileOptions &options, llvm::StringRef sourceSha256) {
  json c;
  c["schema"] = 1;
  c["source_sha256"] = sourceSha256.str();
  c["constants_sha256"] = hashOfConstants(module);
  c["policy"] = policyName(options.policy).str();
  c["thresholds"] = {{"weight", options.weightThreshold}, {"forward_l2", options.forwardThreshold}};
  c["nan_mode"] = options.strictNans ? "strict" : "finite";
  c["assumptions"] = options.strictNans ? json::array({"reductions may be reassociated, multiply-add contracted"})
                                        : json::array({"activations are finite", "the sign of a zero may differ after a removal", "reductions may be reassociated, multiply-add contracted"});
  c["keep"] = options.keep, c["only"] = options.only;
  c["loss"] = options.loss;
  json &k = c["calibration"];
  auto attribute = module->getAttrOfType<DictionaryAttr>("graph.calibration");
  auto text = [&](DictionaryAttr d, StringRef key) {
    auto value = d ? d.getAs<StringAttr>(key) : StringAttr();
    return value ? value.str() : std::string();
  };
  k["source"] = text(attribute, "source"), k["sha256"] = text(attribute, "sha256"), k["seed"] = options.seed;
  k["cotangents"] = options.cotangents, k["samples"] = options.samples, k["sequence"] = options.sequence, k["past"] = options.past;
  if (auto main = module.lookupSymbol<func::FuncOp>("main"); main && k["source"] == "file") {
    if (auto calibration = loadCalibration(main, options)) {
      size_t values = 0;
      for (auto &sample : calibration->samples)
        for (auto &tensor : sample) values += tensor.floats.size() + tensor.ints.size();
      if (values <= kStoredValues) {
        for (auto &sample : calibration->samples) {
          json inputs;
          for (auto [i, tensor] : llvm::enumerate(sample)) inputs[inputName(main, i)] = tensorToJson(tensor);
          k["stored"].push_back(inputs);
        }
        if (llvm::any_of(calibration->anchors, [](auto &a) { return !a.empty(); })) k["stored_anchors"] = calibration->anchors;
      }
    } else {
      llvm::consumeError(calibration.takeError()); // it was read once already; without stored samples the verifier asks for the file
    }
  }
  c["layers"] = json::array();
  module.walk<WalkOrder::PreOrder>([&](graph::LayerOp layer) {
    auto e = layer->getAttrOfType<DictionaryAttr>("graph.evidence");
    auto verdict = layer.getVerdict();
    if (!e || !verdict) return;
    json l;
    l["name"] = layer.getName().str(), l["role"] = layer.getRole().str(), l["marked_by"] = layer.getMarkedBy().str();
    l["verdict"] = verdict->getVerdict().str(), l["basis"] = verdict->getBasis().str(), l["code"] = verdict->getCode().str();
    l["proved"] = e.getAs<BoolAttr>("proved") && e.getAs<BoolAttr>("proved").getValue();
    l["rule"] = text(e, "proof_rule");
    l["forward_l2"] = orNull(e, "forward_l2"), l["gradient_branch"] = orNull(e, "gradient_branch"), l["gradient_parameters"] = orNull(e, "gradient_parameters");
    l["witnesses"] = json::array();
    if (auto tensors = e.getAs<ArrayAttr>("tensors"))
      for (auto t : tensors.getAsRange<DictionaryAttr>()) {
        auto count = [&](StringRef key) { return t.getAs<IntegerAttr>(key).getInt(); };
        l["witnesses"].push_back({{"name", text(t, "name")}, {"storage", text(t, "storage")}, {"sha256", text(t, "sha256")}, {"elements", count("elements")},
                                  {"nonzero", count("nonzero")}, {"above_threshold", count("above_threshold")}, {"non_finite", count("non_finite")},
                                  {"max_abs", t.getAs<FloatAttr>("max_abs").getValueAsDouble()}});
      }
    c["layers"].push_back(l);
  });
  return c;
}

} // namespace tare::checks
