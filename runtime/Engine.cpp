// Opening: file (EngineReader), signature, plan (Validate), code for this CPU (CpuDevice) or GPU (CudaDevice), in this order: no code is mapped or given to a driver
// before all else is trusted.
#include "runtime/Engine.h"
#include "runtime/CpuDevice.h"
#include <cstdlib>

namespace tare {
namespace {
Result<void> checkSignature(const EngineFile &file, const tare_options &options) {
  if (!options.verify_signature) return {};
  const Section *signature = file.find(format::SectionKind::Signature);
  if (!signature) return Error(Status::Verification, "engine is not signed, but a signature is required");
  constexpr size_t prefix = sizeof(format::kSignaturePrefix) - 1;
  unsigned char message[prefix + format::kDigestBytes];
  memcpy(message, format::kSignaturePrefix, prefix);
  file.digest(message + prefix);
  if (options.verify_signature(options.verify_user, message, sizeof message, signature->data + 32, signature->data) != 0)
    return Error(Status::Verification, "signature does not fit the engine or the key");
  return {};
}
} // namespace

Result<std::shared_ptr<const Engine>> Engine::open(const char *path, const tare_options &options) {
  return make(EngineFile::open(path, options.paranoid || options.verify_signature), options);
}

Result<std::shared_ptr<const Engine>> Engine::fromMemory(const void *data, size_t bytes, const tare_options &options) {
  return make(EngineFile::fromMemory(data, bytes, options.paranoid || options.verify_signature), options);
}

Result<std::shared_ptr<const Engine>> Engine::make(Result<EngineFile> file, const tare_options &options) {
  if (!file) return std::move(file.error());
  auto engine = std::make_shared<Engine>();
  engine->source = std::make_unique<EngineFile>(std::move(*file));
  TARE_TRY(checkSignature(*engine->source, options));

  const auto &sections = engine->source->sections();
  uint64_t codeBytes[format::kMaxSections] = {0}, cudaBytes[format::kMaxSections] = {0};
  const uint8_t *cudaData[format::kMaxSections] = {nullptr};
  for (size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].kind == format::SectionKind::Code) codeBytes[i] = sections[i].bytes;
    if (sections[i].kind == format::SectionKind::CudaModule) cudaBytes[i] = sections[i].bytes, cudaData[i] = sections[i].data;
  }
  const Section *weights = engine->source->find(format::SectionKind::Weights), *planSection = engine->source->find(format::SectionKind::Plan);
  engine->weightData = weights ? weights->data : nullptr;
  PlanSurroundings around{weights ? weights->bytes : 0, codeBytes, static_cast<uint32_t>(sections.size()), cudaBytes, cudaData};
  auto plan = validatePlan(planSection->data, planSection->bytes, around);
  if (!plan) return Error(std::move(plan.error()).atOffset(planSection->offset));
  engine->planView = *plan;

  const char *bound = options.max_level ? options.max_level : getenv("TARE_MAX_LEVEL");
  if (auto taken = engine->takeCode(bound ? bound : "", options.cuda_device); !taken) {
    if (taken.error().code != Status::Environment) return std::move(taken.error());
    engine->noCode = taken.error();
    engine->levelName = "";
  }
  return std::shared_ptr<const Engine>(std::move(engine));
}

/// "cuda" and "cuda:ARCH" take the GPU, "cpu", "cpu:LEVEL", "LEVEL" and "cuda-emu" the CPU. Nothing asked: the CPU when there is code for it, so that a GPU is only
/// used by who wants it; the GPU when the engine has nothing else.
Result<void> Engine::takeCode(const char *asked, int cudaDevice) {
  bool isGpu = strcmp(asked, "cuda") == 0 || strncmp(asked, "cuda:", 5) == 0;
  bool hasCpu = planView->code()->size() > 0 || !planView->cuda();
  if (!isGpu && !hasCpu && *asked)
    return Error::format(Status::Environment, "the engine has no code for CPUs", "only CUDA's, and '%s' is asked for; run with --target cuda, or compile again with --target cpu", asked);
  if (!isGpu && hasCpu) return takeCpuCode(strncmp(asked, "cpu:", 4) == 0 ? asked + 4 : asked);
  if (!planView->cuda()) return Error(Status::Environment, "the engine has no code for GPUs; compile again with --target cuda:sm_XX, or run with --target cpu");
  auto opened = CudaDevice::open(*source, *planView, isGpu && asked[4] ? asked + 5 : "", cudaDevice);
  if (!opened) { // whatever it is: the file can still be inspected and verified
    noCode = opened.error();
    return {};
  }
  device = std::move(*opened);
  levelName = device->level();
  return {};
}

Result<void> Engine::takeCpuCode(const char *bound) {
  const char *names[format::kMaxSections];
  const auto &variants = *planView->code();
  for (uint32_t i = 0; i < variants.size(); ++i) names[i] = variants.Get(i)->level()->c_str();
  auto chosen = chooseLevel(names, variants.size(), bound);
  if (!chosen) return std::move(chosen.error());
  auto mapped = source->mapCode(source->sections()[variants.Get(static_cast<uint32_t>(*chosen))->section()]);
  if (!mapped) return std::move(mapped.error());
  code = std::move(*mapped);
  levelName = names[*chosen];
  return {};
}

Result<tare_code_entry> Engine::entry() const {
  if (!code.data()) return Error(noCode);
  return reinterpret_cast<tare_code_entry>(const_cast<uint8_t *>(code.data()));
}

} // namespace tare
