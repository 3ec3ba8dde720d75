// The compile, top to bottom: import, passes (the report is collected at their borders), kernels, machine code, certificate, engine. In: CompileRequest.
// Out: files and an exit code. Holds: everything that can fail before the engine is replaced does; nothing partial is left behind.
#include "tools/tare/Driver.h"
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/engine/EngineWriter.h"
#include "compiler/import/Import.h"
#include "compiler/report/Collect.h"
#include "compiler/report/Writers.h"
#include "passes/Pipeline.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/OutputFile.h"
#include "tools/tare/Progress.h"
#include "tools/tare/Version.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {

static constexpr Progress::Stage stages[] = {{"import", 5}, {"mark", 1}, {"check", 50}, {"prune", 1}, {"clean", 3}, {"fuse", 2}, {"plan", 1}, {"generate kernels", 5}, {"machine code", 30}, {"write engine", 2}};

/// MLIR text without the weights' bytes; node names stay as locations.
static std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, mlir::OpPrintingFlags().elideLargeElementsAttrs(16).elideLargeResourceString(64).enableDebugInfo(true, false));
  return text + "\n";
}

/// Where the engine came from; deterministic: no time, no directory, no user.
static std::string provenance(const CompileRequest &request, const ImportedModel &model) {
  return nlohmann::ordered_json{{"tare", toolVersion()}, {"llvm", llvmVersion()}, {"model", {{"name", model.name}, {"format", model.format}, {"sha256", model.sha256}}},
                                {"flags", engineFlags(request)}}.dump(2) + "\n";
}

static llvm::Expected<report::Report> runPasses(const CompileRequest &request, ImportedModel &model, DiagnosticCollector &diagnostics, Progress &progress) {
  report::Report report;
  progress.stage(1);
  auto onPhase = [&](Phase phase, mlir::ModuleOp module) {
    if (phase == Phase::Checked) {
      report::ModelInfo info{model.name, model.format, model.sha256, static_cast<int64_t>(model.parameters), model.warnings};
      report = report::collect(module, info, request.options);
    }
    if (phase == Phase::Pruned) report::addPruned(report, module);
    if (phase < Phase::Planned) progress.stage(static_cast<size_t>(phase) + 1);
  };
  if (mlir::failed(runPipeline(*model.module, request.options, onPhase))) return llvm::make_error<Failure>(diagnostics.takeFailure("the pass pipeline"));
  return report;
}

static llvm::Error makeEngine(const CompileRequest &request, ImportedModel &model, const report::Report &report, DiagnosticCollector &diagnostics, Progress &progress) {
  progress.stage(7);
  auto code = emitKernels(*model.module);
  if (!code) return code.takeError();
  progress.stage(8);
  auto sections = compileForLevels(**code, request.options.levels, request.options.threads);
  if (!sections) return sections.takeError();
  progress.stage(9);
  EngineContents contents;
  contents.planned = *model.module;
  contents.code = std::move(*sections);
  contents.configuration = report::toConfiguration(report);
  contents.report = report::toJson(report);
  contents.provenance = provenance(request, model);
  return writeEngine(request.output, contents);
}

llvm::Expected<ExitCode> runCompile(const CompileRequest &request, Console &console) {
  Progress progress(console, stages);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, console, request.options.model);
  progress.stage(0);
  auto model = importModel(context, request.options);
  if (!model) {
    Failure failure = failureOf(model.takeError());
    return llvm::make_error<Failure>(failure);
  }
  if (request.printCacheKey) {
    auto key = cacheKey(request, model->files);
    if (!key) return key.takeError();
    progress.finish();
    console.out(console.json ? nlohmann::ordered_json{{"cache_key", *key}}.dump() + "\n" : *key + "\n");
    return ExitCode::Ok;
  }
  auto report = runPasses(request, *model, diagnostics, progress);
  if (!report) return report.takeError();
  if (request.stopAfter && request.options.stopAfter < Phase::Engine) {
    progress.finish();
    std::string text = printed(*model->module);
    if (request.output.empty()) console.out(text);
    else if (auto error = writeFile(request.output, text)) return error;
    if (request.options.stopAfter >= Phase::Pruned)
      if (auto error = writeOutputs(request, *report, model->files)) return error;
    return ExitCode::Ok;
  }
  if (auto error = writeOutputs(request, *report, model->files)) return error;
  llvm::Error gate = checkFailOn(request, *report);
  if (!gate && !request.checkOnly) gate = makeEngine(request, *model, *report, diagnostics, progress);
  progress.finish();
  for (auto &warning : model->warnings) console.warn(warning);
  if (!request.checkOnly) printSummary(console, request, *report);
  if (console.json) console.out(report::toJson(*report));
  else if (request.checkOnly && request.reports.empty()) console.out(report::toText(*report));
  if (gate) return std::move(gate);
  if (!request.checkOnly) console.note(fmt::format("engine: {}", request.output));
  return ExitCode::Ok;
}

} // namespace tare::cli
