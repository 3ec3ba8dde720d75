// tare verify: three forms. MODEL ENGINE: the shadow run with a gate. --certificate ENGINE MODEL: the certificate is derived again from the source.
// ENGINE: all hashes. Both also compare an engine's targets with one another. In: files. Out: text or JSON; exit 4 when a gate, a certificate or a comparison fails. Holds: nothing is written.
#include "compiler/checks/Calibration.h"
#include "compiler/graph/Graph.h"
#include "compiler/import/TensorFiles.h"
#include "compiler/report/Writers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/format.h"
#include "tools/tare/Certificate.h"
#include "tools/tare/Commands.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/Divergence.h"
#include "tools/tare/RandomInputs.h"
#include "tools/tare/Shadow.h"
#include "tools/tare/Targets.h"
#include "tools/tare/Verify.h"
#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace tare::cli {
namespace {

using Json = nlohmann::ordered_json;
struct Options {
  std::vector<std::string> files;
  std::string golden, gate = "0.1", seed, rules, calibration, publicKey, target, device;
  bool certificate = false, paranoid = false;
};

std::string names(const ArrayMap &arrays) {
  std::string text;
  for (auto &[name, array] : arrays) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Keys `a.input_ids` of one file make one case per prefix; keys that are names themselves make one case.
std::vector<Sample> splitByPrefix(const Sample &sample, const std::set<std::string> &known) {
  std::map<std::string, ArrayMap> groups;
  for (auto &[key, array] : sample.arrays) {
    if (known.count(key)) groups[""][key] = array;
    for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
      if (known.count(key.substr(dot + 1)) && !known.count(key)) { groups[key.substr(0, dot)][key.substr(dot + 1)] = array; break; }
  }
  std::vector<Sample> cases;
  for (auto &[prefix, arrays] : groups) cases.push_back({sample.label + (prefix.empty() ? "" : ":" + prefix), arrays});
  return cases;
}

llvm::Expected<std::vector<Sample>> loadCases(const Options &o, const EngineHandle &engine) {
  std::set<std::string> known;
  for (auto &info : engine.inputs()) known.insert(info.name);
  for (auto &info : engine.outputs()) known.insert(info.name);
  std::vector<Sample> cases;
  if (o.golden.empty()) {
    auto seed = parseCount("--seed", o.seed.empty() ? "0" : o.seed, 0, uint64_t(1) << 62);
    if (!seed) return seed.takeError();
    for (uint64_t i = 0; i < 2; i++) {
      auto arrays = randomInputs(engine, {}, *seed + i, true);
      if (!arrays) return arrays.takeError();
      cases.push_back({fmt::format("random inputs, seed {}", *seed + i), std::move(*arrays)});
    }
    return cases;
  }
  auto samples = readSamples(o.golden);
  if (!samples) return samples.takeError();
  for (auto &sample : *samples)
    for (auto &one : splitByPrefix(sample, known)) cases.push_back(one);
  if (cases.empty()) return refuse("no case in the folder has an array named as an input or output of the engine").inFile(o.golden).withHint("arrays are named as the engine's inputs and outputs, see `tare inspect`");
  return cases;
}

/// Rows of [batch, sequence, ...] whose mask is 0 are unspecified for Hugging Face engines (cli.md): the expected values are put there on both sides.
void ignoreMasked(const ArrayMap &inputs, const Array &expected, Array &actual) {
  auto mask = inputs.find("attention_mask");
  if (mask == inputs.end() || mask->second.dtype != TARE_I64 || mask->second.shape.size() != 2 || expected.shape.size() < 2 || actual.dtype != expected.dtype) return;
  size_t rows = static_cast<size_t>(mask->second.shape[0] * mask->second.shape[1]);
  if (expected.shape[0] != mask->second.shape[0] || expected.shape[1] != mask->second.shape[1] || rows == 0) return;
  size_t bytes = expected.bytes.size() / rows;
  auto *values = reinterpret_cast<const int64_t *>(mask->second.bytes.data());
  for (size_t i = 0; i < rows; i++)
    if (values[i] == 0) actual.bytes.replace(i * bytes, bytes, expected.bytes, i * bytes, bytes);
}

struct CaseResult {
  std::string label;
  Comparison shadow, engineGolden, sourceGolden;
  bool golden = false;
  std::vector<std::string> notes;
  double delta() const { return std::max(shadow.rate(), golden ? engineGolden.rate() - sourceGolden.rate() : 0); }
};

/// The case's arrays for inputs that engine and source share: `anchors` is the engine's own, and without it fidelity checks are those of the source.
ArrayMap sharedInputs(const Sample &sample, mlir::ModuleOp source, const EngineHandle &engine) {
  auto main = source.lookupSymbol<mlir::func::FuncOp>("main");
  ArrayMap inputs;
  for (auto &info : engine.inputs()) {
    bool isOfSource = false;
    for (unsigned i = 0; i < main.getNumArguments(); i++) isOfSource |= checks::inputName(main, i) == info.name;
    auto found = sample.arrays.find(info.name);
    if (isOfSource && found != sample.arrays.end()) inputs.insert(*found);
  }
  return inputs;
}

llvm::Expected<CaseResult> runCase(const Sample &sample, mlir::ModuleOp source, const EngineHandle &engine, bool masked) {
  CaseResult result{sample.label, {}, {}, {}, false, {}};
  ArrayMap inputs = sharedInputs(sample, source, engine);
  std::string missing;
  for (auto &info : engine.inputs())
    if (!info.optional && !sample.arrays.count(info.name)) missing += (missing.empty() ? "" : ", ") + std::string(info.name);
  if (!missing.empty()) return refuse("the case lacks the inputs " + missing).inFile(sample.label).withHint("it has: " + names(sample.arrays));
  auto expected = evaluateSource(source, inputs);
  if (!expected) return expected.takeError();
  auto actual = runEngine(engine, inputs);
  if (!actual) return actual.takeError();
  std::string precision = precisionOf(engine);
  for (auto &[name, array] : *expected) {
    auto found = actual->find(name);
    if (found == actual->end()) return fail(ExitCode::Gate, "the engine has no output " + name).inFile(engine.path).ofTensor(name);
    if (found->second.shape != array.shape) return fail(ExitCode::Gate, fmt::format("output {}: the source gives [{}], the engine [{}]", name, fmt::join(array.shape, ", "), fmt::join(found->second.shape, ", "))).inFile(engine.path).ofTensor(name);
    if (masked) ignoreMasked(inputs, array, found->second);
    result.shadow.add(compareArrays(array, found->second, precision));
  }
  for (auto &[name, array] : *actual) {
    auto found = sample.arrays.find(name);
    if (found == sample.arrays.end()) continue;
    if (found->second.shape != array.shape) {
      result.notes.push_back(fmt::format("{} of the case is [{}], the engine's is [{}]: not compared", name, fmt::join(found->second.shape, ", "), fmt::join(array.shape, ", ")));
      continue;
    }
    Array fromEngine = array, fromSource = expected->find(name)->second;
    ignoreMasked(inputs, found->second, fromEngine);
    ignoreMasked(inputs, found->second, fromSource);
    result.golden = true;
    result.engineGolden.add(compareArrays(found->second, fromEngine, precision));
    result.sourceGolden.add(compareArrays(found->second, fromSource));
  }
  return result;
}

Json toObject(const Comparison &c) { return {{"elements", c.elements}, {"violations", c.violations}, {"changed_argmax", c.changedArgmax}, {"max_difference", c.largest}, {"violation_rate", c.rate()}}; }

/// Engines with several targets: all that run here, on the cases, against the first of them.
llvm::Error addTargets(const EngineHandle &engine, const std::vector<Sample> &cases, double gate, std::string &text, Json &json) {
  auto compared = compareTargets(engine, cases);
  if (!compared) return compared.takeError();
  if (compared->json.empty()) return llvm::Error::success();
  text += compared->text, json["targets"] = compared->json;
  if (compared->worst <= gate) return llvm::Error::success();
  json["verified"] = false;
  return fail(ExitCode::Gate, fmt::format("the engine's targets differ from one another: {:.4f}% of the elements, the gate is {:.4f}%", 100 * compared->worst, 100 * gate)).inFile(engine.path)
      .withHint("compile the engine again; if it stays, report the model");
}

llvm::Expected<ExitCode> shadow(const Options &o, Console &console) {
  auto gate = parsePercent("--gate", o.gate);
  if (!gate) return gate.takeError();
  auto target = parseRunTarget(o.target);
  if (!target) return target.takeError();
  auto device = parseDevice(o.device, o.target);
  if (!device) return device.takeError();
  auto engine = EngineHandle::open(o.files[1], *target, o.paranoid, o.publicKey, *device);
  if (!engine) return engine.takeError();
  if (auto error = usesDevice(*engine, o.device, target->empty())) return error;
  auto cases = loadCases(o, *engine);
  if (!cases) return cases.takeError();
  ShadowResult result;
  auto error = shadowRun(o.files[0], *engine, *cases, *gate / 100, !o.golden.empty(), console, result);
  if (!error && target->empty()) error = addTargets(*engine, *cases, *gate / 100, result.text, result.json);
  if (console.json && !result.json.is_null()) {
    // One object in any case: the comparison, and beside it what failed.
    Json json = result.json;
    if (error) {
      Failure failure = failureOf(std::move(error));
      json["error"] = Json::parse(renderFailureJson(failure))["error"];
      console.out(json.dump(2) + "\n");
      return failure.code;
    }
    console.out(json.dump(2) + "\n");
    return ExitCode::Ok;
  }
  console.out(result.text);
  if (error) return std::move(error);
  return ExitCode::Ok;
}

/// Hashes, and the engine's targets against one another.
llvm::Expected<ExitCode> alone(const Options &o, Console &console) {
  auto gate = parsePercent("--gate", o.gate);
  if (!gate) return gate.takeError();
  auto target = parseRunTarget(o.target);
  if (!target) return target.takeError();
  auto device = parseDevice(o.device, o.target);
  if (!device) return device.takeError();
  auto engine = EngineHandle::open(o.files[0], *target, true, o.publicKey, *device);
  if (!engine) return engine.takeError();
  if (auto error = usesDevice(*engine, o.device, target->empty())) return error;
  std::string text = "all sections match their hashes, weights included\n";
  Json json = {{"verified", true}, {"engine", o.files[0]}};
  llvm::Error error = llvm::Error::success();
  if (!target->empty()) {
    auto request = Request::create(*engine, 0, false); // it must run here
    if (!request) error = llvm::joinErrors(std::move(error), request.takeError());
  } else {
    auto cases = loadCases(o, *engine);
    if (!cases) return llvm::joinErrors(std::move(error), cases.takeError());
    error = addTargets(*engine, *cases, *gate / 100, text, json);
  }
  if (error && console.json) {
    Failure failure = failureOf(std::move(error));
    json["verified"] = false, json["error"] = Json::parse(renderFailureJson(failure))["error"];
    console.out(json.dump(2) + "\n");
    return failure.code;
  }
  console.out(console.json ? json.dump(2) + "\n" : text);
  if (error) return std::move(error);
  return ExitCode::Ok;
}

/// The two files in the other order are the commonest slip; an engine is known by its first bytes.
llvm::Error checkOrder(const Options &o) {
  if (o.files.size() != 2) return llvm::Error::success();
  auto isEngine = [](const std::string &path) {
    char magic[sizeof format::kMagic] = {};
    std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
    return std::equal(std::begin(magic), std::end(magic), std::begin(format::kMagic));
  };
  size_t engine = o.certificate ? 0 : 1;
  if (isEngine(o.files[engine]) || !isEngine(o.files[1 - engine])) return llvm::Error::success();
  return usage(o.certificate ? "the engine comes first, then its model" : "the model comes first, then the engine")
      .withHint(o.certificate ? "tare verify --certificate ENGINE MODEL" : "tare verify MODEL ENGINE");
}

llvm::Expected<ExitCode> verify(const Options &o, Console &console) {
  if (o.files.empty())
    return usage("no file given").withHint("tare verify MODEL ENGINE (shadow run), tare verify --certificate ENGINE MODEL, or tare verify ENGINE (hashes and targets)");
  if (auto error = checkOrder(o)) return error;
  if (o.certificate) {
    if (o.files.size() != 2) return usage("--certificate takes an engine and its model").withHint("tare verify --certificate ENGINE MODEL");
    if (!o.golden.empty()) return usage("--certificate and --golden exclude each other");
    return verifyCertificateOf({o.files[0], o.files[1], o.rules, o.calibration, o.publicKey, o.paranoid}, console);
  }
  if (o.files.size() == 2) return shadow(o, console);
  if (!o.golden.empty()) return usage("--golden needs a model and an engine").withHint("tare verify MODEL ENGINE --golden DIR");
  return alone(o, console);
}

} // namespace

llvm::Error shadowRun(const std::string &model, const EngineHandle &engine, const std::vector<Sample> &cases, double gate, bool golden, Console &console, ShadowResult &result) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, console, model);
  CompileOptions options;
  options.model = model;
  auto source = importModel(context, options);
  if (!source) return source.takeError();
  if (auto error = exposeInputs(*source->module)) return error;
  bool masked = source->format == "huggingface";
  double worst = 0;
  const Sample *worstCase = nullptr;
  bool compared = false;
  result.json = {{"gate", gate}, {"cases", Json::array()}};
  for (auto &sample : cases) {
    auto one = runCase(sample, *source->module, engine, masked);
    if (!one) {
      result.json = nullptr;
      return one.takeError();
    }
    result.text += fmt::format("{}: {} elements, {} violations ({:.4f}%), {} changed argmax, largest difference {:.3g}\n", report::escapeTerminal(one->label), report::grouped(one->shadow.elements),
                               one->shadow.violations, 100 * one->shadow.rate(), one->shadow.changedArgmax, one->shadow.largest);
    Json json = {{"case", one->label}, {"shadow", toObject(one->shadow)}};
    if (one->golden) {
      compared = true;
      result.text += fmt::format("  against the case's own outputs: engine {:.4f}% (largest difference {:.3g}), source {:.4f}%\n", 100 * one->engineGolden.rate(), one->engineGolden.largest, 100 * one->sourceGolden.rate());
      json["engine_golden"] = toObject(one->engineGolden), json["source_golden"] = toObject(one->sourceGolden);
    }
    for (auto &note : one->notes) result.text += "  " + report::escapeTerminal(note) + "\n", json["notes"].push_back(note);
    result.json["cases"].push_back(json);
    if (!worstCase || one->delta() > worst) worst = one->delta(), worstCase = &sample;
  }
  result.json["verified"] = worst <= gate;
  result.json["violation_rate_delta"] = worst;
  if (golden && !compared) {
    std::string text = "no case holds an output of this engine: only engine and source were compared";
    result.text += text + "\n", result.json["notes"].push_back(text);
  }
  result.text += fmt::format("violation_rate_delta {:.4f}% (gate {:.4f}%)\n", 100 * worst, 100 * gate);
  if (worst <= gate || !worstCase) return llvm::Error::success();
  auto where = firstDivergence(options, sharedInputs(*worstCase, *source->module, engine));
  std::string node = where ? where->node : "", text = where ? where->text : "the first diverging layer cannot be told: " + failureOf(where.takeError()).message;
  result.json["first_divergence"] = text;
  return fail(ExitCode::Gate, fmt::format("the engine differs from its source: violation_rate_delta {:.4f}% is above the gate of {:.4f}%; {}", 100 * worst, 100 * gate, text))
      .inFile(engine.path).atNode(node).withHint("compile the engine again from this model; if it stays, report the model");
}

