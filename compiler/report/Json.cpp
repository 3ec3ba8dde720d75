// A report as JSON and back (docs/report-schema.json; key names are pinned). In: a Report, or text of any origin. Out: text with keys in the order
// of the schema, or a Report, or a Failure that names the key. Holds: numbers read back as the same doubles; missing measurements are null + why.
#include "compiler/graph/Failure.h"
#include "compiler/report/Writers.h"
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::report {
using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity: they become null, and the why says what was measured.
static Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
static Json text(const std::string &value) { return value.empty() ? Json(nullptr) : Json(value); }
static Json number(const std::optional<int64_t> &value) { return value ? Json(*value) : Json(nullptr); }
static std::string whyOf(const Measured &m) {
  if (m.value && std::isfinite(*m.value)) return "";
  if (m.value) return fmt::format("the value is {}{}{}", *m.value, m.why.empty() ? "" : ": ", m.why);
  return m.why.empty() ? "not measured" : m.why;
}
static Json measured(const Measured &m) { return m.value ? number(*m.value) : Json(nullptr); }
/// Puts the reasons of all missing values of one object beside them.
static void addWhy(Json &object, std::initializer_list<const Measured *> values) {
  std::string why;
  for (auto *m : values) {
    std::string one = whyOf(*m);
    if (!one.empty() && why.find(one) == std::string::npos) why += (why.empty() ? "" : "; ") + one;
  }
  if (!why.empty()) object["why"] = why;
}

static Json toObject(const Weights &w) {
  if (!w.measured) {
    return {{"elements", nullptr}, {"nonzero", nullptr}, {"above_threshold", nullptr}, {"max_abs", nullptr}, {"largest", nullptr},
            {"why", w.why.empty() ? "not measured" : w.why}};
  }
  Json object = {{"elements", w.elements}, {"nonzero", w.nonzero}, {"above_threshold", w.aboveThreshold}, {"non_finite", w.nonFinite},
                 {"max_abs", number(w.maxAbs)}};
  object["largest"] = w.largestTensor.empty() ? Json(nullptr)
                                              : Json{{"tensor", w.largestTensor}, {"index", w.largestIndex}, {"value", number(w.largestValue)}};
  if (!std::isfinite(w.maxAbs)) object["why"] = fmt::format("the largest magnitude is {}", w.maxAbs);
  else if (w.largestTensor.empty()) object["why"] = w.elements ? "every element is zero" : "the layer has no parameters";
  object["tensors"] = Json::array();
  for (auto &t : w.tensors)
    object["tensors"].push_back({{"name", t.name}, {"storage", t.storage}, {"elements", t.elements}, {"nonzero", t.nonzero},
                                 {"above_threshold", t.aboveThreshold}, {"max_abs", number(t.maxAbs)}, {"sha256", t.sha256}});
  return object;
}

static Json toObject(const Candidate &c) {
  Json object = {{"name", c.name}, {"role", c.role}, {"marked_by", c.markedBy}, {"verdict", c.verdict}, {"basis", text(c.basis)},
                 {"code", text(c.code)}, {"line", text(c.line)}, {"proved", c.proved ? Json(*c.proved) : Json(nullptr)}, {"proof", text(c.proofRule)}, {"weights", toObject(c.weights)}};
  object["forward"] = Json{{"l2", measured(c.forward)}};
  addWhy(object["forward"], {&c.forward});
  object["gradient"] = Json{{"branch", measured(c.gradientBranch)}, {"parameters", measured(c.gradientParameters)},
                            {"trainable", c.trainable ? Json(*c.trainable) : Json(nullptr)}};
  addWhy(object["gradient"], {&c.gradientBranch, &c.gradientParameters});
  Json flops = c.savedFlops.formula.empty() ? Json(nullptr) : Json(c.savedFlops.formula);
  if (c.savedFlops.value && std::to_string(*c.savedFlops.value) == c.savedFlops.formula) flops = *c.savedFlops.value;
  object["saves"] = Json{{"flops", flops}, {"flops_at_shape", number(c.savedFlops.value)}, {"memory_bytes", number(c.savedBytes)}};
  if (flops.is_null() || !c.savedBytes) object["saves"]["why"] = "the layer could not be formed";
  return object;
}

static Json toObject(const Check &c) {
  Json object = {{"name", c.name}, {"form", c.form}, {"heads", number(c.heads)}, {"rank", number(c.rank)}, {"precision", c.precision},
                 {"fidelity", c.fidelity ? Json(*c.fidelity) : Json(nullptr)}, {"window_agreement", c.windowAgreement},
                 {"overall_agreement", c.overallAgreement}, {"code", text(c.code)}};
  if (!c.why.empty()) object["why"] = c.why;
  object["line"] = text(c.line), object["anchors"] = text(c.anchors), object["evaluated_tokens"] = c.evaluated, object["tokens"] = c.tokens;
  object["tried"] = Json::array();
  for (auto &f : c.tried) object["tried"].push_back({{"precision", f.precision}, {"fidelity", f.fidelity}, {"window_agreement", f.window}, {"overall_agreement", f.overall}});
  return object;
}

static Json toObject(const Cuda &c) {
  Json object = {{"toolkit", c.toolkit}, {"precision", c.precision}, {"images", c.images}, {"kernels", Json::array()}};
  if (!c.why.empty()) object["why"] = c.why;
  for (auto &k : c.kernels) {
    Json kernel = {{"name", k.name}, {"kind", k.kind}, {"dynamic_shared_bytes", k.dynamicSharedBytes}, {"resources", Json::array()}};
    for (auto &r : k.resources)
      kernel["resources"].push_back({{"architecture", r.architecture}, {"registers", r.registers}, {"shared_bytes", r.sharedBytes}, {"stack_bytes", r.stackBytes},
                                     {"spill_store_bytes", r.spillStores}, {"spill_load_bytes", r.spillLoads}});
    object["kernels"].push_back(kernel);
  }
  return object;
}

static Json toObject(const Estimate &e) {
  return {{"flops", number(e.flops.value)}, {"memory_bytes", number(e.memory.value)}, {"flops_formula", e.flops.formula},
          {"memory_formula", e.memory.formula}};
}

std::string toJson(const Report &r) {
  Json j;
  j["tare"] = r.version;
  j["schema"] = kSchema;
  j["model"] = {{"name", r.modelName}, {"sha256", r.modelSha256}, {"format", r.modelFormat}, {"parameters", r.parameters}};
  j["policy"] = r.policy;
  j["thresholds"] = {{"weight", r.weightThreshold}, {"forward_l2", r.forwardThreshold}};
  j["nan_mode"] = r.nanMode;
  j["calibration"] = {{"source", r.calibrationSource}, {"sha256", text(r.calibrationSha256)}, {"samples", r.calibrationSamples}, {"seed", r.calibrationSeed}};
  if (r.calibrationSha256.empty()) j["calibration"]["why"] = "seeded random inputs have no file";
  j["targets"] = r.targets;
  j["precision"] = r.precision;
  j["candidates"] = Json::array();
  for (auto &c : r.candidates) j["candidates"].push_back(toObject(c));
  j["could_be_removed"] = Json::array();
  for (auto &c : r.couldBeRemoved) j["could_be_removed"].push_back(toObject(c));
  j["checks"] = Json::array();
  for (auto &c : r.checks) j["checks"].push_back(toObject(c));
  j["zero_rate"] = r.zeroRate();
  j["compute_estimation"] = {{"shape", Json(r.shape)}, {"full", toObject(r.full)}, {"pruned", toObject(r.pruned)}, {"layers", Json::array()}};
  for (auto &l : r.layers)
    j["compute_estimation"]["layers"].push_back({{"layer", l.layer}, {"full", toObject(l.full)}, {"pruned", toObject(l.pruned)}});
  j["heatmap"] = Json::array();
  for (auto &h : r.heatmap) {
    Json row = {{"layer", h.layer}, {"contribution", measured(h.contribution)}, {"gradient_norm", measured(h.gradientNorm)}, {"flops_share", measured(h.flopsShare)}};
    addWhy(row, {&h.contribution, &h.gradientNorm, &h.flopsShare});
    j["heatmap"].push_back(row);
  }
  if (r.heatmap.empty()) j["heatmap_why"] = r.heatmapWhy.empty() ? "no heatmap was asked for" : r.heatmapWhy;
  j["graph"] = Json::array();
  for (auto &n : r.graph) j["graph"].push_back({{"name", n.name}, {"role", text(n.role)}, {"verdict", text(n.verdict)}, {"ops", n.ops}});
  j["ids_below"] = Json(r.idsBelow);
  if (r.cuda) j["cuda"] = toObject(*r.cuda);
  j["warnings"] = r.warnings;
  // Invalid UTF-8 cannot come from an importer (B12), but a report file may be edited: replace rather than throw.
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {
/// Reads with defaults; a wrong kind throws Json::type_error, which fromJson turns into a Failure.
struct Reader {
  const Json &j;
  bool has(const char *key) const {
    if (!j.is_object()) (void)j.at(key); // throws: a list or a number where an object belongs
    return j.contains(key) && !j[key].is_null();
  }
  std::string text(const char *key) const { return has(key) ? j[key].get<std::string>() : ""; }
  int64_t integer(const char *key) const { return has(key) ? j[key].get<int64_t>() : 0; }
  std::optional<int64_t> maybe(const char *key) const { return has(key) ? std::optional(j[key].get<int64_t>()) : std::nullopt; }
  double real(const char *key) const { return has(key) ? j[key].get<double>() : 0; }
  Measured measured(const char *key) const {
    Measured m;
    if (has(key)) m.value = j[key].get<double>();
    else m.why = text("why");
    return m;
  }
  Json child(const char *key) const { return has(key) ? j[key] : Json::object(); }
  Json list(const char *key) const { return has(key) ? j[key] : Json::array(); }
};
} // namespace

static Weights weightsFrom(const Json &j) {
  Reader r{j};
  Weights w;
  w.measured = r.has("elements");
  w.why = r.text("why");
  if (!w.measured) return w;
  w.elements = r.integer("elements"), w.nonzero = r.integer("nonzero"), w.aboveThreshold = r.integer("above_threshold");
  w.nonFinite = r.integer("non_finite"), w.maxAbs = r.real("max_abs");
  Json largest = r.child("largest");
  Reader l{largest};
  w.largestTensor = l.text("tensor"), w.largestIndex = l.list("index").get<std::vector<int64_t>>(), w.largestValue = l.real("value");
  for (auto &item : r.list("tensors")) {
    Reader t{item};
    w.tensors.push_back({t.text("name"), t.text("storage"), t.text("sha256"), t.integer("elements"), t.integer("nonzero"), t.integer("above_threshold"), t.real("max_abs")});
  }
  return w;
}

static Candidate candidateFrom(const Json &j) {
  Reader r{j};
  Candidate c;
  c.name = r.text("name"), c.role = r.text("role"), c.markedBy = r.text("marked_by"), c.verdict = r.text("verdict");
  c.basis = r.text("basis"), c.code = r.text("code"), c.line = r.text("line"), c.proofRule = r.text("proof");
  if (r.has("proved")) c.proved = j["proved"].get<bool>();
  c.weights = weightsFrom(r.child("weights"));
  Json forward = r.child("forward"), gradient = r.child("gradient"), saves = r.child("saves");
  c.forward = Reader{forward}.measured("l2");
  c.gradientBranch = Reader{gradient}.measured("branch");
  c.gradientParameters = Reader{gradient}.measured("parameters");
  if (Reader{gradient}.has("trainable")) c.trainable = gradient["trainable"].get<bool>();
  Reader s{saves};
  if (s.has("flops")) c.savedFlops.formula = saves["flops"].is_string() ? saves["flops"].get<std::string>() : std::to_string(saves["flops"].get<int64_t>());
  c.savedFlops.value = s.maybe("flops_at_shape");
  c.savedBytes = s.maybe("memory_bytes");
  return c;
}

static Estimate estimateFrom(const Json &j) {
  Reader r{j};
  return {{r.text("flops_formula"), r.maybe("flops")}, {r.text("memory_formula"), r.maybe("memory_bytes")}};
}

static Cuda cudaFrom(const Json &j) {
  Reader r{j};
  Cuda cuda{r.text("toolkit"), r.text("precision"), r.text("why"), r.list("images").get<std::vector<std::string>>(), {}};
  for (auto &item : r.list("kernels")) {
    Reader k{item};
    CudaKernel kernel{k.text("name"), k.text("kind"), k.integer("dynamic_shared_bytes"), {}};
    for (auto &one : k.list("resources")) {
      Reader o{one};
      kernel.resources.push_back({o.text("architecture"), o.integer("registers"), o.integer("shared_bytes"), o.integer("stack_bytes"), o.integer("spill_store_bytes"), o.integer("spill_load_bytes")});
    }
    cuda.kernels.push_back(kernel);
  }
  return cuda;
}

static Report reportFrom(const Json &j) {
  Reader r{j};
  Report report;
  report.version = r.text("tare");
  Json model = r.child("model"), thresholds = r.child("thresholds"), calibration = r.child("calibration"), estimate = r.child("compute_estimation");
  Reader m{model};
  report.modelName = m.text("name"), report.modelSha256 = m.text("sha256"), report.modelFormat = m.text("format"), report.parameters = m.integer("parameters");
  report.policy = r.text("policy"), report.nanMode = r.text("nan_mode"), report.precision = r.text("precision");
  report.weightThreshold = Reader{thresholds}.real("weight"), report.forwardThreshold = Reader{thresholds}.real("forward_l2");
  Reader c{calibration};
  report.calibrationSource = c.text("source"), report.calibrationSha256 = c.text("sha256");
  report.calibrationSamples = c.integer("samples"), report.calibrationSeed = c.integer("seed");
  report.targets = r.list("targets").get<std::vector<std::string>>();
  for (auto &item : r.list("candidates")) report.candidates.push_back(candidateFrom(item));
  for (auto &item : r.list("could_be_removed")) report.couldBeRemoved.push_back(candidateFrom(item));
  for (auto &item : r.list("checks")) {
    Reader k{item};
    Check check{k.text("name"), k.text("form"), k.text("precision"), k.text("code"), k.text("why"), k.maybe("heads"), k.maybe("rank"), {}, {}, {}};
    if (k.has("fidelity")) check.fidelity = k.real("fidelity");
    check.windowAgreement = k.list("window_agreement").get<std::vector<double>>();
    check.overallAgreement = k.list("overall_agreement").get<std::vector<double>>();
    check.line = k.text("line"), check.anchors = k.text("anchors");
    check.evaluated = k.maybe("evaluated_tokens").value_or(0), check.tokens = k.maybe("tokens").value_or(0);
    for (auto &form : k.list("tried")) {
      Reader f{form};
      check.tried.push_back({f.text("precision"), f.real("fidelity"), f.list("window_agreement").get<std::vector<double>>(), f.list("overall_agreement").get<std::vector<double>>()});
    }
    report.checks.push_back(check);
  }
  Reader e{estimate};
  report.shape = e.child("shape").get<std::map<std::string, int64_t>>();
  report.full = estimateFrom(e.child("full")), report.pruned = estimateFrom(e.child("pruned"));
  for (auto &item : e.list("layers")) {
    Reader l{item};
    report.layers.push_back({l.text("layer"), estimateFrom(l.child("full")), estimateFrom(l.child("pruned"))});
  }
  for (auto &item : r.list("heatmap")) {
    Reader h{item};
    report.heatmap.push_back({h.text("layer"), h.measured("contribution"), h.measured("gradient_norm"), h.measured("flops_share")});
  }
  report.heatmapWhy = r.text("heatmap_why");
  for (auto &item : r.list("graph")) {
    Reader n{item};
    report.graph.push_back({n.text("name"), n.text("role"), n.text("verdict"), n.integer("ops")});
  }
  if (r.has("cuda")) report.cuda = cudaFrom(r.child("cuda"));
  report.idsBelow = r.child("ids_below").get<std::map<std::string, int64_t>>();
  report.warnings = r.list("warnings").get<std::vector<std::string>>();
  return report;
}

/// Depth is bounded before the parser recurses or builds (bad-inputs L7).
static bool tooDeep(llvm::StringRef text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); i++) {
    char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') i++;
    if (quoted) continue;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    if (depth > 64) return true;
  }
  return false;
}

llvm::Expected<Report> fromJson(llvm::StringRef text, llvm::StringRef file) {
  if (tooDeep(text)) return refuse("the JSON is nested more than 64 levels deep").inFile(file.str()).withHint("give a report that tare wrote");
  try {
    Json j = Json::parse(text.begin(), text.end());
    if (!j.is_object() || !j.contains("tare") || !j.contains("candidates"))
      return refuse("this JSON is no report of tare: it has no `tare` or no `candidates`").inFile(file.str()).withHint("make one with `tare check MODEL --report report.json`");
    if (!j.contains("schema") || j["schema"] != kSchema)
      return refuse(fmt::format("the report has schema {}; this tool reads schema {}", j.contains("schema") ? j["schema"].dump() : "none", kSchema))
          .inFile(file.str()).withHint("read it with the version of tare that wrote it (key `tare`)");
    return reportFrom(j);
  } catch (const nlohmann::json::exception &e) {
    return refuse(fmt::format("not a readable report: {}", e.what())).inFile(file.str()).withHint("make one with `tare check MODEL --report report.json`");
  }
}

} // namespace tare::report
