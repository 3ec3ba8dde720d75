// tare inspect ENGINE: what is in an engine file. In: an engine. Out: header, configuration, plan or kernels as text or JSON on stdout. Holds: --header reads the
// first bytes only and loads nothing; everything else goes through the verified file.
#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/import/Npz.h"
#include "compiler/report/Writers.h"
#include "runtime/EngineReader.h"
#include "runtime/engine_generated.h"
#include "tools/tare/Commands.h"
#include "tools/tare/EngineHandle.h"
#include "tools/tare/InspectCuda.h"
#include "tools/tare/OutputFile.h"
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace tare::cli {
namespace {

using Json = nlohmann::ordered_json;
struct Options {
  std::string engine, source;
  bool header = false, config = false, plan = false, kernels = false;
};
std::string dump(const Json &json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }
std::string hex(const uint8_t *bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; i++) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

/// The fixed header and the section table, from the first 64 + 64 * 64 bytes of the file.
llvm::Expected<ExitCode> header(const Options &o, Console &console) {
  auto prefix = readPrefix(o.engine, sizeof(format::Header) + format::kMaxSections * sizeof(format::SectionEntry));
  if (!prefix) return prefix.takeError();
  auto &[bytes, size] = *prefix;
  auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  auto entries = checkHeader(data, bytes.size(), size);
  if (!entries) return refuse(std::string(entries.error().text) + (*entries.error().detail ? std::string(": ") + entries.error().detail : "")).inFile(o.engine).withHint("an engine is made by `tare compile MODEL -o ENGINE`");
  auto &head = *reinterpret_cast<const format::Header *>(data);
  Json json = {{"format", fmt::format("{}.{}", head.major, head.minor)}, {"file_bytes", head.fileBytes}, {"hash", hex(head.hash, 32)}, {"sections", Json::array()}};
  std::string text = fmt::format("tare engine, format {}.{}, {} bytes, hash {}\n", head.major, head.minor, report::grouped(static_cast<int64_t>(head.fileBytes)), hex(head.hash, 32));
  for (uint32_t i = 0; i < head.sectionCount; i++) {
    auto &e = (*entries)[i];
    json["sections"].push_back({{"kind", format::kindName(e.kind)}, {"offset", e.offset}, {"bytes", e.bytes}, {"sha256", hex(e.hash, 32)}});
    text += fmt::format("  {:<16} at {:>12}  {:>14} bytes  sha256 {}\n", format::kindName(e.kind), e.offset, report::grouped(static_cast<int64_t>(e.bytes)), hex(e.hash, 32));
  }
  console.out(console.json ? dump(json) : text);
  return ExitCode::Ok;
}

const char *dtypeText(fb::DType type) { return dtypeName(static_cast<uint8_t>(type)).data(); }
std::string str(const flatbuffers::String *text) { return text ? text->str() : ""; }
std::string dimText(const fb::Plan &plan, uint32_t index) { return str(plan.dims()->Get(index)->text()); }

Json tensorJson(const fb::Plan &plan, const fb::Tensor &t) {
  Json dims = Json::array();
  for (uint32_t d : *t.dims()) dims.push_back(dimText(plan, d));
  Json json = {{"name", str(t.name())}, {"dtype", dtypeText(t.dtype())}, {"dims", dims}};
  // Left out, the anchors of fidelity checks are not an empty list (which means: the first token only).
  bool isAnchors = plan.checks() && &t == plan.inputs()->Get(plan.checks()->anchors());
  if (t.optional()) json["optional"] = true, json["default"] = isAnchors ? "dense" : str(t.default_kind());
  return json;
}

Json planJson(const fb::Plan &plan) {
  Json json = {{"symbols", Json::array()}, {"inputs", Json::array()}, {"outputs", Json::array()}, {"buffers", Json::array()}, {"steps", Json::array()}, {"constraints", Json::array()}, {"states", Json::array()}};
  for (auto *s : *plan.symbols()) json["symbols"].push_back(s->str());
  for (auto *t : *plan.inputs()) json["inputs"].push_back(tensorJson(plan, *t));
  for (auto *t : *plan.outputs()) json["outputs"].push_back(tensorJson(plan, *t));
  for (auto *b : *plan.buffers())
    json["buffers"].push_back({{"kind", fb::EnumNameBufferKind(b->kind())}, {"name", str(b->name())}, {"bytes", dimText(plan, b->bytes())}, {"first_step", b->first_step()}, {"last_step", b->last_step()}});
  for (auto *s : *plan.steps()) {
    std::vector<uint32_t> buffers(s->buffers()->begin(), s->buffers()->end());
    json["steps"].push_back({{"name", str(s->name())}, {"kind", str(s->kind())}, {"kernel", str(s->kernel())}, {"layer", str(s->layer())}, {"buffers", buffers},
                             {"operands", s->operand_count()}, {"flops", dimText(plan, s->flops())}, {"bytes", dimText(plan, s->bytes())}});
  }
  for (auto *c : *plan.constraints())
    json["constraints"].push_back({{"kind", c->kind() == fb::ConstraintKind::Equal ? "equal" : "at_most"}, {"a", dimText(plan, c->a())}, {"b", dimText(plan, c->b())}, {"message", str(c->message())}});
  if (auto *checks = plan.checks()) {
    json["checks"] = {{"anchors", checks->anchors()}, {"mask", checks->mask()}, {"batch", dimText(plan, checks->batch())}, {"tokens", dimText(plan, checks->tokens())},
                      {"past", dimText(plan, checks->past())}, {"window", checks->window()}, {"fidelity", checks->fidelity() < 0 ? Json(nullptr) : Json(checks->fidelity())}, {"items", Json::array()}};
    for (auto *c : *checks->items())
      json["checks"]["items"].push_back({{"heads", c->heads()}, {"rank", c->rank()}, {"precision", str(c->precision())}, {"flops_per_row", c->flops_per_row()}});
  }
  if (plan.cuda()) json["cuda"] = cudaPlanJson(plan);
  for (auto *s : *plan.states()) json["states"].push_back({{"input", s->input()}, {"output", s->output()}, {"axis", s->axis()}});
  return json;
}

std::string planText(const Json &plan) {
  std::string text = fmt::format("{} inputs, {} outputs, {} buffers, {} steps\n", plan["inputs"].size(), plan["outputs"].size(), plan["buffers"].size(), plan["steps"].size());
  int number = 0;
  for (auto &s : plan["steps"])
    text += fmt::format("  {:>4}  {:<13} {:<40} {:<24} {}\n", number++, s["kind"].get<std::string>(), s["kernel"].get<std::string>(),
                        report::escapeTerminal(s["layer"].get<std::string>()), report::escapeTerminal(s["name"].get<std::string>()));
  if (plan.contains("cuda")) text += cudaPlanText(plan["cuda"]);
  return text;
}

Json kernelsJson(const fb::Plan &plan, const std::string &level) {
  Json json = {{"levels", Json::array()}, {"this_machine", level.empty() ? Json(nullptr) : Json(level)}, {"kernels", Json::array()}};
  for (auto *c : *plan.code()) json["levels"].push_back({{"level", str(c->level())}, {"text_bytes", c->text_bytes()}, {"taken", str(c->level()) == level}});
  std::map<std::string, std::pair<std::string, int>> counts;
  for (auto *s : *plan.steps()) counts[str(s->kernel())].first = str(s->kind()), counts[str(s->kernel())].second++;
  for (auto &[name, kind] : counts) json["kernels"].push_back({{"name", name}, {"kind", kind.first}, {"steps", kind.second}});
  return json;
}

std::string kernelsText(const Json &kernels) {
  if (kernels["levels"].empty()) return "no machine code for CPUs\n";
  std::string text = "machine code:\n";
  for (auto &l : kernels["levels"]) text += fmt::format("  {} {:<12} {:>10} bytes of code\n", l["taken"].get<bool>() ? "*" : " ", l["level"].get<std::string>(), l["text_bytes"].get<uint64_t>());
  text += kernels["this_machine"].is_null() ? "this machine can take none of them\n" : "this machine takes " + kernels["this_machine"].get<std::string>() + " (*)\n";
  text += fmt::format("{} kernels:\n", kernels["kernels"].size());
  for (auto &k : kernels["kernels"]) text += fmt::format("  {:<48} {:<13} {} steps\n", k["name"].get<std::string>(), k["kind"].get<std::string>(), k["steps"].get<int>());
  return text;
}

std::string signatureText(const char *title, const Json &tensors) {
  std::string text = title;
  for (auto &t : tensors) {
    std::string dims;
    for (auto &d : t["dims"]) dims += (dims.empty() ? "" : ", ") + d.get<std::string>();
    text += fmt::format("  {} {} [{}]{}\n", report::escapeTerminal(t["name"].get<std::string>()), t["dtype"].get<std::string>(), report::escapeTerminal(dims),
                        t.contains("default") ? " (optional, default: " + t["default"].get<std::string>() + ")" : "");
  }
  return text;
}

llvm::Expected<ExitCode> inspect(const Options &o, Console &console) {
  if (o.header + o.config + o.plan + o.kernels > 1) return usage("inspect shows one of --header, --config, --plan, --kernels").withHint("leave out all but one; without any of them you see an overview");
  if (!o.source.empty() && !o.kernels) return usage("--source belongs to --kernels").withHint("tare inspect ENGINE --kernels --source NAME");
  if (o.header) return header(o, console);
  auto engine = EngineHandle::open(o.engine);
  if (!engine) return engine.takeError();
  if (o.config) {
    auto text = engine->section("configuration");
    if (!text) return text.takeError();
    console.out(console.json ? Json{{"configuration", *text}}.dump() + "\n" : *text);
    return ExitCode::Ok;
  }
  if (!o.source.empty()) {
    auto text = engine->section("cuda source");
    if (!text) return llvm::consumeError(text.takeError()), usage("this engine holds no CUDA text").inFile(o.engine).withHint("compile with --target cuda:sm_90 or cuda-emu");
    auto kernel = cuda::sourceOf(*text, o.source);
    if (!kernel) return usage("this engine has no CUDA kernel of that name: " + o.source).inFile(o.engine).withHint("tare inspect ENGINE --kernels lists them");
    console.out(console.json ? Json{{"kernel", o.source}, {"source", *kernel}}.dump() + "\n" : *kernel);
    return ExitCode::Ok;
  }
  auto section = engine->section("plan");
  if (!section) return section.takeError();
  const fb::Plan &plan = *fb::GetPlan(section->data()); // validated when the engine was opened
  std::string level = tare_engine_level(engine->engine.get());
  if (o.plan) {
    Json json = planJson(plan);
    console.out(console.json ? dump(json) : planText(json));
    return ExitCode::Ok;
  }
  auto report = engine->report();
  if (o.kernels) {
    Json json = kernelsJson(plan, level);
    std::optional<report::Cuda> reported; // kernels can be shown without a report
    if (report) reported = report->cuda;
    else llvm::consumeError(report.takeError());
    if (plan.cuda()) json["cuda"] = cudaKernelsJson(plan, reported);
    console.out(console.json ? dump(json) : kernelsText(json) + (plan.cuda() ? cudaKernelsText(json["cuda"], reported) : ""));
    return ExitCode::Ok;
  }
  if (!report) return report.takeError();
  Json overview = planJson(plan), kernels = kernelsJson(plan, level);
  if (console.json) {
    console.out(dump({{"model", {{"name", report->modelName}, {"sha256", report->modelSha256}}}, {"policy", report->policy}, {"zero_rate", report->zeroRate()}, {"inputs", overview["inputs"]},
                      {"outputs", overview["outputs"]}, {"steps", overview["steps"].size()}, {"levels", kernels["levels"]}, {"cuda", cudaImages(plan)}, {"this_machine", kernels["this_machine"]}}));
    return ExitCode::Ok;
  }
  std::string text = fmt::format("engine of {} ({} parameters), policy {}, {} of {} candidates pruned\n", report::escapeTerminal(report->modelName), report::grouped(report->parameters), report->policy, report->count("pruned"), report->candidates.size());
  text += signatureText("inputs\n", overview["inputs"]) + signatureText("outputs\n", overview["outputs"]);
  text += fmt::format("{} steps, {} kernels; {}\n", overview["steps"].size(), kernels["kernels"].size(),
                      kernels["levels"].empty() ? "no code for CPUs" : level.empty() ? "this machine takes none of the engine's levels" : "this machine takes " + level);
  std::string images;
  for (auto &image : cudaImages(plan)) images += (images.empty() ? "" : ", ") + image;
  if (!images.empty()) text += "CUDA images for " + images + "\n";
  console.out(text);
  return ExitCode::Ok;
}

} // namespace

void addInspectCommand(CLI::App &app, Session &session) {
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "inspect", "Show what an engine holds", [o, &session] { return inspect(*o, session.console); });
  c->add_option("ENGINE", o->engine, "An engine made by `tare compile`")->required()->type_name("");
  c->add_flag("--header", o->header, "Header and section table only, without loading");
  c->add_flag("--config", o->config, "The configuration (YAML): pruned, rejected and frozen layers");
  c->add_flag("--plan", o->plan, "Inputs, outputs, buffers and steps");
  c->add_flag("--kernels", o->kernels, "Machine code levels, which one this machine takes, and kernels");
  c->add_option("--source", o->source, "With --kernels: the CUDA text of this kernel")->type_name("NAME");
}

} // namespace tare::cli
