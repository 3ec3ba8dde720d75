// What a compile writes beside the engine, and what it tells. In: the report, the request. Out: report files, configuration, depfile, lines on stderr.
#include "compiler/report/Writers.h"
#include "tools/tare/Driver.h"
#include "tools/tare/OutputFile.h"
#include <algorithm>
#include <fmt/format.h>

namespace tare::cli {

/// A path in a Makefile rule: spaces and # escaped, $ doubled.
static std::string makePath(const std::string &path) {
  std::string result;
  for (char c : path) {
    if (c == ' ' || c == '#' || c == '\\') result += '\\';
    if (c == '$') result += '$';
    result += c;
  }
  return result;
}

llvm::Error writeOutputs(const CompileRequest &request, const report::Report &report, const std::vector<std::string> &filesRead) {
  for (auto &path : request.reports)
    if (auto error = writeFile(path, report::write(report, *report::formatOfFile(path)))) return error;
  if (!request.emitConfig.empty())
    if (auto error = writeFile(request.emitConfig, report::toConfiguration(report))) return error;
  if (!request.depfile.empty()) {
    std::string target = !request.output.empty() ? request.output : !request.reports.empty() ? request.reports.front() : request.options.model + ".checked";
    std::string text = makePath(target) + ":";
    std::vector<std::string> files = filesRead;
    for (auto &extra : {request.options.rulesFile, request.options.calibration})
      if (!extra.empty()) files.push_back(extra);
    for (auto &file : files) text += " \\\n  " + makePath(file);
    if (auto error = writeFile(request.depfile, text + "\n")) return error;
  }
  return llvm::Error::success();
}

void printSummary(Console &console, const CompileRequest &request, const report::Report &r) {
  console.note(fmt::format("{} of {} candidates pruned, {} rejected, {} frozen (policy {})", r.count("pruned"), r.candidates.size(), r.count("rejected"), r.count("frozen"), r.policy));
  for (auto &c : r.candidates)
    if (!c.line.empty()) console.note(report::escapeTerminal(c.line));
  for (auto &c : r.checks) {
    if (!c.line.empty()) console.note(report::escapeTerminal(c.line));
    else if (c.fidelity) console.note(report::escapeTerminal(fmt::format("{}: {} {}, bits near anchors agree at {}%", c.name, c.form, c.precision, report::percents(c.windowAgreement))));
  }
  if (std::any_of(r.checks.begin(), r.checks.end(), [](const report::Check &c) { return c.anchors == "seeded"; }))
    console.note("fidelity was measured at seeded anchors, one per 64 tokens, for want of real ones: give texts with anchors by --calibration");
  if (r.weightThreshold != 1e-6 || r.forwardThreshold != 1e-5)
    console.note(fmt::format("thresholds were changed: |w| < {} (1e-06), forward L2 < {} (1e-05); the report and the engine say so", report::shortest(r.weightThreshold), report::shortest(r.forwardThreshold)));
  if (r.full.flops.value && r.pruned.flops.value)
    console.note(fmt::format("FLOPs {} -> {}, memory {} -> {} (estimates)", report::readableCount(r.full.flops.value), report::readableCount(r.pruned.flops.value),
                             report::readableBytes(r.full.memory.value), report::readableBytes(r.pruned.memory.value)));
}

llvm::Error checkFailOn(const CompileRequest &request, const report::Report &r) {
  std::string found;
  for (auto &word : request.failOn) {
    for (auto &c : r.candidates)
      if (c.verdict == word) found += (found.empty() ? "" : ", ") + c.name + " is " + word + (c.code.empty() ? "" : " (" + c.code + ")");
    if (word != "kept-dense") continue;
    for (auto &c : r.checks)
      if (c.form == "dense") found += (found.empty() ? "" : ", ") + c.name + " stays dense";
  }
  if (found.empty()) return llvm::Error::success();
  return fail(ExitCode::Gate, "gate --fail-on: " + found).inFile(request.options.model).withHint(request.checkOnly ? "see the report for the evidence" : "no engine was written; see the report for the evidence");
}

} // namespace tare::cli
