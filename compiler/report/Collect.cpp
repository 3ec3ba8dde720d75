// Reads candidates, checks, calibration and heatmap from the attributes that the passes left (`graph.evidence`, `verdict`, `graph.rejected`,
// `graph.calibration`, `graph.heatmap`). In: a module after `checked`. Out: the Report but for estimates of the graph (Estimates.cpp).
#include "compiler/report/Collect.h"
#include "compiler/graph/Cost.h"
#include "compiler/graph/Graph.h"
#include "compiler/report/Estimates.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tare::report {

static std::string text(DictionaryAttr d, llvm::StringRef key) {
  auto a = d ? llvm::dyn_cast_or_null<StringAttr>(d.get(key)) : StringAttr();
  return a ? a.str() : "";
}
static std::optional<int64_t> integer(DictionaryAttr d, llvm::StringRef key) {
  auto a = d ? llvm::dyn_cast_or_null<IntegerAttr>(d.get(key)) : IntegerAttr();
  return a ? std::optional(a.getInt()) : std::nullopt;
}
static std::optional<double> real(DictionaryAttr d, llvm::StringRef key) {
  auto a = d ? llvm::dyn_cast_or_null<FloatAttr>(d.get(key)) : FloatAttr();
  return a ? std::optional(a.getValueAsDouble()) : std::nullopt;
}
static Measured measured(DictionaryAttr d, llvm::StringRef key, llvm::StringRef whyKey) {
  Measured m{real(d, key), text(d, whyKey)};
  if (!m.value && m.why.empty()) m.why = "not measured";
  return m;
}

static std::vector<int64_t> indexList(Attribute attribute) {
  std::vector<int64_t> list;
  if (auto dense = llvm::dyn_cast_or_null<DenseI64ArrayAttr>(attribute)) list.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
  if (auto array = llvm::dyn_cast_or_null<ArrayAttr>(attribute))
    for (auto a : array) list.push_back(llvm::cast<IntegerAttr>(a).getInt());
  return list;
}

static Weights weightsOf(DictionaryAttr e) {
  Weights w;
  auto elements = integer(e, "elements");
  w.measured = elements.has_value();
  w.why = text(e, "weights_why");
  if (!w.measured) {
    if (w.why.empty()) w.why = "the weights were not looked at";
    return w;
  }
  w.elements = *elements;
  w.nonzero = integer(e, "nonzero").value_or(0), w.aboveThreshold = integer(e, "above_threshold").value_or(0);
  w.nonFinite = integer(e, "non_finite").value_or(0), w.maxAbs = real(e, "max_abs").value_or(0);
  w.largestTensor = text(e, "largest_tensor"), w.largestIndex = indexList(e.get("largest_index")), w.largestValue = real(e, "largest_value").value_or(0);
  if (auto tensors = llvm::dyn_cast_or_null<ArrayAttr>(e.get("tensors")))
    for (auto t : tensors.getAsRange<DictionaryAttr>())
      w.tensors.push_back({text(t, "name"), text(t, "storage"), text(t, "sha256"), integer(t, "elements").value_or(0), integer(t, "nonzero").value_or(0),
                           integer(t, "above_threshold").value_or(0), real(t, "max_abs").value_or(0)});
  return w;
}

/// Bytes that the layer's parameters take on disk.
static std::optional<int64_t> storedBytes(const Weights &w) {
  if (!w.measured) return std::nullopt;
  int64_t bits = 0;
  for (auto &t : w.tensors) {
    int64_t width = 32;
    llvm::StringRef(t.storage).ltrim("abcdefghijklmnopqrstuvwxyz").take_while(llvm::isDigit).getAsInteger(10, width);
    bits += t.elements * width;
  }
  return (bits + 7) / 8;
}

static Candidate candidateOf(graph::LayerOp layer, const Report &report) {
  auto evidence = layer->getAttrOfType<DictionaryAttr>("graph.evidence");
  auto verdict = layer.getVerdictAttr();
  Candidate c;
  c.name = layer.getName().str(), c.role = layer.getRole().str(), c.markedBy = layer.getMarkedBy().str();
  c.verdict = verdict ? verdict.getVerdict().str() : "rejected";
  c.basis = verdict ? verdict.getBasis().str() : "", c.code = verdict ? verdict.getCode().str() : "NOT_CHECKED";
  if (c.basis == "empty") c.basis.clear();
  c.line = text(evidence, "line");
  c.proofRule = text(evidence, "proof_rule");
  if (auto proved = evidence ? llvm::dyn_cast_or_null<BoolAttr>(evidence.get("proved")) : BoolAttr()) c.proved = proved.getValue();
  c.weights = weightsOf(evidence);
  c.forward = measured(evidence, "forward_l2", "forward_why");
  c.gradientBranch = measured(evidence, "gradient_branch", "gradient_why");
  c.gradientParameters = measured(evidence, "gradient_parameters", "gradient_why");
  if (auto trainable = evidence ? llvm::dyn_cast_or_null<BoolAttr>(evidence.get("trainable")) : BoolAttr()) c.trainable = trainable.getValue();
  c.savedFlops = countAt(flopsOf(layer), report.shape);
  c.savedBytes = integer(evidence, "memory_bytes");
  if (!c.savedBytes) c.savedBytes = storedBytes(c.weights);
  return c;
}

