// Targets by name (Targets.h). A target's outputs are compared by the rule of the shadow run, with the tolerance of the precision that its kernels compute in.
#include "tools/tare/Targets.h"
#include "compiler/report/Writers.h"
#include "runtime/engine_generated.h"
#include "tools/tare/Commands.h"
#include "tools/tare/Numbers.h"
#include "tools/tare/Shadow.h"
#include "tools/tare/TargetNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

namespace tare::cli {

llvm::Expected<std::string> parseRunTarget(const std::string &text) {
  static const llvm::StringRef levels[] = {"x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"};
  llvm::StringRef rest = text;
  if (text.empty() || text == "cpu" || text == "cuda" || text == "cuda-emu") return text;
  if (rest.consume_front("cpu:")) {
    if (auto error = checkWord("--target " + text + ": level", rest, levels)) return error;
    return text;
  }
  if (rest.consume_front("cuda:") && (rest.consume_front("sm_") || rest.consume_front("compute_"))) {
    rest.consume_back("a");
    if (!rest.empty() && rest.size() < 5 && llvm::all_of(rest, llvm::isDigit)) return text;
  }
  std::string meant = meantTarget(text);
  return usage(fmt::format("--target '{}' is no target that an engine runs on", text)).withHint((meant.empty() ? "" : "did you mean " + meant + "? ") + "one of cpu, cpu:" + std::string("x86-64-v3") + " (any level), cuda, cuda:sm_90 (any architecture of the engine), cuda-emu");
}

llvm::Expected<int> parseDevice(const std::string &text, const std::string &target) {
  if (text.empty()) return 0;
  if (!target.empty() && target != "cuda" && !llvm::StringRef(target).starts_with("cuda:"))
    return usage(fmt::format("--device {}: it names a GPU, and --target {} runs on the CPU", text, target)).withHint("leave it out, or add --target cuda");
  auto number = parseCount("--device", text, 0, 1023);
  if (!number) return number.takeError();
  return static_cast<int>(*number);
}

llvm::Error usesDevice(const EngineHandle &engine, const std::string &device, bool all) {
  llvm::StringRef level = tare_engine_level(engine.engine.get());
  if (device.empty() || level.empty() || level.starts_with("cuda:")) return llvm::Error::success();
  auto plan = engine.section("plan");
  if (!plan) return plan.takeError();
  if (!fb::GetPlan(plan->data())->cuda()) return usage(fmt::format("--device {}: it names a GPU, and the engine has no code for GPUs", device)).inFile(engine.path).withHint("compile again with --target cuda:sm_XX, or leave it out");
  if (all) return llvm::Error::success();
  return usage(fmt::format("--device {}: it names a GPU, and the engine runs its code for {} unless a GPU is asked for", device, level.str())).inFile(engine.path).withHint("add --target cuda");
}

std::string precisionOf(const EngineHandle &engine) {
  if (!llvm::StringRef(tare_engine_level(engine.engine.get())).starts_with("cuda")) return "f32"; // CPUs compute in f32 whatever is asked for
  auto flags = engine.flags();
  if (!flags) return llvm::consumeError(flags.takeError()), "f32";
  return flags->contains("precision") && (*flags)["precision"].is_string() ? (*flags)["precision"].get<std::string>() : "f32";
}

/// What an engine has: its CPU levels count as one, of which the machine takes the best.
static std::vector<std::string> targetsOf(const fb::Plan &plan) {
  std::vector<std::string> names;
  bool cpu = false, emulator = false;
  for (auto *code : *plan.code()) (code->level()->str() == "cuda-emu" ? emulator : cpu) = true;
  if (cpu) names.push_back("cpu");
  if (plan.cuda()) names.push_back("cuda");
  if (emulator) names.push_back("cuda-emu");
  return names;
}

/// Inputs of the engine among the arrays of a case; for fidelity checks once more with anchors, when the case has none: near them and away from them other code runs.
static std::vector<ArrayMap> inputsOf(const EngineHandle &engine, const Sample &sample, const fb::Checks *checks) {
  std::vector<ArrayMap> inputs(1);
  const Array *required = nullptr;
  std::string anchorsName;
  auto infos = engine.inputs();
  for (size_t i = 0; i < infos.size(); i++) {
    auto found = sample.arrays.find(infos[i].name);
    if (checks && i == checks->anchors()) anchorsName = infos[i].name;
    if (found == sample.arrays.end()) continue;
    inputs[0].insert(*found);
    if (!infos[i].optional && found->second.shape.size() >= 2) required = &found->second;
  }
  if (anchorsName.empty() || inputs[0].count(anchorsName) || !required) return inputs;
  auto batch = required->shape[0];
  std::vector<int32_t> anchors;
  for (int64_t b = 0; b < batch; b++) anchors.insert(anchors.end(), {static_cast<int32_t>(required->shape[1] / 2), static_cast<int32_t>(std::max<int64_t>(required->shape[1] - 1, 0)), -1});
  inputs.push_back(inputs[0]);
  inputs[1][anchorsName] = Array{TARE_I32, {batch, 3}, std::string(reinterpret_cast<const char *>(anchors.data()), anchors.size() * sizeof(int32_t))};
  return inputs;
}

llvm::Expected<TargetComparison> compareTargets(const EngineHandle &engine, const std::vector<Sample> &cases) {
  TargetComparison result;
  auto section = engine.section("plan");
  if (!section) return section.takeError();
  const fb::Plan &plan = *fb::GetPlan(section->data()); // validated when the engine was opened
  std::vector<std::string> names = targetsOf(plan);
  if (names.size() < 2) return result;
  std::vector<ArrayMap> requests;
  for (auto &sample : cases)
    for (auto &inputs : inputsOf(engine, sample, plan.checks())) requests.push_back(inputs);
  std::vector<ArrayMap> first; // outputs per request of the first target that runs
  std::string firstName;
  for (auto &name : names) {
    auto opened = EngineHandle::open(engine.path, name, false, "", engine.cudaDevice);
    if (!opened) return opened.takeError();
    auto request = Request::create(*opened, 0, false);
    if (!request) {
      std::string why = failureOf(request.takeError()).message;
      result.text += fmt::format("target {}: not run here: {}\n", name, report::escapeTerminal(why));
      result.json.push_back({{"target", name}, {"ran", false}, {"why", why}});
      continue;
    }
    Comparison all;
    std::string precision = precisionOf(*opened);
    std::vector<ArrayMap> outputs;
    for (size_t i = 0; i < requests.size(); i++) {
      auto one = runEngine(*opened, requests[i]);
      if (!one) return one.takeError();
      for (auto &[output, array] : *one) {
        if (first.empty()) continue;
        const Array &reference = first[i].find(output)->second;
        if (reference.shape != array.shape) return fail(ExitCode::Gate, fmt::format("output {}: {} and {} give different shapes", output, firstName, name)).inFile(engine.path).ofTensor(output);
        all.add(compareArrays(reference, array, precision));
      }
      outputs.push_back(std::move(*one));
    }
    const char *level = tare_engine_level(opened->engine.get());
    if (first.empty()) {
      first = std::move(outputs), firstName = name;
      result.text += fmt::format("target {}: {}\n", name, level);
      result.json.push_back({{"target", name}, {"ran", true}, {"code", level}});
      continue;
    }
    result.text += fmt::format("target {}: {}, against {}: {} elements, {} violations ({:.4f}%), {} changed argmax, largest difference {:.3g}\n", name, level, firstName,
                               report::grouped(all.elements), all.violations, 100 * all.rate(), all.changedArgmax, all.largest);
    result.json.push_back({{"target", name}, {"ran", true}, {"code", level}, {"against", firstName}, {"elements", all.elements}, {"violations", all.violations},
                           {"changed_argmax", all.changedArgmax}, {"max_difference", all.largest}, {"violation_rate", all.rate()}});
    result.worst = std::max(result.worst, all.rate());
  }
  return result;
}

} // namespace tare::cli
