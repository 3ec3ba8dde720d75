// What a context tells about itself: estimates, the time of each step, a Chrome trace, metrics in Prometheus' text format (names begin with tare_).
#include "runtime/Context.h"
#include <cmath>
#include <cstring>

namespace tare {
namespace {
/// Writes into a caller's buffer like snprintf: counts all, keeps what fits.
class Sink {
public:
  Sink(char *buffer, size_t capacity) : buffer(buffer), capacity(capacity) {
    if (capacity) buffer[0] = 0;
  }
  [[gnu::format(printf, 2, 3)]] void add(const char *pattern, ...) {
    va_list args;
    va_start(args, pattern);
    size_t room = used < capacity ? capacity - used : 0;
    int n = vsnprintf(room ? buffer + used : nullptr, room, pattern, args);
    va_end(args);
    if (n > 0) used += static_cast<size_t>(n);
  }
  /// A JSON string with its quotes.
  void addString(const char *text) {
    add("\"");
    for (; *text; ++text) {
      auto c = static_cast<unsigned char>(*text);
      if (c == '"' || c == '\\')
        add("\\%c", c);
      else if (c < 0x20 || c == 0x7f)
        add("\\u%04x", c);
      else
        add("%c", c);
    }
    add("\"");
  }
  size_t size() const { return used; }

private:
  char *buffer;
  size_t capacity, used = 0;
};
const char *textOf(const flatbuffers::String *s) { return s ? s->c_str() : ""; }
} // namespace

Result<void> checkMemoryAt(const fb::Plan &plan, const Binding &binding, tare_check_memory &memory) {
  memory = {0, 0};
  if (!plan.checks()) return {};
  for (auto *check : *plan.checks()->items()) memory.weight_bytes += static_cast<int64_t>(check->weight_bytes());
  auto run = CheckSchedule::bytes(plan, binding);
  if (!run) return std::move(run.error());
  memory.run_bytes = *run;
  return {};
}

Result<void> Context::estimate(tare_estimate &result) const {
  if (!ran) return Error(Status::Usage, "there is no estimate before a successful run");
  result = {binding.dim(plan.full_flops()), binding.dim(plan.full_bytes()), binding.dim(plan.flops()), binding.dim(plan.bytes()), plan.zero_rate()};
  return {};
}

int64_t Context::nanoseconds(size_t step) const {
  if (step + 1 >= stamps.size() || !stamps[step]) return -1;
  int64_t end = 0; // a step that the code fused with the next one has no stamp of its own
  for (size_t next = step + 1; next < stamps.size() && !end; ++next) end = stamps[next];
  return end ? end - stamps[step] : -1;
}

Result<void> Context::stepInfo(size_t index, tare_step_info &info) const {
  if (index >= plan.steps()->size()) return Error(Status::Usage, "there is no such step");
  auto &step = *plan.steps()->Get(static_cast<uint32_t>(index));
  info = {step.name()->c_str(), step.kernel()->c_str(), step.kind()->c_str(), textOf(step.layer()), ran ? binding.dim(step.flops()) : 0, ran ? binding.dim(step.bytes()) : 0,
          ran ? nanoseconds(index) : -1};
  return {};
}

Result<void> Context::checkStats(tare_check_stats &stats) const {
  if (!ran) return Error(Status::Usage, "there are no numbers before a successful run");
  stats = {0, 0, 0, 0, 0, 0, -1};
  if (schedule.empty()) return {};
  const CheckCounts &counts = schedule.counts();
  stats.checks = static_cast<int64_t>(plan.checks()->items()->size());
  stats.evaluations_dense = counts.dense, stats.evaluations_sparse = counts.sparse, stats.anchor_hits = counts.hits;
  stats.fidelity_score = plan.checks()->fidelity();
  for (auto *check : *plan.checks()->items()) stats.flops_saved += (counts.dense - counts.sparse) * static_cast<int64_t>(check->flops_per_row());
  // What was saved, at the rate of what was done.
  double done = static_cast<double>(binding.dim(plan.flops()) - stats.flops_saved);
  if (done > 0) stats.milliseconds_saved = 1e3 * lastSeconds * static_cast<double>(stats.flops_saved) / done;
  return {};
}

Result<void> Context::checkMemory(tare_check_memory &memory) const {
  if (!ran) return Error(Status::Usage, "there are no numbers before a successful run");
  return checkMemoryAt(plan, binding, memory);
}

Result<void> Context::traceChecks(bool on) {
  if (on && strncmp(shared->level(), "cuda", 4) == 0)
    return Error::format(Status::Environment, "this code does not keep the bits of every token", "level %s; the CPU's code does", shared->level());
  if (on != schedule.tracing()) dirty = true, ran = false;
  schedule.trace(on);
  return {};
}

Result<void> Context::checkTrace(size_t check, tare_check_trace &trace) const {
  if (!ran || !schedule.tracing()) return Error(Status::Usage, "no bits were kept: tare_context_trace_checks comes before the run");
  if (schedule.empty() || check >= plan.checks()->items()->size()) return Error(Status::Usage, "there is no such fidelity check");
  trace = {static_cast<int64_t>(plan.checks()->items()->Get(static_cast<uint32_t>(check))->heads()), schedule.rowCount(), schedule.traced(check), schedule.evaluatedRows(),
           schedule.evaluatedRows() ? schedule.counts().sparse : -1};
  return {};
}

size_t Context::profile(char *buffer, size_t capacity) const {
  Sink sink(buffer, capacity);
  sink.add("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"level\":\"%s\",\"threads\":\"%d\"},\"traceEvents\":[", shared->level(), threads);
  sink.add("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"tare\"}}");
  int64_t begin = 0;
  for (size_t i = 0; ran && i + 1 < stamps.size(); ++i) {
    if (!stamps[i]) continue; // skipped, or fused with another one
    if (!begin) begin = stamps[i];
    auto &step = *plan.steps()->Get(static_cast<uint32_t>(i));
    sink.add(",\n{\"name\":");
    sink.addString(step.name()->c_str());
    sink.add(",\"cat\":");
    sink.addString(step.kind()->c_str());
    sink.add(",\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"kernel\":", 1e-3 * static_cast<double>(stamps[i] - begin),
             1e-3 * static_cast<double>(std::max<int64_t>(nanoseconds(i), 0)));
    sink.addString(step.kernel()->c_str());
    sink.add(",\"layer\":");
    sink.addString(textOf(step.layer()));
    sink.add(",\"flops\":%lld,\"bytes\":%lld}}", static_cast<long long>(binding.dim(step.flops())), static_cast<long long>(binding.dim(step.bytes())));
  }
  sink.add("]}\n");
  return sink.size();
}

size_t Context::metrics(char *buffer, size_t capacity) const {
  Sink sink(buffer, capacity);
  auto metric = [&](const char *name, const char *type, const char *help, double value) {
    sink.add("# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
  };
  metric("tare_runs_total", "counter", "Runs that succeeded.", static_cast<double>(runs));
  metric("tare_run_failures_total", "counter", "Runs that failed, cancelled ones included.", static_cast<double>(failures));
  metric("tare_run_cancellations_total", "counter", "Runs that were cancelled.", static_cast<double>(cancellations));
  metric("tare_run_seconds_total", "counter", "Time in successful runs.", seconds);
  metric("tare_last_run_seconds", "gauge", "Time of the last successful run.", lastSeconds);
  metric("tare_flops_total", "counter", "Floating-point operations of successful runs, as planned.", flopsDone);
  metric("tare_arena_bytes", "gauge", "Scratch memory at the last shapes.", static_cast<double>(arenaBytes));
  metric("tare_arena_capacity_bytes", "gauge", "Scratch memory held.", static_cast<double>(arena.capacity()));
  if (gpu) {
    metric("tare_cuda_graph_launches_total", "counter", "Runs that launched a CUDA graph.", static_cast<double>(gpu->graphLaunches()));
    metric("tare_cuda_graph_refusal", "gauge", "CUresult with which the driver refused a CUDA graph: runs launch kernels one by one since; 0: none.", gpu->graphRefusal());
  }
  metric("tare_threads", "gauge", "Threads of the context.", threads);
  tare_check_stats checks{};
  if (!schedule.empty()) {
    metric("tare_check_evaluations_dense_total", "counter", "Token rows of successful runs, what each fidelity check module would cost when dense.", static_cast<double>(checkTotals.dense));
    metric("tare_check_evaluations_sparse_total", "counter", "Token rows that each fidelity check module evaluated.", static_cast<double>(checkTotals.sparse));
    metric("tare_anchor_hits_total", "counter", "Anchors of which at least one window position was evaluated.", static_cast<double>(checkTotals.hits));
    if (plan.checks()->fidelity() >= 0) metric("tare_fidelity_score", "gauge", "Percent of sparse bits that agree with the dense ones, measured at compile.", plan.checks()->fidelity());
    if (checkStats(checks)) {
      metric("tare_compute_savings_flops", "gauge", "Operations of fidelity checks that the last run saved.", static_cast<double>(checks.flops_saved));
      metric("tare_compute_savings_seconds", "gauge", "Estimated time that the last run saved in fidelity checks.", 1e-3 * checks.milliseconds_saved);
    }
  }
  if (ran && binding.dim(plan.full_flops()) > 0)
    metric("tare_compute_flops_ratio", "gauge", "Planned operations of this plan relative to the full one.",
           static_cast<double>(binding.dim(plan.flops())) / static_cast<double>(binding.dim(plan.full_flops())));
  return sink.size();
}

} // namespace tare