static Check checkOf(llvm::StringRef name, Operation *root) {
  Check check;
  check.name = name.str(), check.form = "dense", check.precision = "f32";
  auto shape = [&](graph::FidelityCheckOp op) {
    Dims p = graph::dimsOf(op.getP());
    if (p.size() == 2) check.heads = p[0].constant(), check.rank = p[1].constant();
  };
  root->walk(shape);
  check.why = check.heads ? "dense form: every token is evaluated in f32, nothing to compare" : "written out in the source graph; kept as it is";
  return check;
}

Report collect(ModuleOp module, const ModelInfo &model, const CompileOptions &options) {
  Report r;
  r.version = TARE_VERSION;
  r.modelName = model.name, r.modelFormat = model.format, r.modelSha256 = model.sha256, r.parameters = model.parameters, r.warnings = model.warnings;
  r.precision = options.precision;
  r.policy = options.policy == Policy::Strict ? "strict" : options.policy == Policy::Inference ? "inference" : "proved";
  r.nanMode = options.strictNans ? "strict" : "finite";
  r.weightThreshold = options.weightThreshold, r.forwardThreshold = options.forwardThreshold;
  std::string cpu, gpu;
  bool emulator = false;
  for (llvm::StringRef level : options.levels)
    if (level.starts_with("cuda-emu")) emulator = true;
    else if (level.starts_with("sm_")) gpu += ((gpu.empty() ? "cuda:" : ",") + level).str();
    else cpu += ((cpu.empty() ? "cpu:" : ",") + level).str();
  for (auto &target : {cpu, gpu, std::string(emulator ? "cuda-emu" : "")})
    if (!target.empty()) r.targets.push_back(target);
  auto calibration = module->getAttrOfType<DictionaryAttr>("graph.calibration");
  r.calibrationSource = text(calibration, "source"), r.calibrationSha256 = text(calibration, "sha256");
  r.calibrationSamples = integer(calibration, "samples").value_or(0), r.calibrationSeed = integer(calibration, "seed").value_or(static_cast<int64_t>(options.seed));
  if (r.calibrationSource.empty()) r.calibrationSource = options.calibration.empty() ? "random" : "file";
  addFull(r, module);
  r.idsBelow = idBounds(module);

  llvm::StringSet<> checks;
  module.walk<WalkOrder::PreOrder>([&](graph::LayerOp layer) {
    if (layer.getRole() == "fidelity_check") {
      if (checks.insert(layer.getName()).second) r.checks.push_back(checkOf(layer.getName(), layer));
    } else if (layer->getAttr("graph.evidence") || layer.getVerdictAttr()) {
      bool kept = layer.getMarkedBy() == "discovery" && (!layer.getVerdictAttr() || layer.getVerdictAttr().getVerdict() != "pruned");
      (kept ? r.couldBeRemoved : r.candidates).push_back(candidateOf(layer, r));
    }
  });
  module.walk([&](graph::FidelityCheckOp op) {
    auto layer = op->getParentOfType<graph::LayerOp>();
    std::string name = graph::nodeName(op.getLoc());
    if (!(layer && layer.getRole() == "fidelity_check") && checks.insert(name).second) r.checks.push_back(checkOf(name, op));
  });
  if (auto rejected = module->getAttrOfType<ArrayAttr>("graph.rejected"))
    for (auto d : rejected.getAsRange<DictionaryAttr>()) {
      if (text(d, "role") == "fidelity_check") continue;
      Candidate c;
      c.name = text(d, "name"), c.role = text(d, "role"), c.markedBy = text(d, "marked_by"), c.verdict = "rejected", c.code = text(d, "code");
      std::string why = text(d, "why");
      c.line = text(d, "line");
      if (c.line.empty()) c.line = "[PRUNING_REJECTED: " + c.code + "] " + c.name + (why.empty() ? "" : ": " + why);
      c.weights.why = c.forward.why = c.gradientBranch.why = c.gradientParameters.why = "the marked nodes cannot be a layer: " + (why.empty() ? c.code : why);
      r.candidates.push_back(c);
    }
  r.heatmapWhy = options.measureAll ? "no residual layers were found" : "not measured: no report was asked for when this was compiled";
  return r;
}

void addPruned(Report &report, ModuleOp module) {
  addPrunedEstimates(report, module);
  auto heatmap = module->getAttrOfType<ArrayAttr>("graph.heatmap");
  if (!heatmap) return;
  for (auto d : heatmap.getAsRange<DictionaryAttr>())
    report.heatmap.push_back({text(d, "layer"), measured(d, "contribution", "why"), measured(d, "gradient_norm", "why"), measured(d, "flops_share", "why")});
}

} // namespace tare::report
