// tare estimate ENGINE --shape: FLOPs and memory of the full and the pruned plan (spec 9), in total and per module, as formulas and numbers. In: an engine, shapes.
// Out: text or JSON. Holds: a multiply-add is 2 FLOPs; an estimate that is missing or zero is an error, never printed as 0.
#include "compiler/graph/Dim.h"
#include "compiler/report/Writers.h"
#include "tools/tare/Commands.h"
#include "tools/tare/EngineHandle.h"
#include "tools/tare/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {
namespace {

using Json = nlohmann::ordered_json;
using Symbols = std::map<std::string, int64_t>;

/// Symbols from the shapes; a symbol that nobody decides is 1, past is 0.
llvm::Expected<Symbols> bindShapes(const EngineHandle &engine, const std::vector<NamedShape> &shapes) {
  Symbols symbols;
  auto inputs = engine.inputs();
  for (auto &shape : shapes) {
    auto input = llvm::find_if(inputs, [&](auto &i) { return shape.name == i.name; });
    if (input == inputs.end()) return usage(fmt::format("--shape names '{}', which is no input", shape.name)).withHint("see `tare inspect ENGINE`");
    if (static_cast<size_t>(input->rank) != shape.dims.size()) return usage(fmt::format("--shape {}: {} dimensions, the engine has {}", shape.name, shape.dims.size(), input->rank));
    for (int i = 0; i < input->rank; i++) {
      auto dim = Dim::parse(input->dims[i]);
      if (dim && dim->constant() && *dim->constant() != shape.dims[i]) return usage(fmt::format("--shape {}: dimension {} must be {}", shape.name, i, *dim->constant()));
      if (!dim || dim->symbols().size() != 1 || dim->symbols().front() != input->dims[i]) continue;
      auto [known, fresh] = symbols.insert({input->dims[i], shape.dims[i]});
      if (!fresh && known->second != shape.dims[i]) return usage(fmt::format("--shape: {} is {} and {}", input->dims[i], known->second, shape.dims[i]));
    }
  }
  // Dimensions like `past + sequence`: they decide the one symbol that is still open, and must agree with the rest.
  for (auto &shape : shapes) {
    auto input = llvm::find_if(inputs, [&](auto &i) { return shape.name == i.name; });
    for (int i = 0; i < input->rank; i++) {
      auto dim = Dim::parse(input->dims[i]);
      if (!dim || dim->constant()) continue;
      llvm::SmallVector<std::string> open;
      for (auto &symbol : dim->symbols())
        if (!symbols.count(symbol)) open.push_back(symbol);
      auto at = [&](int64_t value) {
        return dim->evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
          auto found = symbols.find(name.str());
          return found != symbols.end() ? found->second : value;
        });
      };
      if (open.size() == 1) {
        auto zero = at(0), one = at(1);
        if (zero && one && *one > *zero && shape.dims[i] >= *zero && (shape.dims[i] - *zero) % (*one - *zero) == 0) symbols[open.front()] = (shape.dims[i] - *zero) / (*one - *zero);
      }
      if (open.size() <= 1 && at(0) != shape.dims[i]) return usage(fmt::format("--shape {}: dimension {} ({}) does not agree with the other shapes", shape.name, i, input->dims[i]));
    }
  }
  for (auto &input : inputs) // what is left out and empty by default has no entries (anchors, a past); its batch is the others'
    if (input.optional && llvm::StringRef(input.default_kind) == "empty" && llvm::none_of(shapes, [&](auto &shape) { return shape.name == input.name; }))
      for (int i = 1; i < input.rank; i++) symbols.insert({input.dims[i], 0});
  return symbols;
}

struct Value {
  std::string formula;
  int64_t number = 0;
};

llvm::Expected<Value> valueOf(const report::Count &count, const Symbols &symbols, const char *what, const std::string &file) {
  auto dim = Dim::parse(count.formula);
  auto number = dim ? dim->evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto found = symbols.find(name.str());
    return found != symbols.end() ? found->second : name.contains_insensitive("past") ? 0 : 1;
  }) : std::nullopt;
  if (!number) return fail(ExitCode::Limit, fmt::format("the estimate of {} cannot be computed at this shape ('{}')", what, count.formula)).inFile(file).withHint("give smaller sizes");
  return Value{count.formula, *number};
}

