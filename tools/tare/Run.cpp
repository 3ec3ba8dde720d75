// tare run ENGINE: one request. In: an engine and arrays named as its inputs (.npz). Out: arrays named as its outputs (--outputs), a summary or one JSON object on
// stdout. Holds: missing, extra or misshapen inputs are one clear error; outputs keep the engine's dtypes.
#include "compiler/report/Writers.h"
#include "tools/tare/Commands.h"
#include "tools/tare/EngineHandle.h"
#include "tools/tare/Fidelity.h"
#include "tools/tare/Numbers.h"
#include "tools/tare/OutputFile.h"
#include "tools/tare/Targets.h"
#include "tools/tare/TextInput.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {
namespace {

using Json = nlohmann::ordered_json;
struct Options {
  std::string engine, inputs, text, outputs, threads, target, device, profile, metrics, fetch, publicKey;
  bool paranoid = false, measure = false;
};

std::string shapeText(const std::vector<int64_t> &shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// All problems of the inputs at once: names that are missing, names that the engine does not have.
llvm::Error checkNames(const EngineHandle &engine, const ArrayMap &arrays, const std::string &file) {
  std::string missing, extra, known;
  auto inputs = engine.inputs();
  for (auto &input : inputs) {
    if (!input.optional && !arrays.count(input.name)) missing += (missing.empty() ? "" : ", ") + std::string(input.name);
    known += (known.empty() ? "" : ", ") + std::string(input.name) + (input.optional ? " (optional)" : "");
  }
  for (auto &[name, array] : arrays)
    if (llvm::none_of(inputs, [&](auto &i) { return name == i.name; })) extra += (extra.empty() ? "" : ", ") + name;
  if (missing.empty() && extra.empty()) return llvm::Error::success();
  std::string message = missing.empty() ? "" : "missing inputs: " + missing;
  if (!extra.empty()) message += (message.empty() ? "" : "; ") + ("arrays that are no inputs: " + extra);
  return refuse(message).inFile(file).withHint("the engine's inputs are: " + known);
}

llvm::Expected<std::vector<std::string>> outputNames(const EngineHandle &engine, const std::string &fetch) {
  std::vector<std::string> names;
  for (auto &output : engine.outputs()) names.push_back(output.name);
  if (fetch.empty()) return names;
  std::vector<llvm::StringRef> known(names.begin(), names.end());
  auto wanted = parseWords("--fetch", fetch, known);
  if (!wanted) return wanted.takeError();
  return *wanted;
}

/// Smallest, largest and mean of a float32 output, for a person.
std::string glance(const Array &array) {
  if (array.dtype != TARE_F32 || array.bytes.empty()) return "";
  double low = INFINITY, high = -INFINITY, sum = 0;
  size_t count = array.bytes.size() / sizeof(float), finite = 0;
  for (size_t i = 0; i < count; i++) {
    float value;
    std::memcpy(&value, array.bytes.data() + i * sizeof(float), sizeof(float));
    if (!std::isfinite(value)) continue;
    low = std::min<double>(low, value), high = std::max<double>(high, value), sum += value, finite++;
  }
  std::string text = finite ? fmt::format("  min {:.5g}  max {:.5g}  mean {:.5g}", low, high, sum / static_cast<double>(finite)) : "";
  return text + (finite == count ? "" : fmt::format("  not finite: {}", count - finite));
}

/// What the fidelity checks did, for a person; empty when there are none.
std::string describeChecks(const tare_check_stats &stats) {
  if (stats.evaluations_dense == 0) return "";
  std::string text = fmt::format("fidelity checks: {} of {} token rows evaluated, {} anchors hit", stats.evaluations_sparse, stats.evaluations_dense, stats.anchor_hits);
  if (stats.flops_saved) text += fmt::format(", {} FLOPs saved, about {:.2f} ms", report::readableCount(stats.flops_saved), stats.milliseconds_saved);
  return text + (stats.fidelity_score < 0 ? "" : fmt::format(", fidelity {:.1f}", stats.fidelity_score));
}

/// The keys of cli.md that speak of fidelity checks.
void addChecks(Json &object, const tare_check_stats &stats, const tare_check_memory &memory, const std::optional<MeasuredFidelity> &measured) {
  object["anchor_hits"] = stats.anchor_hits;
  object["fidelity_score"] = stats.fidelity_score < 0 ? Json(nullptr) : Json(stats.fidelity_score);
  if (measured && stats.checks > 0) {
    auto score = measured->score();
    object["fidelity_score"] = score ? Json(*score) : Json(nullptr);
    if (!score) object["why"] = "no token was evaluated";
    object["fidelity"] = toObject(*measured);
  } else if (stats.fidelity_score < 0)
    object["why"] = stats.evaluations_dense == 0 ? "the engine has no fidelity checks" : stats.checks == 0 ? "the checks run in dense form: there is nothing to compare them with" : "not measured at compile";
  object["compute_savings"] = {{"flops", stats.flops_saved}, {"ms_estimated", stats.milliseconds_saved}};
  object["check_evaluations"] = {{"dense", stats.evaluations_dense}, {"sparse", stats.evaluations_sparse}};
  object["check_memory"] = {{"weight_bytes", memory.weight_bytes}, {"run_bytes", memory.run_bytes}};
}

llvm::Expected<ExitCode> run(const Options &o, Console &console) {
  if (o.inputs.empty() == o.text.empty()) return usage(o.text.empty() ? "neither --inputs nor --text is given" : "--inputs and --text exclude each other").withHint("give one of them: --inputs IN.npz, or --text FILE for a byte-level model");
  auto level = parseRunTarget(o.target);
  if (!level) return level.takeError();
  auto device = parseDevice(o.device, o.target);
  if (!device) return device.takeError();
  int threads = 0;
  if (!o.threads.empty()) {
    auto count = parseCount("--threads", o.threads, 1, 256);
    if (!count) return count.takeError();
    threads = static_cast<int>(*count);
  }
  for (auto &[flag, path] : {std::pair("--outputs", &o.outputs), std::pair("--profile", &o.profile), std::pair("--metrics", &o.metrics)})
    if (!path->empty())
      if (auto error = checkWritable(flag, *path, {o.engine, o.inputs.empty() ? o.text : o.inputs})) return error;
  auto engine = EngineHandle::open(o.engine, *level, o.paranoid, o.publicKey, *device);
  if (!engine) return engine.takeError();
  if (auto error = usesDevice(*engine, o.device)) return error;
  auto names = outputNames(*engine, o.fetch);
  if (!names) return names.takeError();
  const std::string &source = o.text.empty() ? o.inputs : o.text;
  auto arrays = o.text.empty() ? readNpz(o.inputs) : textInputs(*engine, o.text);
  if (!arrays) return arrays.takeError();
  if (auto error = checkNames(*engine, *arrays, source)) return error;
  auto inputs = engine->inputs();
  auto request = Request::create(*engine, threads, !o.profile.empty());
  if (!request) return request.takeError();
  for (auto &[name, array] : *arrays)
    if (auto error = request->set(name, array)) {
      Failure failure = failureOf(std::move(error));
      auto known = llvm::find_if(inputs, [&](auto &i) { return name == i.name; });
      if (known->dtype != static_cast<tare_dtype>(array.dtype)) failure.withHint(fmt::format("convert the array: {}.astype(numpy.{})", name, dtypeName(static_cast<uint8_t>(known->dtype)).str()));
      return llvm::make_error<Failure>(failure.inFile(source).ofTensor(name));
    }
  if (auto error = request->request(*names)) return error;
  bool takesAnchors = llvm::any_of(inputs, [](auto &i) { return i.name == llvm::StringRef("anchors"); });
  if (o.measure && takesAnchors) {
    if (!arrays->count("anchors")) return usage("--measure-fidelity compares the sparse form with the dense one, and without anchors there is no sparse form").withHint("add the array 'anchors' (int32 [batch, A], A may be 0) to the inputs, or give a text with --text");
    if (auto error = request->traceChecks()) return error;
  }
  if (auto error = request->run()) return error;

  ArrayMap results;
  for (auto &name : *names) {
    auto array = request->output(name);
    if (!array) return array.takeError();
    results[name] = std::move(*array);
  }
  auto estimate = request->estimate();
  if (!estimate) return estimate.takeError();
  auto stats = request->checkStats();
  if (!stats) return stats.takeError();
  auto memory = request->checkMemory();
  if (!memory) return memory.takeError();
  std::optional<MeasuredFidelity> measured;
  if (o.measure && takesAnchors) {
    auto found = measureFidelity(*engine, *request, *arrays, results, threads);
    if (!found) return found.takeError();
    measured = std::move(*found);
    if (auto score = measured->score()) stats->fidelity_score = *score;
  }
  if (!o.outputs.empty())
    if (auto error = writeNpz(o.outputs, results)) return error;
  if (!o.profile.empty())
    if (auto error = writeFile(o.profile, request->profile())) return error;
  if (!o.metrics.empty())
    if (auto error = writeFile(o.metrics, request->metrics())) return error;

  if (!console.json) {
    std::string text;
    for (auto &name : *names) text += fmt::format("{} {} {}{}\n", report::escapeTerminal(name), dtypeName(results[name].dtype).str(), shapeText(results[name].shape), glance(results[name]));
    console.out(text);
    console.note(describe(*estimate) + fmt::format(", code {}", tare_engine_level(engine->engine.get())));
    if (std::string checks = describeChecks(*stats); !checks.empty()) console.note(checks);
    if (measured && stats->checks > 0)
      for (auto &line : describeFidelity(*measured)) console.note(line);
    else if (o.measure)
      console.note("nothing to measure: the engine has no sparse fidelity checks");
    return ExitCode::Ok;
  }
  Json outputs = Json::object();
  for (auto &name : *names) outputs[name] = {{"dtype", dtypeName(results[name].dtype).str()}, {"shape", results[name].shape}};
  Json object = {{"outputs", outputs},
                 {"compute_estimation", {{"full", {{"flops", estimate->full_flops}, {"memory_bytes", estimate->full_memory_bytes}}},
                                         {"pruned", {{"flops", estimate->flops}, {"memory_bytes", estimate->memory_bytes}}}}},
                 {"zero_rate", estimate->zero_rate}, {"mode", "pruned"}, {"isa", tare_engine_level(engine->engine.get())}};
  addChecks(object, *stats, *memory, measured);
  console.out(object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return ExitCode::Ok;
}

} // namespace

void addRunCommand(CLI::App &app, Session &session) {
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "run", "Run an engine once on arrays from a .npz file", [o, &session] { return run(*o, session.console); });
  c->add_option("ENGINE", o->engine, "An engine made by `tare compile`: it holds machine code, run only what you trust")->required()->type_name("");
  c->add_option("--inputs", o->inputs, "Arrays named as the engine's inputs")->type_name("IN.npz");
  c->add_option("--text", o->text, "A text for a byte-level model: token = byte; its anchors steer the fidelity checks")->type_name("FILE");
  c->add_flag("--measure-fidelity", o->measure, "Run the checks in dense form, too, and compare: bits per head, outputs");
  c->add_option("--outputs", o->outputs, "Write the outputs under their names")->type_name("OUT.npz");
  c->add_option("--fetch", o->fetch, "Only these outputs (comma-separated): what no other needs is not computed")->type_name("NAMES");
  c->add_option("--threads", o->threads, "Default: the physical cores the process may use")->type_name("N");
  c->add_option("--target", o->target, "cpu[:LEVEL], cuda[:sm_90] or cuda-emu (default: the CPU, when the engine has code for it)")->type_name("TARGET");
  c->add_option("--device", o->device, "Which GPU, counted from 0 as CUDA_VISIBLE_DEVICES leaves them (default 0)")->type_name("N");
  c->add_option("--profile", o->profile, "Write the time of every step as Chrome trace")->type_name("TRACE.json");
  c->add_option("--metrics", o->metrics, "Write metrics in Prometheus text format")->type_name("FILE");
  c->add_option("--public-key", o->publicKey, "The engine must be signed with this Ed25519 key (PEM)")->type_name("FILE");
  c->add_flag("--paranoid", o->paranoid, "Check the SHA-256 of the weights, too");
}

} // namespace tare::cli
