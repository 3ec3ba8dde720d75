// The CUDA part of an engine as JSON and as text (InspectCuda.h).
#include "tools/tare/InspectCuda.h"
#include "compiler/report/Writers.h"
#include <fmt/format.h>

namespace tare::cli {
using Json = nlohmann::ordered_json;

static std::string str(const flatbuffers::String *text) { return text ? text->str() : ""; }
static std::string dimText(const fb::Plan &plan, uint32_t index) { return str(plan.dims()->Get(index)->text()); }

std::vector<std::string> cudaImages(const fb::Plan &plan) {
  std::vector<std::string> names;
  if (plan.cuda())
    for (auto *image : *plan.cuda()->images())
      names.push_back(str(image->arch()));
  return names;
}

Json cudaPlanJson(const fb::Plan &plan) {
  const fb::Cuda &cuda = *plan.cuda();
  Json json = {{"precision", str(cuda.precision())}, {"images", Json::array()}, {"launches", Json::array()}};
  for (auto *i : *cuda.images())
    json["images"].push_back({{"architecture", str(i->arch())},
                              {"section", i->section()},
                              {"offsets", std::vector<uint64_t>(i->offsets()->begin(), i->offsets()->end())},
                              {"sizes", std::vector<uint64_t>(i->sizes()->begin(), i->sizes()->end())}});
  for (auto *l : *cuda.launches()) {
    auto *kernel = cuda.kernels()->Get(l->kernel());
    Json launch = {{"step", l->step()},
                   {"kernel", str(kernel->name())},
                   {"threads", kernel->threads()},
                   {"shared_bytes", kernel->shared_bytes()},
                   {"grid", Json::array()},
                   {"arguments", Json::array()}};
    for (uint32_t dim : *l->grid())
      launch["grid"].push_back(dimText(plan, dim));
    for (auto *a : *l->arguments()) {
      std::string kind = llvm::StringRef(fb::EnumNameCudaArgumentKind(a->kind())).lower();
      bool isDim = a->kind() == fb::CudaArgumentKind::Dim,
           isBuffer = a->kind() == fb::CudaArgumentKind::Buffer || a->kind() == fb::CudaArgumentKind::Check ||
                      a->kind() == fb::CudaArgumentKind::Anchors;
      launch["arguments"].push_back(
          isDim      ? kind + " " + dimText(plan, a->value())
          : isBuffer ? kind + " " + std::to_string(plan.steps()->Get(l->step())->buffers()->Get(a->value()))
                     : kind);
    }
    json["launches"].push_back(launch);
  }
  return json;
}

std::string cudaPlanText(const Json &plan) {
  std::string text = "CUDA launches:\n";
  auto joined = [](const Json &words) {
    std::string all;
    for (auto &word : words)
      all += (all.empty() ? "" : ", ") + report::escapeTerminal(word.get<std::string>());
    return all;
  };
  for (auto &l : plan["launches"])
    text += fmt::format("  {:>4}  {}  blocks ({}) of {} threads, {} bytes shared: {}\n", l["step"].get<int>(),
                        l["kernel"].get<std::string>(), joined(l["grid"]), l["threads"].get<int>(),
                        l["shared_bytes"].get<int>(), joined(l["arguments"]));
  return text;
}

Json cudaKernelsJson(const fb::Plan &plan, const std::optional<report::Cuda> &reported) {
  Json json = {{"precision", str(plan.cuda()->precision())},
               {"compiler", reported ? Json(reported->toolkit) : Json(nullptr)},
               {"images", Json::array()},
               {"kernels", Json::array()}};
  for (auto *i : *plan.cuda()->images()) {
    uint64_t bytes = 0;
    for (uint64_t size : *i->sizes())
      bytes += size;
    json["images"].push_back({{"architecture", str(i->arch())},
                              {"form", i->arch()->str().front() == 's' ? "cubin" : "ptx"},
                              {"bytes", bytes}});
  }
  for (auto *k : *plan.cuda()->kernels()) {
    Json kernel = {{"name", str(k->name())},  {"kind", nullptr},
                   {"threads", k->threads()}, {"dynamic_shared_bytes", k->shared_bytes()},
                   {"launches", 0},           {"resources", Json::array()}};
    int launches = 0;
    for (auto *l : *plan.cuda()->launches())
      launches += plan.cuda()->kernels()->Get(l->kernel()) == k;
    kernel["launches"] = launches;
    for (auto &r : reported ? reported->kernels : std::vector<report::CudaKernel>()) {
      if (r.name != str(k->name())) continue;
      kernel["kind"] = r.kind;
      for (auto &u : r.resources)
        kernel["resources"].push_back({{"architecture", u.architecture},
                                       {"registers", u.registers},
                                       {"shared_bytes", u.sharedBytes},
                                       {"stack_bytes", u.stackBytes},
                                       {"spill_store_bytes", u.spillStores},
                                       {"spill_load_bytes", u.spillLoads}});
    }
    json["kernels"].push_back(kernel);
  }
  if (reported && !reported->why.empty()) json["why"] = reported->why;
  return json;
}

std::string cudaKernelsText(const Json &cuda, const std::optional<report::Cuda> &reported) {
  std::string text = "CUDA:\n";
  for (auto &i : cuda["images"])
    text += fmt::format("    {:<12} {:>10} bytes of {}\n", i["architecture"].get<std::string>(),
                        i["bytes"].get<uint64_t>(), i["form"].get<std::string>());
  if (reported) return text + report::cudaText(*reported);
  for (auto &k : cuda["kernels"])
    text += fmt::format("  {:<48} {} launches\n", k["name"].get<std::string>(), k["launches"].get<int>());
  return text;
}

} // namespace tare::cli
