// tare attach-checks MODEL CHECKS.yaml -o OUT.onnx: a model that has no fidelity checks gets some (spec 6). In: an ONNX model, the checks file, weights. Out: an
// ONNX model that any runtime runs. Holds: the result is imported before it replaces anything, so what is written can be compiled.
#include "compiler/graph/Graph.h"
#include "compiler/import/AttachChecks.h"
#include "compiler/import/Import.h"
#include "compiler/import/OnnxModel.h"
#include "compiler/import/OnnxWriter.h"
#include "compiler/report/Writers.h"
#include "tools/tare/Commands.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {
namespace {

struct Options {
  std::string model, checks, output;
};

/// Imports the file as a compile would: every attached check must have become one, on states [batch, tokens, width].
llvm::Error verified(const std::string &path, llvm::ArrayRef<AttachedCheck> attached, Console &console) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, console, path);
  CompileOptions options;
  options.model = path;
  auto model = importOnnx(context, options);
  if (!model) return model.takeError();
  size_t found = 0;
  llvm::Error error = llvm::Error::success();
  model->module->walk([&](graph::FidelityCheckOp check) {
    ++found;
    Dims h = graph::dimsOf(check.getH());
    if (h.size() == 3 || error) return;
    std::string node = graph::nodeName(check.getLoc());
    error = refuse(fmt::format("the input of the checked layer has {} dimensions, and a check needs three: batch, tokens, width", h.size())).atNode(node);
  });
  if (!error && found < attached.size()) return fail(ExitCode::Internal, fmt::format("{} of {} checks are there after import", found, attached.size()));
  return error;
}

llvm::Expected<ExitCode> attach(const Options &o, Console &console) {
  if (std::filesystem::is_directory(o.model))
    return refuse("attach-checks writes ONNX, and this model is a Hugging Face folder").inFile(o.model).withHint("export it to ONNX first (`optimum-cli export onnx --model FOLDER OUT`, or torch.onnx.export), then attach the checks to the .onnx file");
  if (auto error = checkWritable("-o", o.output, {o.model, o.checks})) return error;
  auto text = readFile(o.checks, uint64_t(1) << 21);
  if (!text) return text.takeError();
  auto entries = parseChecksFile(*text, o.checks);
  if (!entries) return entries.takeError();
  for (auto &entry : *entries)
    if (auto error = checkWritable("-o", o.output, {entry.weights})) return error;
  auto model = loadOnnx(o.model);
  if (!model) return model.takeError();
  auto attached = attachChecks((*model)->proto, *entries, o.checks);
  if (!attached) return attached.takeError();
  if (auto error = (*model)->file->stillSame()) return error;
  if (auto error = writeOnnx((*model)->proto, o.model, o.output, [&](const std::string &path) -> llvm::Error {
        auto error = verified(path, *attached, console);
        if (!error) return error;
        return llvm::make_error<Failure>(failureOf(std::move(error)).inFile(o.model)); // not the temporary file's name
      })) return error;
  auto list = nlohmann::ordered_json::array();
  for (auto &c : *attached) {
    list.push_back({{"name", c.name}, {"layer", c.layer}, {"heads", c.heads}, {"rank", c.rank}, {"width", c.width}, {"columns", c.columns}});
    console.note(report::escapeTerminal(fmt::format("{}: {} heads of rank {} on {} ({} -> {})", c.name, c.heads, c.rank, c.layer, c.width, c.columns)));
  }
  if (console.json) console.out(nlohmann::ordered_json{{"output", o.output}, {"checks", list}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  else console.note(fmt::format("{} checks attached: {}", attached->size(), o.output));
  return ExitCode::Ok;
}

} // namespace

void addAttachChecksCommand(CLI::App &app, Session &session) {
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "attach-checks", "Add fidelity checks to an ONNX model that has none", [o, &session] { return attach(*o, session.console); });
  c->add_option("MODEL", o->model, "An .onnx file")->required()->type_name("");
  c->add_option("CHECKS", o->checks, "YAML: which layers, and where the tensors W, p, tau, E are (docs/checks.md)")->required()->type_name("");
  c->add_option("-o,--output", o->output, "The ONNX file to write; external data stays beside it")->required()->type_name("FILE");
}

} // namespace tare::cli
