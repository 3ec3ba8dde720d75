// What `tare compile` and `tare check` do, top to bottom: import, cache, passes, reports, gates, engine. In: CompileRequest. Out: files and an exit code.
// Holds: reports are written before the engine; a failed gate leaves no engine and the old one untouched; nothing partial is left behind.
#include "tools/tare/Driver.h"
#include "compiler/checks/Calibration.h"
#include "compiler/engine/AtomicFile.h"
#include "compiler/engine/Signing.h"
#include "compiler/report/Estimates.h"
#include "compiler/report/Writers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Pipeline.h"
#include "tools/tare/Cache.h"
#include "tools/tare/Compile.h"
#include "tools/tare/CompileCuda.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/Interrupt.h"
#include "tools/tare/OutputFile.h"
#include "tools/tare/Progress.h"
#include "tools/tare/RandomInputs.h"
#include "tools/tare/Verify.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/GlobPattern.h"
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {

static constexpr Progress::Stage stages[] = {{"import", 5}, {"mark layers", 1}, {"check layers", 50}, {"prune", 1}, {"clean, measure fidelity checks", 20}, {"fuse", 2}, {"plan", 1}, {"generate kernels", 5}, {"machine code", 30}, {"write engine", 2}};

/// MLIR text without the weights' bytes; node names stay as locations.
static std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, mlir::OpPrintingFlags().elideLargeElementsAttrs(16).elideLargeResourceString(64).enableDebugInfo(true, false));
  return text + "\n";
}

