// The CUDA part of a plan (engine.fbs Cuda), checked before a driver sees any of it. In: a plan whose other parts are
// valid, sizes and bytes of the CUDA sections. Out: nothing, or why the plan is refused. Must hold afterwards: every
// index is in range, every argument is what its kind says, every image lies inside its section.
#include "runtime/Validate.h"
#include "runtime/format.h"
#include <cstring>

namespace tare {
namespace {
using flatbuffers::String;
Error bad(const char *text, const char *what, uint32_t index) {
  return Error::format(Status::Refused, text, "%s %u", what, index);
}

bool name(const String *s) {
  return s && s->size() > 0 && s->size() <= format::kMaxName && strlen(s->c_str()) == s->size();
}

/// (sm|compute)_[0-9]+a?
bool architecture(const String *s) {
  if (!s || s->size() > 16 || strlen(s->c_str()) != s->size()) return false;
  const char *at = s->c_str();
  if (strncmp(at, "sm_", 3) == 0)
    at += 3;
  else if (strncmp(at, "compute_", 8) == 0)
    at += 8;
  else
    return false;
  const char *digits = at;
  while (*at >= '0' && *at <= '9')
    ++at;
  return at > digits && (!*at || (at[0] == 'a' && !at[1]));
}

Result<void> checkLaunch(const fb::Plan &plan, uint32_t number, uint32_t &step) {
  const auto *launch = plan.cuda()->launches()->Get(number);
  if (launch->step() >= plan.steps()->size() || launch->kernel() >= plan.cuda()->kernels()->size())
    return bad("plan has an index out of range", "CUDA launch", number);
  if (number == 0 ? launch->step() != 0 : launch->step() != step && launch->step() != step + 1)
    return bad("plan has CUDA launches that do not follow the steps", "launch", number);
  step = launch->step();
  if (launch->grid()->size() != 3) return bad("plan has a CUDA grid without three sizes", "launch", number);
  for (uint32_t index : *launch->grid())
    if (index >= plan.dims()->size()) return bad("plan has an index out of range", "grid of CUDA launch", number);
  const auto *buffers = plan.steps()->Get(step)->buffers();
  uint64_t bytes = 0;
  for (const auto *argument : *launch->arguments()) {
    const bool anchors = argument->kind() == fb::CudaArgumentKind::Anchors, wantsCheck = argument->kind() == fb::CudaArgumentKind::Check || anchors;
    bytes += anchors ? format::kAnchorsArgumentBytes : wantsCheck ? format::kCheckArgumentBytes : 8;
    if (bytes > format::kMaxArgumentBytes) return bad("plan passes too many arguments", "CUDA launch", number);
    switch (argument->kind()) {
    case fb::CudaArgumentKind::Dim:
      if (argument->value() >= plan.dims()->size())
        return bad("plan has an index out of range", "argument of CUDA launch", number);
      break;
    case fb::CudaArgumentKind::Buffer:
    case fb::CudaArgumentKind::Check:
    case fb::CudaArgumentKind::Anchors: {
      if (argument->value() >= buffers->size())
        return bad("plan has an index out of range", "argument of CUDA launch", number);
      auto kind = plan.buffers()->Get(buffers->Get(argument->value()))->kind();
      bool isCheck = kind == fb::BufferKind::Check;
      if (isCheck != wantsCheck || kind == fb::BufferKind::PerThread)
        return bad("plan passes a buffer as what it is not", "CUDA launch", number);
      break;
    }
    case fb::CudaArgumentKind::Fault:
    case fb::CudaArgumentKind::Step:
      if (argument->value() != 0) return bad("plan has an index out of range", "argument of CUDA launch", number);
      break;
    default:
      return bad("plan has an unknown kind of CUDA argument", "launch", number);
    }
  }
  return {};
}

Result<void> checkImage(const fb::Cuda &cuda, uint32_t number, const PlanSurroundings &around) {
  const auto *image = cuda.images()->Get(number);
  if (!architecture(image->arch())) return bad("plan has a bad CUDA architecture", "image", number);
  for (uint32_t i = 0; i < number; ++i)
    if (strcmp(cuda.images()->Get(i)->arch()->c_str(), image->arch()->c_str()) == 0)
      return bad("plan has a CUDA architecture twice", "image", number);
  if (image->section() >= around.sectionCount || !around.cudaSections || around.cudaSections[image->section()] == 0)
    return bad("plan names a section that is not a CUDA module", "image", number);
  if (image->offsets()->size() != cuda.kernels()->size() || image->sizes()->size() != cuda.kernels()->size())
    return bad("plan has a CUDA image without one part per kernel", "image", number);
  uint64_t section = around.cudaSections[image->section()];
  for (uint32_t i = 0; i < cuda.kernels()->size(); ++i) {
    uint64_t offset = image->offsets()->Get(i), size = image->sizes()->Get(i), end;
    if (offset % 64 != 0 || size == 0 || __builtin_add_overflow(offset, size, &end) || end > section)
      return bad("plan has a CUDA kernel outside of its section", "image", number);
    if (image->arch()->c_str()[0] == 'c' && around.cudaData[image->section()][end - 1] != 0)
      return bad("plan has a PTX text without an end", "image", number);
  }
  return {};
}
} // namespace

Result<void> validateCuda(const fb::Plan &plan, const PlanSurroundings &around) {
  const fb::Cuda &cuda = *plan.cuda();
  if (cuda.kernels()->size() > format::kMaxItems || cuda.launches()->size() > format::kMaxItems)
    return Error(Status::Limit, "plan has too many CUDA kernels or launches");
  if (cuda.images()->size() == 0 || cuda.images()->size() > format::kMaxSections)
    return Error(Status::Refused, "plan names no CUDA image or too many of them");
  const String *precision = cuda.precision();
  if (precision && !name(precision)) return Error(Status::Refused, "plan has a bad name: CUDA precision");
  for (uint32_t i = 0; i < cuda.kernels()->size(); ++i) {
    const auto *kernel = cuda.kernels()->Get(i);
    if (!name(kernel->name())) return bad("plan has a bad name", "CUDA kernel", i);
    if (kernel->threads() == 0 || kernel->threads() > format::kMaxThreads || kernel->threads() % 32 != 0 ||
        kernel->shared_bytes() > format::kMaxSharedBytes)
      return bad("plan has a CUDA kernel of an impossible size", "kernel", i);
  }
  uint32_t step = 0;
  for (uint32_t i = 0; i < cuda.launches()->size(); ++i)
    TARE_TRY(checkLaunch(plan, i, step));
  if (plan.steps()->size() != 0 && (cuda.launches()->size() == 0 || step + 1 != plan.steps()->size()))
    return bad("plan has a step without a CUDA launch", "step", cuda.launches()->size() == 0 ? 0 : step + 1);
  for (uint32_t i = 0; i < cuda.images()->size(); ++i)
    TARE_TRY(checkImage(cuda, i, around));
  return {};
}

} // namespace tare
