// Registers and checks the options of compile and check (Options.h). In: CLI11 app, raw texts. Out: CompileRequest. The order of help is the order here.
#include "tools/tare/Options.h"
#include "compiler/checks/Rules.h"
#include "compiler/report/Writers.h"
#include "passes/Pipeline.h"
#include "tools/tare/Numbers.h"
#include "tools/tare/OutputFile.h"
#include "llvm/Support/GlobPattern.h"
#include <fmt/format.h>
#include <sys/stat.h>

namespace tare::cli {

void addCompileOptions(CLI::App *c, RawOptions &raw, bool checkOnly) {
  auto text = [&](const char *name, std::string &value, const char *help, const char *type) { return c->add_option(name, value, help)->type_name(type); };
  text("MODEL", raw.model, "An .onnx file or a Hugging Face folder", "");
  if (!checkOnly) text("-o,--output", raw.output, "The engine file (default: MODEL's name with .tare)", "ENGINE");

  const char *evidence = "Evidence and policy";
  text("--rules", raw.rules, "YAML with marking rules, policy, thresholds", "FILE")->group(evidence);
  text("--policy", raw.policy, "strict (default), inference or proved", "NAME")->group(evidence);
  text("--calibration", raw.calibration, "Inputs for the forward and gradient checks: .npz, or a folder of .npz/.npy/.pb", "PATH")->group(evidence);
  text("--seed", raw.seed, "Seed of random inputs and cotangents (default 0)", "N")->group(evidence);
  text("--loss", raw.loss, "A scalar output to differentiate (default: random cotangents)", "NAME")->group(evidence);
  c->add_flag("--strict-nans", raw.strictNans, "Refuse removals that assume finite activations; keep signed zeros")->group(evidence);
  text("--weight-threshold", raw.weightThreshold, "Largest |w| of a dead weight (default 1e-6)", "X")->group(evidence);
  text("--forward-threshold", raw.forwardThreshold, "Largest L2 of output - input of a dead layer (default 1e-5)", "X")->group(evidence);
  addRepeatable(c, "--keep", raw.keep, "Keep matching candidates (KEPT_BY_USER)")->type_name("GLOB")->group(evidence);
  addRepeatable(c, "--only", raw.only, "Keep all candidates that do not match")->type_name("GLOB")->group(evidence);
  text("--check-precision", raw.checkPrecision, "Force the form of fidelity checks: int4, int8, f32 or dense (default: the first that agrees)", "NAME")->group(evidence);
  text("--check-fidelity", raw.checkFidelity, "Percent of bits near anchors, per head, that a sparse check must keep (default 98)", "PERCENT")->group(evidence);
  text("--check-window", raw.checkWindow, "Tokens before an anchor at which checks are evaluated (default 3)", "N")->group(evidence);
  c->add_flag("--allow-large-removal", raw.largeRemoval, "Allow removing over half of the parameters or every block")->group(evidence);

  const char *code = "Code";
  addRepeatable(c, "--target", raw.targets, "cpu[:LEVEL[,LEVEL...]] (levels x86-64-v3, x86-64-v4, avx512-bf16, amx; default: all) | cuda:sm_XX[,sm_YY...] (sm_80 to sm_121; needs a CUDA Toolkit, or clang-19 for PTX) | cuda-emu[:stats] (CUDA text, run and checked on the CPU; stats: what its memory instructions cost, on stderr)")->type_name("TARGET")->group(code);
  text("--precision", raw.precision, "f32 (default), or f16, bf16: GEMMs and attention of CUDA targets on tensor cores, sums in f32", "NAME")->group(code);
  c->add_flag("--tf32", raw.tf32, "With --precision f32: GEMMs of CUDA targets on tensor cores, operands rounded to TF32 (11 significant bits), sums in f32; attention and products of two activations stay f32")->group(code);
  text("--threads", raw.threads, "Threads of the compiler (default: physical cores)", "N")->group(code);
  text("--fold-limit", raw.foldLimit, "Bytes a folded constant may add (default 1M)", "BYTES")->group(code);
  addRepeatable(c, "--disable-pass", raw.disabled, "Leave out a pass (names: docs/passes.md)")->type_name("NAME")->group(code);

  const char *outputs = "Reports and other outputs";
  addRepeatable(c, "--report", raw.reports, "Write the report; the ending says the form: .json .html .xml (JUnit) .sarif .txt")->type_name("FILE")->group(outputs);
  text("--emit-config", raw.emitConfig, "Write the engine's configuration as YAML", "FILE")->group(outputs);
  text("--emit-onnx", raw.emitOnnx, "Write the source graph with the removals applied", "FILE")->group(outputs);
  text("--depfile", raw.depfile, "Write a Makefile rule with every file that was read", "FILE")->group(outputs);
  text("--cache-dir", raw.cacheDir, "Keep engines by cache key, and compiled CUDA kernels, and reuse them", "DIR")->group(outputs);
  addRepeatable(c, "--fail-on", raw.failOn, "Exit 4 when a candidate is: rejected, frozen, kept-dense (comma-separated)")->type_name("LIST")->group(outputs);
  if (!checkOnly) text("--sign", raw.sign, "Sign the engine with this Ed25519 private key (PEM)", "KEY")->group(outputs);
  if (!checkOnly) c->add_flag("--verify", raw.verify, "Run engine and source side by side before the engine is written")->group(outputs);

  const char *instead = "Instead of compiling";
  c->add_flag("--print-cache-key", raw.printCacheKey, "Print the key of this compile")->group(instead);
  c->add_flag("--dry-run", raw.dryRun, "Print which ops of the model are covered; write nothing")->group(instead);
  if (!checkOnly) text("--stop-after", raw.stopAfter, "Write MLIR text after: imported, marked, checked, pruned, clean, fused, planned, engine", "PHASE")->group(instead);
  c->add_flag("--supported", raw.supported, "Print the table of supported ONNX ops")->group(instead);
}

static std::string defaultOutput(llvm::StringRef model) {
  llvm::StringRef name = model.rtrim('/').rsplit('/').second;
  if (name.empty()) name = model.rtrim('/');
  name.consume_back(".onnx");
  return name.str() + ".tare";
}

/// --precision and --tf32: what the products of CUDA targets are computed from.
static llvm::Error fillPrecision(const RawOptions &raw, CompileOptions &o) {
  if (!raw.precision.empty()) {
    if (auto error = checkWord("--precision", raw.precision, {"f32", "f16", "bf16"})) return error;
    o.precision = raw.precision;
  }
  if (raw.tf32 && o.precision != "f32") return usage(fmt::format("--tf32 is a way to compute products of f32, --precision {} asks for others", o.precision)).withHint("leave out one of the two");
  bool cuda = llvm::any_of(o.levels, [](llvm::StringRef level) { return level.starts_with("cuda") || level.starts_with("sm_"); });
  if ((raw.tf32 || o.precision != "f32") && !cuda)
    return usage(fmt::format("{}: code for CPUs computes in f32, and no CUDA target is asked for", raw.tf32 ? "--tf32" : "--precision " + o.precision))
        .withHint("leave it out, or add a target that has tensor cores: --target cpu,cuda:sm_90 (its CPU code still computes in f32)");
  if (raw.tf32) o.precision = "tf32";
  return llvm::Error::success();
}

static llvm::Error fillOptions(const RawOptions &raw, CompileOptions &o) {
  o.model = raw.model, o.rulesFile = raw.rules, o.calibration = raw.calibration, o.loss = raw.loss;
  o.strictNans = raw.strictNans, o.allowLargeRemoval = raw.largeRemoval, o.keep = raw.keep, o.only = raw.only, o.disabledPasses = raw.disabled;
  if (!raw.seed.empty()) {
    auto seed = parseCount("--seed", raw.seed, 0, uint64_t(1) << 62);
    if (!seed) return seed.takeError();
    o.seed = *seed;
  }
  o.threads = physicalCores();
  if (!raw.threads.empty()) {
    auto threads = parseCount("--threads", raw.threads, 1, 256);
    if (!threads) return threads.takeError();
    o.threads = static_cast<unsigned>(*threads);
  }
  if (!raw.foldLimit.empty()) {
    auto limit = parseBytes("--fold-limit", raw.foldLimit);
    if (!limit) return limit.takeError();
    o.foldLimit = *limit;
  }
  if (!raw.checkPrecision.empty()) {
    if (auto error = checkWord("--check-precision", raw.checkPrecision, {"int4", "int8", "f32", "dense"})) return error;
    o.checkPrecision = raw.checkPrecision;
  }
  if (!raw.checkFidelity.empty()) {
    auto percent = parsePercent("--check-fidelity", raw.checkFidelity);
    if (!percent) return percent.takeError();
    o.checkFidelity = *percent;
  }
  if (!raw.checkWindow.empty()) {
    auto window = parseCount("--check-window", raw.checkWindow, 1, 1 << 20);
    if (!window) return window.takeError();
    o.checkWindow = static_cast<int>(*window);
  }
  for (auto &[flag, globs] : {std::pair("--keep", &raw.keep), std::pair("--only", &raw.only)})
    for (auto &text : *globs) {
      auto glob = llvm::GlobPattern::create(text);
      if (!glob) return usage(fmt::format("{} '{}' is no glob: {}", flag, text, llvm::toString(glob.takeError()))).withHint("`*` stands for any text, `[` needs a `]`");
    }
  auto levels = parseTargets(raw.targets);
  if (!levels) return levels.takeError();
  o.levels = *levels;
  if (auto error = fillPrecision(raw, o)) return error;
  for (auto &pass : raw.disabled) {
    std::vector<llvm::StringRef> optional; // a pass that runs twice is one name
    for (auto &row : pipelineTable()) {
      if (!row.required && llvm::is_contained(optional, row.name)) continue;
      if (!row.required) optional.push_back(row.name);
      else if (row.name == pass) return usage(fmt::format("--disable-pass '{}': a compile cannot do without it", pass));
    }
    if (auto error = checkWord("--disable-pass", pass, optional)) return error;
  }
  return llvm::Error::success();
}

/// Policy and thresholds; flags win over the rules file, which the caller has applied before.
static llvm::Error applyPolicyFlags(const RawOptions &raw, CompileOptions &o) {
  if (!raw.policy.empty()) {
    if (auto error = checkWord("--policy", raw.policy, {"strict", "inference", "proved"})) return error;
    o.policy = raw.policy == "strict" ? Policy::Strict : raw.policy == "inference" ? Policy::Inference : Policy::Proved;
  }
  for (auto [flag, text, value] : {std::tuple("--weight-threshold", &raw.weightThreshold, &o.weightThreshold), std::tuple("--forward-threshold", &raw.forwardThreshold, &o.forwardThreshold)}) {
    if (text->empty()) continue;
    auto number = parsePositive(flag, *text);
    if (!number) return number.takeError();
    *value = *number;
  }
  return llvm::Error::success();
}

static llvm::Error contradictions(const RawOptions &raw, const CompileRequest &r) {
  struct Pair { bool a, b; const char *text; };
  const Pair pairs[] = {
      {r.stopAfter && !raw.reports.empty() && r.options.stopAfter < Phase::Pruned, true, "--report needs the checks: with --stop-after it takes pruned or a later phase"},
      {r.stopAfter, !raw.sign.empty(), "--sign signs an engine, --stop-after makes none"},
      {r.stopAfter, raw.verify, "--verify needs an engine, --stop-after makes none"},
      {r.stopAfter, !raw.cacheDir.empty(), "--cache-dir keeps engines, --stop-after makes none"},
      {r.stopAfter, !raw.emitConfig.empty() && r.options.stopAfter < Phase::Pruned, "--emit-config needs the checks: with --stop-after it takes pruned or a later phase"},
      {r.stopAfter, !raw.emitOnnx.empty() && r.options.stopAfter < Phase::Pruned, "--emit-onnx needs the removals: with --stop-after it takes pruned or a later phase"},
      {!raw.checkFidelity.empty(), !raw.checkPrecision.empty(), "--check-precision forces a form, --check-fidelity says when one is taken"},
      {raw.dryRun, raw.printCacheKey, "--dry-run and --print-cache-key exclude each other"},
      {raw.dryRun, r.stopAfter, "--dry-run and --stop-after exclude each other"},
      {raw.printCacheKey, r.stopAfter, "--print-cache-key and --stop-after exclude each other"},
      {raw.dryRun, !raw.output.empty(), "--dry-run writes nothing, -o asks for a file"},
      {raw.dryRun, !raw.reports.empty(), "--dry-run writes nothing, --report asks for a file"},
  };
  for (auto &[a, b, text] : pairs)
    if (a && b) return usage(text).withHint("leave out one of the two");
  return llvm::Error::success();
}

/// Every file that this compile writes, with its flag.
static std::vector<std::pair<std::string, std::string>> outputsOf(const CompileRequest &r) {
  std::vector<std::pair<std::string, std::string>> outputs;
  bool toStdout = r.stopAfter && r.output == "-"; // MLIR text may go there, an engine never
  if (!r.output.empty() && !r.dryRun && !r.printCacheKey && !toStdout) outputs.push_back({"-o", r.output});
  for (auto &report : r.reports) outputs.push_back({"--report", report});
  for (auto &[flag, path] : {std::pair("--emit-config", r.emitConfig), std::pair("--emit-onnx", r.emitOnnx), std::pair("--depfile", r.depfile)})
    if (!path.empty()) outputs.push_back({flag, path});
  return outputs;
}

llvm::Error keepsInputs(const CompileRequest &request, const std::vector<std::string> &filesRead) {
  for (auto &[flag, path] : outputsOf(request))
    if (auto error = checkWritable(flag, path, filesRead)) return error;
  return llvm::Error::success();
}

static llvm::Error checkOutputs(const RawOptions &raw, const CompileRequest &r) {
  auto outputs = outputsOf(r);
  std::vector<std::string> taken = {raw.model};
  for (auto &input : {raw.rules, raw.calibration, raw.sign})
    if (!input.empty()) taken.push_back(input);
  for (size_t i = 0; i < outputs.size(); i++) {
    auto &[flag, path] = outputs[i];
    if (auto error = checkWritable(flag, path, taken)) return error;
    for (size_t j = 0; j < i; j++)
      if (outputs[j].second == path && path != "/dev/null") return usage(fmt::format("{} and {} name the same file", outputs[j].first, flag)).withHint("give each output its own file");
  }
  return llvm::Error::success();
}

llvm::Expected<CompileRequest> checkOptions(const RawOptions &raw, bool checkOnly, bool json) {
  CompileRequest r;
  r.checkOnly = checkOnly, r.supported = raw.supported;
  if (r.supported) return r;
  if (raw.model.empty()) return usage("no MODEL given").withHint(checkOnly ? "tare check MODEL" : "tare compile MODEL -o ENGINE");
  if (auto error = fillOptions(raw, r.options)) return error;
  if (!raw.rules.empty()) {
    auto text = readFile(raw.rules, uint64_t(1) << 20);
    if (!text) return text.takeError();
    auto rules = checks::parseRules(*text, raw.rules);
    if (!rules) return rules.takeError();
    r.options.policy = rules->policy.value_or(r.options.policy);
    r.options.weightThreshold = rules->weightThreshold.value_or(r.options.weightThreshold);
    r.options.forwardThreshold = rules->forwardThreshold.value_or(r.options.forwardThreshold);
  }
  if (auto error = applyPolicyFlags(raw, r.options)) return error;
  r.reports = raw.reports, r.emitConfig = raw.emitConfig, r.emitOnnx = raw.emitOnnx, r.depfile = raw.depfile, r.cacheDir = raw.cacheDir, r.sign = raw.sign;
  r.dryRun = raw.dryRun, r.printCacheKey = raw.printCacheKey, r.verify = raw.verify;
  r.options.measureAll = checkOnly || json || !r.reports.empty(); // whoever reads a report wants every number
  for (auto &list : raw.failOn) {
    auto words = parseWords("--fail-on", list, {"rejected", "frozen", "kept-dense"});
    if (!words) return words.takeError();
    r.failOn.insert(r.failOn.end(), words->begin(), words->end());
  }
  if (!raw.stopAfter.empty()) {
    auto phase = phaseOf(raw.stopAfter);
    std::vector<llvm::StringRef> names;
    for (int p = 0; p <= static_cast<int>(Phase::Engine); p++) names.push_back(phaseName(static_cast<Phase>(p)));
    if (auto error = checkWord("--stop-after", raw.stopAfter, names)) return error;
    r.options.stopAfter = *phase, r.stopAfter = true;
  }
  if (checkOnly) r.options.stopAfter = Phase::Clean; // where it stands what fidelity checks become
  for (auto &path : r.reports)
    if (!report::formatOfFile(path)) return usage(fmt::format("--report {}: the ending says no form", path)).withHint("end the name in .json, .html, .xml, .sarif or .txt");
  r.output = !raw.output.empty() || checkOnly || r.stopAfter ? raw.output : defaultOutput(raw.model);
  if (auto error = contradictions(raw, r)) return error;
  if (auto error = checkOutputs(raw, r)) return error;
  return r;
}

} // namespace tare::cli