/// The report on stdout in the form that was asked for; with a failed gate the error is a key of the same object.
static void printReport(const CompileRequest &request, Console &console, const report::Report &report, const Failure *gate) {
  if (console.json) {
    auto json = nlohmann::ordered_json::parse(report::toJson(report));
    if (gate) json["error"] = nlohmann::ordered_json::parse(renderFailureJson(*gate))["error"];
    console.out(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (request.checkOnly && request.reports.empty()) {
    console.out(report::toText(report));
  }
}

/// A compile always, a check when its report is not on the screen.
static void summarise(const CompileRequest &request, Console &console, const report::Report &report) {
  if (!request.checkOnly || !request.reports.empty()) printSummary(console, request, report);
}

/// Everything beside the engine.
static llvm::Error writeAll(const CompileRequest &request, const Compiled &compiled, const std::vector<std::string> &filesRead) {
  if (!request.emitOnnx.empty())
    if (auto error = emitPrunedOnnx(request.options.model, request.emitOnnx, compiled.removals)) return error;
  return writeOutputs(request, compiled.report, filesRead);
}

/// The calibration is read here once before the passes do: what is wrong with it keeps its own file, tensor and exit code, and ids that no table has are
/// refused instead of making every check fail.
static llvm::Error checkCalibration(const CompileOptions &options, mlir::ModuleOp module) {
  if (options.calibration.empty()) return llvm::Error::success();
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  auto calibration = checks::loadCalibration(main, options);
  if (!calibration) return calibration.takeError();
  auto bounds = report::idBounds(module);
  for (size_t n = 0; n < calibration->samples.size(); n++)
    for (unsigned i = 0; i < main.getNumArguments(); i++) {
      auto bound = bounds.find(checks::inputName(main, i));
      if (bound == bounds.end()) continue;
      for (int64_t id : calibration->samples[n][i].ints)
        if (id < -bound->second || id >= bound->second)
          return refuse(fmt::format("sample {}: {} holds {}, which is out of range: its table has {} rows", n, bound->first, id, bound->second)).inFile(options.calibration).ofTensor(bound->first);
    }
  return llvm::Error::success();
}

static llvm::Error stopEarly(const CompileRequest &request, Console &console, ImportedModel &model, const Compiled &compiled) {
  std::string text = printed(*model.module);
  bool toFile = !request.output.empty() && request.output != "-";
  if (toFile)
    if (auto error = writeFile(request.output, text)) return error;
  if (console.json) {
    nlohmann::ordered_json json = {{"phase", phaseName(request.options.stopAfter).str()}};
    json[toFile ? "output" : "mlir"] = toFile ? request.output : text;
    if (request.options.stopAfter >= Phase::Checked) json["report"] = nlohmann::ordered_json::parse(report::toJson(compiled.report));
    console.out(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (!toFile) {
    console.out(text);
  }
  return request.options.stopAfter >= Phase::Pruned ? writeAll(request, compiled, model.files) : llvm::Error::success();
}

/// Compiles beside the output, compares with the source, and only then replaces the output.
static llvm::Error verified(const CompileRequest &request, const std::string &temporary, Console &console) {
  auto engine = EngineHandle::open(temporary);
  if (!engine) return engine.takeError();
  std::vector<Sample> cases;
  if (!request.options.calibration.empty()) {
    auto samples = readSamples(request.options.calibration);
    if (!samples) return samples.takeError();
    cases = std::move(*samples);
  } else {
    auto arrays = randomInputs(*engine, {}, request.options.seed, true);
    if (!arrays) return arrays.takeError();
    cases.push_back({"random inputs", std::move(*arrays)});
  }
  ShadowResult result;
  if (auto error = shadowRun(request.options.model, *engine, cases, 0.001, false, console, result)) {
    Failure failure = failureOf(std::move(error));
    const char *hint = failure.code == ExitCode::Environment ? "the engine was not written, for it cannot run here; leave out --verify, and verify it where it runs: tare verify MODEL ENGINE"
                                                             : "the engine was not written; leave out passes with --disable-pass to find the one to blame, and report the model";
    if (failure.file == temporary) failure.inFile(request.output).withHint(hint);
    return llvm::make_error<Failure>(failure);
  }
  console.note("verified against the source: " + llvm::StringRef(result.text).rtrim().rsplit('\n').second.str());
  return llvm::Error::success();
}

static llvm::Error writeVerified(const CompileRequest &request, ImportedModel &model, const Compiled &compiled, DiagnosticCollector &diagnostics, Progress &progress, Console &console) {
  if (!request.verify) return makeEngine(model, request.options, compiled, request.output, diagnostics, &progress);
  std::filesystem::path output(request.output);
  std::string temporary = (output.parent_path() / fmt::format(".{}.{}.verify.tmp", output.filename().string(), ::getpid())).string();
  auto cleanup = llvm::make_scope_exit([&] { std::error_code ignored; std::filesystem::remove(temporary, ignored); });
  if (auto error = makeEngine(model, request.options, compiled, temporary, diagnostics, &progress)) return error;
  progress.finish();
  if (auto error = verified(request, temporary, console)) return error;
  return moveIntoPlace(temporary, request.output);
}

/// A misspelt glob must not pass for an answered wish.
static void warnOfUnusedGlobs(const CompileOptions &options, const report::Report &report, Console &console) {
  for (auto &[flag, globs] : {std::pair("--keep", &options.keep), std::pair("--only", &options.only)})
    for (auto &text : *globs) {
      auto glob = llvm::GlobPattern::create(text);
      if (!glob) return llvm::consumeError(glob.takeError()); // Options.cpp has refused it
      if (llvm::none_of(report.candidates, [&](auto &c) { return glob->match(c.name); })) console.warn(fmt::format("{} '{}' matches no candidate", flag, report::escapeTerminal(text)));
    }
}

llvm::Expected<ExitCode> runCompile(const CompileRequest &request, Console &console) {
  Signer signer;
  if (!request.sign.empty()) {
    auto key = readSigningKey(request.sign);
    if (!key) return key.takeError();
    signer = *key;
  }
  Progress progress(console, request.checkOnly ? llvm::ArrayRef(stages).take_front(5) : llvm::ArrayRef(stages));
  if (!request.output.empty()) removeTemporariesOnInterrupt(request.output);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, console, request.options.model);
  progress.stage(0);
  auto model = importModel(context, request.options);
  if (!model) return model.takeError();
  if (auto error = keepsInputs(request, model->files)) return error;
  if (!request.emitOnnx.empty() && model->format != "onnx")
    return usage("--emit-onnx writes the source graph, and this source is a Hugging Face folder").inFile(request.options.model).withHint("leave it out, or export the model to ONNX first");
  const bool makesEngine = !request.checkOnly && !(request.stopAfter && request.options.stopAfter < Phase::Engine);
  std::unique_ptr<cuda::Toolkit> toolkit;
  std::string key, compilers;
  if (makesEngine || request.printCacheKey) { // first: without them all the work would be for nothing
    auto found = findCudaCompiler(request.options, console);
    if (!found) return found.takeError();
    auto names = cudaCompilers(request.options, found->get());
    if (!names) return names.takeError();
    toolkit = std::move(*found), compilers = *names;
  }
  if (request.printCacheKey || (makesEngine && !request.cacheDir.empty())) {
    auto computed = cacheKey(request, model->files, compilers);
    if (!computed) return computed.takeError();
    key = *computed;
  }
  if (request.printCacheKey) {
    progress.finish();
    console.out(console.json ? nlohmann::ordered_json{{"cache_key", key}}.dump() + "\n" : key + "\n");
    return ExitCode::Ok;
  }
  if (auto hit = cached(request, key)) {
    progress.finish();
    return reuse(request, *hit, model->files, console);
  }
  if (request.options.stopAfter >= Phase::Checked)
    if (auto error = checkCalibration(request.options, *model->module)) return error;
  auto compiled = runPasses(*model, request.options, diagnostics, &progress);
  if (!compiled) return compiled.takeError();
  compiled->signer = signer;
  warnOfUnusedGlobs(request.options, compiled->report, console);
  if (request.stopAfter && request.options.stopAfter < Phase::Engine) {
    progress.finish();
    if (auto error = stopEarly(request, console, *model, *compiled)) return error;
    return ExitCode::Ok;
  }
  // Before the reports, which say what the kernels take; a gate that fails anyway saves the time.
  if (bool gated = llvm::errorToBool(checkFailOn(request, compiled->report)); !gated && toolkit && !request.checkOnly)
    if (auto error = compileCuda(*model, request.options, *toolkit, request.cacheDir, *compiled, console, &progress)) return error;
  if (auto error = writeAll(request, *compiled, model->files)) return error;
  if (auto error = checkFailOn(request, compiled->report)) {
    Failure failure = failureOf(std::move(error));
    progress.finish();
    summarise(request, console, compiled->report);
    printReport(request, console, compiled->report, &failure);
    if (!console.json) return llvm::make_error<Failure>(failure);
    Console text = console;
    text.json = false;
    return static_cast<ExitCode>(text.report(failure));
  }
  if (!request.checkOnly)
    if (auto error = writeVerified(request, *model, *compiled, diagnostics, progress, console)) return error;
  progress.finish();
  for (auto &warning : model->warnings) console.warn(report::escapeTerminal(warning));
  summarise(request, console, compiled->report);
  printReport(request, console, compiled->report, nullptr);
  if (!request.checkOnly) console.note("engine: " + request.output);
  if (!key.empty() && !request.checkOnly) keep(request, key, console);
  return ExitCode::Ok;
}

} // namespace tare::cli
