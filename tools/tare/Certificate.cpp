// The certificate against its source (Certificate.h). In: an engine's certificate section, a model. Out: agreement on stdout, or exit 4 naming the first difference.
// Holds: the model is only imported and marked here; every verdict is derived again by compiler/checks' independent checker.
#include "tools/tare/Certificate.h"
#include "compiler/checks/Certificate.h"
#include "compiler/graph/Graph.h"
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Pipeline.h"
#include "runtime/engine_generated.h"
#include "tools/tare/Console.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/EngineHandle.h"
#include "tools/tare/Numbers.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace tare::cli {

using nlohmann::json;

static std::vector<checks::PlannedCheck> plannedChecks(const std::string &section) {
  std::vector<checks::PlannedCheck> planned;
  const fb::Plan &plan = *fb::GetPlan(section.data()); // validated when the engine was opened
  if (!plan.checks()) return planned;
  for (auto *check : *plan.checks()->items()) planned.push_back({check->precision()->str(), check->heads(), check->rank(), plan.checks()->window()});
  return planned;
}

/// The certified removals, so that checks see the states that they saw in the compile.
static void removeLayers(mlir::ModuleOp module, const json &certificate) {
  std::set<std::string> pruned;
  for (auto &layer : certificate.at("layers"))
    if (layer.at("verdict") == "pruned") pruned.insert(layer.at("name").get<std::string>());
  llvm::SmallVector<graph::LayerOp> layers; // inner ones first
  module.walk([&](graph::LayerOp layer) { layers.push_back(layer); });
  for (graph::LayerOp layer : layers) {
    if (!pruned.count(layer.getName().str())) continue;
    layer.getResult().replaceAllUsesWith(layer.getInput());
    layer.erase();
  }
}

static llvm::Error verifyChecks(const json &certificate, mlir::ModuleOp marked, const EngineHandle &engine, const CertificateRequest &request, const json &flags, DiagnosticCollector &diagnostics) {
  auto plan = engine.section("plan");
  if (!plan) return plan.takeError();
  if (certificate.contains("fidelity_checks") && flags.contains("checks")) { // the settings that the evidence was judged by
    const json &said = certificate["fidelity_checks"], &asked = flags["checks"];
    for (auto [key, flag] : {std::pair("fidelity_threshold", "fidelity"), {"window", "window"}, {"forced", "precision"}})
      if (said.value(key, json()) != asked.value(flag, json()))
        return fail(ExitCode::Gate, fmt::format("the certificate does not hold: {} of its fidelity checks is {}, the engine was compiled with {}", key, said.value(key, json()).dump(), asked.value(flag, json()).dump()));
  }
  CompileOptions options;
  if (flags.contains("fold_limit") && flags["fold_limit"].is_number_unsigned()) options.foldLimit = flags["fold_limit"];
  if (flags.contains("disabled_passes"))
    for (auto &pass : flags["disabled_passes"])
      if (pass.is_string()) options.disabledPasses.push_back(pass);
  removeLayers(marked, certificate);
  if (mlir::failed(bringToChecks(marked, options))) return llvm::make_error<Failure>(diagnostics.takeFailure("cleaning"));
  return checks::verifyFidelityChecks(certificate, marked, plannedChecks(*plan), request.calibration, physicalCores());
}

llvm::Expected<ExitCode> verifyCertificateOf(const CertificateRequest &request, Console &console) {
  auto engine = EngineHandle::open(request.engine, "", request.paranoid, request.publicKey);
  if (!engine) return engine.takeError();
  auto text = engine->section("certificate");
  if (!text) return text.takeError();
  // Discarded instead of thrown: what is not JSON is refused by the verifier's own rules.
  auto certificate = json::parse(*text, nullptr, false);
  if (certificate.is_discarded()) return refuse("the certificate is no JSON").inFile(request.engine);
  auto flags = engine->flags();
  if (!flags) return flags.takeError();
  if (request.rules.empty() && flags->value("rules", json()) == true)
    return usage("the engine was compiled with a rules file, which says where its layers are").inFile(request.engine).withHint("give the same file: tare verify --certificate ENGINE MODEL --rules FILE");
  CompileOptions options;
  options.model = request.model, options.rulesFile = request.rules, options.stopAfter = Phase::Marked;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, console, request.model);
  auto model = importModel(context, options);
  if (!model) return model.takeError();
  if (mlir::failed(runPipeline(*model->module, options))) return llvm::make_error<Failure>(diagnostics.takeFailure("marking"));
  llvm::Error error = checks::verifyCertificate(certificate, *model, request.calibration);
  if (!error) error = verifyChecks(certificate, *model->module, *engine, request, *flags, diagnostics);
  if (error) {
    Failure failure = failureOf(std::move(error));
    if (failure.file.empty()) failure.inFile(request.engine);
    return llvm::make_error<Failure>(failure);
  }
  size_t layers = certificate["layers"].size(), checks = certificate.contains("fidelity_checks") ? certificate["fidelity_checks"]["checks"].size() : 0;
  console.out(console.json ? nlohmann::ordered_json{{"verified", true}, {"layers", layers}, {"checks", checks}}.dump() + "\n"
                           : fmt::format("the certificate holds: {} layers and {} fidelity checks derived again from {}, verdicts, counts, hashes and measurements agree\n", layers, checks, request.model));
  return ExitCode::Ok;
}

} // namespace tare::cli
