// The certificate against its source (Certificate.h). In: an engine's certificate section, a model. Out: agreement on stdout, or exit 4 naming the first difference.
// Holds: the model is only imported and marked here; every verdict is derived again by compiler/checks' independent checker.
#include "tools/tare/Certificate.h"
#include "compiler/checks/Certificate.h"
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Pipeline.h"
#include "tools/tare/Console.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/EngineHandle.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {

llvm::Expected<ExitCode> verifyCertificateOf(const CertificateRequest &request, Console &console) {
  auto engine = EngineHandle::open(request.engine, "", request.paranoid, request.publicKey);
  if (!engine) return engine.takeError();
  auto text = engine->section("certificate");
  if (!text) return text.takeError();
  // Discarded instead of thrown: what is not JSON is refused by the verifier's own rules.
  auto certificate = nlohmann::json::parse(*text, nullptr, false);
  if (certificate.is_discarded()) return refuse("the certificate is no JSON").inFile(request.engine);
  if (request.rules.empty()) {
    auto provenance = engine->section("provenance");
    if (!provenance) return provenance.takeError();
    auto origin = nlohmann::json::parse(*provenance, nullptr, false);
    if (origin.is_object() && origin.value("flags", "").find("\nrules=1\n") != std::string::npos)
      return usage("the engine was compiled with a rules file, which says where its layers are").inFile(request.engine).withHint("give the same file: tare verify --certificate ENGINE MODEL --rules FILE");
  }
  CompileOptions options;
  options.model = request.model, options.rulesFile = request.rules, options.stopAfter = Phase::Marked;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, console, request.model);
  auto model = importModel(context, options);
  if (!model) return model.takeError();
  if (mlir::failed(runPipeline(*model->module, options))) return llvm::make_error<Failure>(diagnostics.takeFailure("marking"));
  llvm::Error error = checks::verifyCertificate(certificate, *model, request.calibration);
  if (error) {
    Failure failure = failureOf(std::move(error));
    if (failure.file.empty()) failure.inFile(request.engine);
    return llvm::make_error<Failure>(failure);
  }
  size_t layers = certificate.contains("layers") ? certificate["layers"].size() : 0;
  console.out(console.json ? nlohmann::ordered_json{{"verified", true}, {"layers", layers}}.dump() + "\n"
                           : fmt::format("the certificate holds: {} layers derived again from {}, verdicts, counts, hashes and measurements agree\n", layers, request.model));
  return ExitCode::Ok;
}

} // namespace tare::cli