void addVerifyCommand(CLI::App &app, Session &session) {
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "verify", "Compare an engine with its source, derive its certificate again, or check its hashes", [o, &session] { return verify(*o, session.console); });
  c->add_option("FILES", o->files, "MODEL ENGINE: shadow run; --certificate ENGINE MODEL; ENGINE: hashes, and its targets against one another")->expected(0, 2)->type_name("");
  c->add_flag("--certificate", o->certificate, "Derive every removal's evidence again from the source");
  c->add_option("--rules", o->rules, "With --certificate: the rules file of the compile")->type_name("FILE");
  c->add_option("--calibration", o->calibration, "With --certificate: the calibration of the compile, when it was too large to be stored")->type_name("PATH");
  c->add_option("--golden", o->golden, "Cases with inputs and expected outputs: .npz, or a folder of .npz or test_data_set_N")->type_name("DIR");
  c->add_option("--gate", o->gate, "Largest violation_rate_delta in percent (default 0.1)")->type_name("PERCENT");
  c->add_option("--public-key", o->publicKey, "The engine must be signed with this Ed25519 key (PEM)")->type_name("FILE");
  c->add_flag("--paranoid", o->paranoid, "Check the SHA-256 of the weights, too (always on for the form with ENGINE alone)");
  c->add_option("--target", o->target, "Only this target: cpu[:LEVEL], cuda[:sm_90] or cuda-emu (default: all that run here, against one another, too)")->type_name("TARGET");
  c->add_option("--device", o->device, "Which GPU, counted from 0 as CUDA_VISIBLE_DEVICES leaves them (default 0)")->type_name("N");
  c->add_option("--seed", o->seed, "Seed of the random inputs without --golden (default 0)")->type_name("N");
}

} // namespace tare::cli