Json object(const Value &flops, const Value &bytes) {
  return {{"flops", flops.number}, {"memory_bytes", bytes.number}, {"flops_formula", flops.formula}, {"memory_formula", bytes.formula}};
}

llvm::Expected<ExitCode> estimate(const std::string &path, const std::vector<std::string> &flags, Console &console) {
  auto shapes = parseShapes(flags);
  if (!shapes) return shapes.takeError();
  auto engine = EngineHandle::open(path);
  if (!engine) return engine.takeError();
  auto report = engine->report();
  if (!report) return report.takeError();
  auto symbols = bindShapes(*engine, *shapes);
  if (!symbols) return symbols.takeError();
  Json json = {{"shape", *symbols}, {"zero_rate", report->zeroRate()}, {"compute_estimation", Json::object()}, {"layers", Json::array()}};
  std::string text;
  for (auto &[name, e] : {std::pair("full", &report->full), std::pair("pruned", &report->pruned)}) {
    auto flops = valueOf(e->flops, *symbols, "FLOPs", path);
    if (!flops) return flops.takeError();
    auto bytes = valueOf(e->memory, *symbols, "memory", path);
    if (!bytes) return bytes.takeError();
    if (flops->number <= 0 || bytes->number <= 0) return fail(ExitCode::Internal, fmt::format("the {} plan's estimate is {} FLOPs, {} bytes", name, flops->number, bytes->number)).inFile(path);
    json["compute_estimation"][name] = object(*flops, *bytes);
    text += fmt::format("{:<7} {:>22} FLOPs  {:>20} bytes\n         FLOPs  = {}\n         memory = {}\n", name, report::grouped(flops->number), report::grouped(bytes->number), flops->formula, bytes->formula);
  }
  text += fmt::format("zero rate {:.3f}\n\n  {:>18} {:>18} {:>15} {:>15}  module\n", report->zeroRate(), "FLOPs full", "pruned", "memory full", "pruned");
  for (auto &layer : report->layers) {
    Value values[4];
    const report::Count *counts[] = {&layer.full.flops, &layer.pruned.flops, &layer.full.memory, &layer.pruned.memory};
    for (int i = 0; i < 4; i++) {
      auto value = valueOf(*counts[i], *symbols, "a module", path);
      if (!value) return value.takeError();
      values[i] = *value;
    }
    json["layers"].push_back({{"layer", layer.layer}, {"full", object(values[0], values[2])}, {"pruned", object(values[1], values[3])}});
    text += fmt::format("  {:>18} {:>18} {:>15} {:>15}  {}\n", report::grouped(values[0].number), report::grouped(values[1].number), report::readableBytes(values[2].number), report::readableBytes(values[3].number), report::escapeTerminal(layer.layer));
  }
  std::vector<std::pair<std::string, std::vector<int64_t>>> given;
  for (auto &shape : *shapes) given.push_back({shape.name, shape.dims});
  if (!report->checks.empty()) {
    auto memory = engine->checkMemory(given);
    if (!memory) return memory.takeError();
    json["check_memory"] = {{"weight_bytes", memory->weight_bytes}, {"run_bytes", memory->run_bytes}};
    text += fmt::format("\nfidelity checks hold {} of the weights, and {} bytes per run for anchors, rows and carried bits\n", report::readableBytes(memory->weight_bytes), report::grouped(memory->run_bytes));
  }
  console.out(console.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text);
  return ExitCode::Ok;
}

} // namespace

void addEstimateCommand(CLI::App &app, Session &session) {
  struct Options { std::string engine; std::vector<std::string> shapes; };
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "estimate", "Estimate FLOPs and memory at given shapes", [o, &session] { return estimate(o->engine, o->shapes, session.console); });
  c->add_option("ENGINE", o->engine, "An engine made by `tare compile`")->required()->type_name("");
  addRepeatable(c, "--shape", o->shapes, "Shapes of inputs: input_ids=1x128000[,NAME=AxB...]")->required()->type_name("SHAPES");
}

} // namespace tare::cli
