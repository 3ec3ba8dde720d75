// The middle of a compile (Compile.h), top to bottom: passes with the report collected at their borders, kernels, machine code, engine file.
// In: an imported model. Out: a report; an engine. Holds: provenance names no time, directory or user.
#include "tools/tare/Compile.h"
#include "compiler/checks/Certificate.h"
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/codegen/cuda/Emulator.h"
#include "compiler/engine/EngineWriter.h"
#include "compiler/plan/Plan.h"
#include "compiler/report/Collect.h"
#include "compiler/report/Estimates.h"
#include "compiler/report/Writers.h"
#include "passes/Pipeline.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/Driver.h"
#include "tools/tare/Progress.h"
#include "tools/tare/Version.h"
#include <nlohmann/json.hpp>

namespace tare::cli {

static std::string provenance(const CompileOptions &options, const ImportedModel &model, const std::optional<cuda::Program> &cuda) {
  nlohmann::ordered_json json{{"tare", toolVersion()}, {"llvm", llvmVersion()}, {"model", {{"name", model.name}, {"format", model.format}, {"sha256", model.sha256}}},
                              {"flags", engineFlags(options)}};
  if (cuda) json["cuda_compiler"] = cuda->toolkit;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// What graph-short-circuit-layers took out, by source tensor names.
static std::vector<LayerRemoval> removalsOf(mlir::ModuleOp module) {
  std::vector<LayerRemoval> removals;
  auto removed = module->getAttrOfType<mlir::ArrayAttr>("graph.removed");
  if (!removed) return removals;
  for (auto entry : removed.getAsRange<mlir::DictionaryAttr>()) {
    auto text = [&](const char *key) {
      auto value = entry.getAs<mlir::StringAttr>(key);
      return value ? value.str() : std::string();
    };
    removals.push_back({text("name"), text("input_name"), text("output_name")});
  }
  return removals;
}

llvm::Expected<Compiled> runPasses(ImportedModel &model, const CompileOptions &options, DiagnosticCollector &diagnostics, Progress *progress) {
  Compiled compiled;
  nlohmann::json certificate;
  auto stage = [&](size_t index) { if (progress) progress->stage(index); };
  stage(1);
  auto &report = compiled.report;
  bool planned = true; // estimates: memory is that of plans, before and after removals
  auto removesSome = [&] { return llvm::any_of(report.candidates, [](auto &c) { return c.verdict == "pruned"; }); };
  auto addMemory = [&](plan::ProgramOp program) {
    report::addPrunedMemory(report, program);
    if (!removesSome()) report::addFullMemory(report, program);
  };
  auto onPhase = [&](Phase phase, mlir::ModuleOp module) {
    if (phase == Phase::Checked) {
      report::ModelInfo info{model.name, model.format, model.sha256, static_cast<int64_t>(model.parameters), model.warnings};
      report = report::collect(module, info, options);
      certificate = checks::makeCertificate(module, options, model.sha256);
      CompileOptions source = options;
      source.checkPrecision = "dense"; // the full plan is the source's: its checks are dense, and nothing is measured
      if (removesSome() && options.stopAfter > phase) planned = mlir::succeeded(withPlan(module, source, [&](auto program) { report::addFullMemory(report, program); }));
    }
    if (phase == Phase::Pruned) {
      report::addPruned(report, module);
      compiled.removals = removalsOf(module);
      if (planned && options.stopAfter == phase) planned = mlir::succeeded(withPlan(module, options, addMemory));
    }
    if (phase == Phase::Planned) llvm::for_each(module.getOps<plan::ProgramOp>(), addMemory);
    if (phase == Phase::Clean) {
      report::addChecks(report, module);
      if (!report.checks.empty()) certificate["fidelity_checks"] = checks::certifyChecks(module, options);
      if (planned && options.stopAfter < Phase::Planned) planned = mlir::succeeded(withPlan(module, options, addMemory, Phase::Fused));
    }
    if (phase < Phase::Planned) stage(static_cast<size_t>(phase) + 1);
  };
  std::function<void(const std::string &)> working;
  if (progress) working = [progress](const std::string &what) { progress->working(what); };
  if (mlir::failed(runPipeline(*model.module, options, onPhase, working)) || !planned) return llvm::make_error<Failure>(diagnostics.takeFailure("the pass pipeline"));
  compiled.certificate = certificate.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return compiled;
}

llvm::Error makeEngine(ImportedModel &model, const CompileOptions &options, const Compiled &compiled, const std::string &path, DiagnosticCollector &diagnostics, Progress *progress) {
  auto stage = [&](size_t index) { if (progress) progress->stage(index); };
  stage(7);
  std::vector<std::string> levels(options.levels);
  bool stats = llvm::is_contained(levels, cuda::kEmulatorStatsLevel);
  bool emulator = stats || llvm::is_contained(levels, cuda::kEmulatorLevel);
  llvm::erase(levels, cuda::kEmulatorLevel), llvm::erase(levels, cuda::kEmulatorStatsLevel);
  llvm::erase_if(levels, [](llvm::StringRef level) { return level.starts_with("sm_"); });
  std::vector<CodeSection> sections;
  std::string cudaSource;
  if (compiled.cuda) cudaSource = cuda::sourceSection(compiled.cuda->kernels);
  if (emulator) { // before the CPU: it gives the plan the memory that the emulator needs
    auto kernels = cuda::printKernels(*model.module, cuda::precisionOf(options.precision).value_or(cuda::Precision::F32));
    if (!kernels) return kernels.takeError();
    if (progress) progress->working(cuda::kEmulatorLevel);
    auto section = cuda::compileForEmulator(*model.module, *kernels, stats);
    if (!section) return section.takeError();
    sections.push_back(std::move(*section));
    cudaSource = cuda::sourceSection(*kernels);
  }
  stage(8);
  auto working = [&](const std::string &level) { if (progress) progress->working(level); };
  if (!levels.empty()) {
    auto code = codegen::emitKernels(*model.module);
    if (!code) return code.takeError();
    auto made = compileForLevels(**code, levels, options.threads, working);
    if (!made) return made.takeError();
    for (auto &section : llvm::reverse(*made)) sections.insert(sections.begin(), std::move(section));
  }
  stage(9);
  EngineContents contents;
  contents.planned = *model.module;
  contents.code = std::move(sections);
  contents.cudaSource = std::move(cudaSource);
  contents.certificate = compiled.certificate;
  contents.configuration = report::toConfiguration(compiled.report);
  contents.report = report::toJson(compiled.report);
  contents.provenance = provenance(options, model, compiled.cuda);
  contents.cuda = compiled.cuda ? &*compiled.cuda : nullptr;
  // The same formulas as in the report, so that a run, a report and `tare estimate` never contradict each other.
  auto &report = compiled.report;
  contents.fullFlops = Dim::parse(report.full.flops.formula), contents.fullBytes = Dim::parse(report.full.memory.formula);
  contents.flops = Dim::parse(report.pruned.flops.formula), contents.bytes = Dim::parse(report.pruned.memory.formula);
  for (auto &c : report.candidates)
    if (c.verdict == "pruned") contents.prunedLayers.push_back(c.name);
  contents.zeroRate = report.zeroRate();
  // A run reports one number for all its sparse checks: that of the worst.
  for (auto &check : report.checks)
    if (check.form == "sparse" && check.fidelity) contents.fidelity = std::min(contents.fidelity.value_or(100), *check.fidelity);
  contents.signer = compiled.signer;
  return writeEngine(path, contents);
}

llvm::Error compileModule(ImportedModel &model, const CompileOptions &options, const std::string &path, DiagnosticCollector &diagnostics) {
  auto compiled = runPasses(model, options, diagnostics, nullptr);
  if (!compiled) return compiled.takeError();
  return makeEngine(model, options, *compiled, path, diagnostics, nullptr);
}

} // namespace tare::cli
