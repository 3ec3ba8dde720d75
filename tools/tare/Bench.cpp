// tare bench ENGINE: latency on random inputs. In: an engine, shapes. Out: median, min, p95, p99 in ms, and a table of steps from a profiled run: text or JSON
// (cli.md). Holds: warm runs are not counted; the profiled runs are not in the statistics; ids below the vocabulary, masks 1, types 0.
#include "compiler/report/Writers.h"
#include "tools/tare/Commands.h"
#include "tools/tare/RandomInputs.h"
#include "tools/tare/Targets.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {
namespace {

struct Options {
  std::string engine, threads, repeat, target, device;
  std::vector<std::string> shapes;
};

/// Nearest rank.
double quantile(const std::vector<double> &sorted, double q) {
  size_t rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size(), std::max<size_t>(rank, 1)) - 1];
}
double median(const std::vector<double> &sorted) {
  size_t n = sorted.size();
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

struct Step {
  std::string name, kind, layer;
  double ms = 0;
  int64_t flops = 0, bytes = 0;
};

llvm::Expected<std::vector<double>> times(Request &request, int warm, int repeat) {
  std::vector<double> list;
  for (int i = -warm; i < repeat; i++) {
    auto begin = std::chrono::steady_clock::now();
    if (auto error = request.run()) return error;
    if (i >= 0) list.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(list.begin(), list.end());
  return list;
}

/// CUresult with which the driver refused CUDA graphs in these runs; 0: it did not, or there was none.
int graphRefusal(const Request &request) {
  std::string metrics = request.metrics();
  auto [before, after] = llvm::StringRef(metrics).split("\ntare_cuda_graph_refusal ");
  int code = 0;
  return after.split('\n').first.getAsInteger(10, code) ? 0 : code;
}

/// Median time of every step over a few profiled runs.
llvm::Expected<std::vector<Step>> profileSteps(const EngineHandle &engine, const ArrayMap &inputs, int threads, int repeat) {
  auto request = Request::create(engine, threads, true);
  if (!request) return request.takeError();
  for (auto &[name, array] : inputs)
    if (auto error = request->set(name, array)) return error;
  size_t count = tare_context_step_count(request->get());
  std::vector<Step> steps(count);
  std::vector<std::vector<double>> ms(count);
  for (int run = -1; run < repeat; run++) {
    if (auto error = request->run()) return error;
    for (size_t i = 0; i < count && run >= 0; i++) {
      tare_step_info info{};
      tare_error error{};
      if (tare_context_step_info(request->get(), i, &info, &error) != TARE_OK) return llvm::make_error<Failure>(runtimeFailure(error, engine.path));
      steps[i] = {info.name, info.kind, info.layer, 0, info.flops, info.memory_bytes};
      ms[i].push_back(static_cast<double>(std::max<int64_t>(info.nanoseconds, 0)) / 1e6);
    }
  }
  for (size_t i = 0; i < count; i++) {
    std::sort(ms[i].begin(), ms[i].end());
    steps[i].ms = median(ms[i]);
  }
  return steps;
}

std::string stepTable(const std::vector<Step> &steps) {
  double all = 0;
  for (auto &s : steps) all += s.ms;
  size_t width = 5; // of the column of layers
  for (auto &s : steps) width = std::max(width, std::min<size_t>(s.layer.size(), 32));
  std::string text = fmt::format("\n  {:>9} {:>6} {:>9} {:>9}  {:<13} {:<{}} {}\n", "ms", "share", "GFLOP/s", "GB/s", "kind", "layer", width, "step");
  auto perSecond = [](int64_t count, double ms) { return ms > 0 ? fmt::format("{:.1f}", static_cast<double>(count) / ms / 1e6) : "-"; };
  for (auto &s : steps)
    text += fmt::format("  {:>9.4f} {:>5.1f}% {:>9} {:>9}  {:<13} {:<{}} {}\n", s.ms, all > 0 ? 100 * s.ms / all : 0, perSecond(s.flops, s.ms), perSecond(s.bytes, s.ms), s.kind,
                        report::escapeTerminal(s.layer), width, report::escapeTerminal(s.name));
  return text;
}

llvm::Expected<ExitCode> bench(const Options &o, Console &console) {
  auto shapes = parseShapes(o.shapes);
  if (!shapes) return shapes.takeError();
  auto repeat = parseCount("--repeat", o.repeat.empty() ? "50" : o.repeat, 1, 1000000);
  if (!repeat) return repeat.takeError();
  auto threads = parseCount("--threads", o.threads.empty() ? std::to_string(physicalCores()) : o.threads, 1, 256);
  if (!threads) return threads.takeError();
  auto level = parseRunTarget(o.target);
  if (!level) return level.takeError();
  auto device = parseDevice(o.device, o.target);
  if (!device) return device.takeError();
  auto engine = EngineHandle::open(o.engine, *level, false, "", *device);
  if (!engine) return engine.takeError();
  if (auto error = usesDevice(*engine, o.device)) return error;
  auto inputs = randomInputs(*engine, *shapes, 0);
  if (!inputs) return inputs.takeError();
  auto request = Request::create(*engine, static_cast<int>(*threads), false);
  if (!request) return request.takeError();
  for (auto &[name, array] : *inputs)
    if (auto error = request->set(name, array)) return error;
  auto list = times(*request, 3, static_cast<int>(*repeat));
  if (!list) return list.takeError();
  if (int code = graphRefusal(*request)) console.warn(fmt::format("the driver refuses CUDA graphs (CUresult {}): kernels were launched one by one, which takes longer", code));
  auto steps = profileSteps(*engine, *inputs, static_cast<int>(*threads), std::min(static_cast<int>(*repeat), 15));
  if (!steps) return steps.takeError();
  const char *isa = tare_engine_level(engine->engine.get());
  if (console.json) {
    nlohmann::ordered_json object = {{"median_ms", median(*list)}, {"min_ms", list->front()}, {"p95_ms", quantile(*list, 0.95)}, {"p99_ms", quantile(*list, 0.99)},
                                     {"repeat", *repeat}, {"threads", *threads}, {"isa", isa}, {"steps", nlohmann::ordered_json::array()}};
    for (auto &s : *steps) object["steps"].push_back({{"name", s.name}, {"kind", s.kind}, {"layer", s.layer}, {"ms", s.ms}, {"flops", s.flops}, {"bytes", s.bytes}});
    console.out(object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    console.out(fmt::format("median {:.3f} ms  min {:.3f}  p95 {:.3f}  p99 {:.3f}  ({} runs, {} threads, {})\n", median(*list), list->front(), quantile(*list, 0.95), quantile(*list, 0.99), *repeat, *threads, isa) + stepTable(*steps));
  }
  return ExitCode::Ok;
}

} // namespace

void addBenchCommand(CLI::App &app, Session &session) {
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "bench", "Measure latency on random inputs, in total and per step", [o, &session] { return bench(*o, session.console); });
  c->add_option("ENGINE", o->engine, "An engine made by `tare compile`")->required()->type_name("");
  addRepeatable(c, "--shape", o->shapes, "Shapes of inputs: input_ids=1x128[,NAME=AxB...]")->required()->type_name("SHAPES");
  c->add_option("--threads", o->threads, "Default: the physical cores the process may use")->type_name("N");
  c->add_option("--repeat", o->repeat, "Timed runs after three warm ones (default 50)")->type_name("N");
  c->add_option("--target", o->target, "cpu[:LEVEL], cuda[:sm_90] or cuda-emu (default: the CPU, when the engine has code for it)")->type_name("TARGET");
  c->add_option("--device", o->device, "Which GPU, counted from 0 as CUDA_VISIBLE_DEVICES leaves them (default 0)")->type_name("N");
}

} // namespace tare::cli
