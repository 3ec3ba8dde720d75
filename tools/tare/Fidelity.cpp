// The dense run beside the sparse one, and the bits compared (Fidelity.h).
#include "tools/tare/Fidelity.h"
#include "compiler/report/Writers.h"
#include "tools/tare/Shadow.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numeric>

namespace tare::cli {

static double mean(const std::vector<double> &values) { return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(std::max<size_t>(values.size(), 1)); }

std::optional<double> MeasuredFidelity::score() const {
  if (checks.empty() || evaluated == 0) return std::nullopt;
  double worst = 100;
  for (auto &check : checks) worst = std::min(worst, mean(check.window));
  return worst;
}

/// Largest magnitude of a float32 output, finite elements only.
static double magnitude(const Array &array) {
  double largest = 0;
  for (size_t at = 0; array.dtype == TARE_F32 && at + sizeof(float) <= array.bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, array.bytes.data() + at, sizeof(float));
    if (std::isfinite(value)) largest = std::max<double>(largest, std::fabs(value));
  }
  return largest;
}

/// Percent of rows whose bit is the same, per head; over all rows, or over those listed.
static std::vector<double> agreement(const tare_check_trace &sparse, const tare_check_trace &dense, bool onlyEvaluated) {
  int64_t count = onlyEvaluated && sparse.evaluated ? sparse.evaluated_count : sparse.rows;
  std::vector<double> percent(static_cast<size_t>(sparse.heads));
  for (int64_t i = 0; i < count; i++) {
    int64_t row = onlyEvaluated && sparse.evaluated ? sparse.evaluated[i] : i;
    uint32_t differ = sparse.bits[row] ^ dense.bits[row];
    for (size_t k = 0; k < percent.size(); k++) percent[k] += !(differ >> k & 1);
  }
  for (double &p : percent) p *= 100.0 / static_cast<double>(std::max<int64_t>(count, 1));
  return percent;
}

llvm::Expected<MeasuredFidelity> measureFidelity(const EngineHandle &engine, Request &sparse, const ArrayMap &inputs, const ArrayMap &results, int threads) {
  MeasuredFidelity measured;
  auto stats = sparse.checkStats();
  if (!stats) return stats.takeError();
  auto report = engine.report();
  if (!report) return report.takeError();
  auto dense = Request::create(engine, threads, false);
  if (!dense) return dense.takeError();
  if (auto error = dense->traceChecks()) return std::move(error);
  for (auto &[name, array] : inputs)
    if (name != "anchors")
      if (auto error = dense->set(name, array)) return std::move(error);
  std::vector<std::string> names;
  for (auto &[name, array] : results) names.push_back(name);
  if (auto error = dense->request(names)) return std::move(error);
  if (auto error = dense->run()) return std::move(error);
  measured.evaluated = stats->evaluations_sparse, measured.tokens = stats->evaluations_dense;
  std::vector<const report::Check *> described;
  for (auto &check : report->checks)
    if (check.form == "sparse") described.push_back(&check);
  for (size_t i = 0; i < static_cast<size_t>(stats->checks); i++) {
    auto a = sparse.checkTrace(i), b = dense->checkTrace(i);
    if (!a) return llvm::joinErrors(a.takeError(), b.takeError());
    if (!b) return b.takeError();
    bool known = described.size() == static_cast<size_t>(stats->checks);
    measured.checks.push_back({known ? described[i]->name : fmt::format("check {}", i), known ? described[i]->precision : "", agreement(*a, *b, true), agreement(*a, *b, false)});
  }
  for (auto &[name, array] : results) {
    auto other = dense->output(name);
    if (!other) return other.takeError();
    Comparison compared = compareArrays(*other, array);
    measured.outputDifference = std::max(measured.outputDifference, compared.largest), measured.changedArgmax += compared.changedArgmax;
    measured.outputMagnitude = std::max(measured.outputMagnitude, magnitude(*other));
  }
  return measured;
}

std::vector<std::string> describeFidelity(const MeasuredFidelity &m) {
  std::vector<std::string> lines;
  for (auto &c : m.checks)
    lines.push_back(fmt::format("{}: {}, bits are those of the dense form for {}% of evaluated tokens and {}% of all", report::escapeTerminal(c.name), c.precision, report::percents(c.window), report::percents(c.overall)));
  lines.push_back(fmt::format("outputs differ by {} from the dense form's (largest value {}), {} changed argmax", report::brief(m.outputDifference), report::brief(m.outputMagnitude), m.changedArgmax));
  return lines;
}

nlohmann::ordered_json toObject(const MeasuredFidelity &m) {
  auto checks = nlohmann::ordered_json::array();
  for (auto &c : m.checks) checks.push_back({{"name", c.name}, {"precision", c.precision}, {"window_agreement", c.window}, {"overall_agreement", c.overall}});
  return {{"evaluated", m.evaluated}, {"tokens", m.tokens}, {"checks", checks}, {"output_difference", m.outputDifference}, {"output_magnitude", m.outputMagnitude}, {"changed_argmax", m.changedArgmax}};
}

} // namespace tare::cli
