// --dry-run: the coverage table of a model. In: an ONNX file. Out: one line per op with versions and node counts on stdout; exit 3 when an op is missing.
// Holds: nothing is written, external data is not read.
#include "compiler/import/Import.h"
#include "compiler/import/OpTable.h"
#include "compiler/report/Writers.h"
#include "tools/tare/Driver.h"
#include "tools/tare/Version.h"
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {

using Json = nlohmann::ordered_json;

llvm::Expected<ExitCode> runDryRun(const CompileRequest &request, Console &console) {
  std::error_code error;
  if (std::filesystem::is_directory(request.options.model, error)) {
    // A folder has no ops of its own; whether its family is covered is what the importer answers.
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    auto model = importModel(context, request.options);
    if (!model) return model.takeError();
    console.out(console.json ? Json{{"model", model->name}, {"format", model->format}, {"supported", true}}.dump() + "\n" : model->name + ": a Hugging Face folder of a supported family\n");
    return ExitCode::Ok;
  }
  auto coverage = importCoverage(request.options.model);
  if (!coverage) return coverage.takeError();
  Json ops = Json::array();
  std::string text = fmt::format("  {:<14} {:<32} {:>7} {:>7}  {}\n", "domain", "op", "version", "nodes", "covered"), missing;
  for (auto &op : *coverage) {
    std::string domain = op.domain.empty() ? "ai.onnx" : report::escapeTerminal(op.domain), name = report::escapeTerminal(op.name);
    text += fmt::format("  {:<14} {:<32} {:>7} {:>7}  {}\n", domain, name, op.version, op.nodes, op.supported ? "yes" : "NO: " + report::escapeTerminal(op.why));
    ops.push_back({{"domain", op.domain}, {"op", op.name}, {"version", op.version}, {"nodes", op.nodes}, {"supported", op.supported}, {"why", op.why.empty() ? Json(nullptr) : Json(op.why)}});
    if (!op.supported) missing += (missing.empty() ? "" : ", ") + domain + "." + name + " (" + op.why + ")";
  }
  if (!missing.empty() && !console.json) console.out(text);
  if (!missing.empty()) return refuse("ops that are not supported: " + missing).inFile(request.options.model).withHint("`tare --supported` lists what is");
  console.out(console.json ? Json{{"ops", ops}, {"supported", true}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text);
  return ExitCode::Ok;
}

std::string supportedText(bool json) {
  Json ops = Json::array();
  std::string text = fmt::format("{:<14} {:<34} versions (opsets {} to {}, IR {} to {})\n", "domain", "op", kOldestOpset, kNewestOpset, kOldestIr, kNewestIr);
  for (auto &row : opTable()) {
    std::string versions;
    Json list = Json::array();
    for (int since : row.since) {
      if (since > row.newest) continue;
      versions += (versions.empty() ? "" : ", ") + std::to_string(since);
      list.push_back(since);
    }
    text += fmt::format("{:<14} {:<34} {}\n", *row.domain ? row.domain : "ai.onnx", row.name, versions);
    ops.push_back({{"domain", row.domain}, {"op", row.name}, {"versions", list}});
  }
  return json ? Json{{"ops", ops}}.dump(2) + "\n" : text;
}

} // namespace tare::cli
