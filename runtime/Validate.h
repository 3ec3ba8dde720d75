// The gate between a plan's bytes and everything that uses them. In: the plan section and the sizes of the other sections. Out: the plan, of which every
// index, count, program, lifetime and reference is in range; after that no other code needs to check them again.
#pragma once
#include "runtime/engine_generated.h"
#include "runtime/result.h"

namespace tare {

/// Bytes of one element, or 0 for a type that has no whole bytes (u4, i4) or does not exist.
size_t dtypeBytes(fb::DType type);
/// "f32", "i64", ...; "?" for an unknown number.
const char *dtypeName(fb::DType type);

/// `codeSections[i]`: bytes of the section at index i of the file's table when it is code, else 0; `cudaSections` and `cudaData` the same for CUDA modules (null: there are none).
struct PlanSurroundings {
  uint64_t weightBytes = 0;
  const uint64_t *codeSections = nullptr;
  uint32_t sectionCount = 0;
  const uint64_t *cudaSections = nullptr;
  const uint8_t *const *cudaData = nullptr;
};

/// Plan.cuda (runtime/ValidateCuda.cpp): kernels, launches, images. Called by validatePlan when everything else was checked.
Result<void> validateCuda(const fb::Plan &plan, const PlanSurroundings &around);
/// FlatBuffers' own verifier first, then ours. `data` is aligned to 8 bytes.
Result<const fb::Plan *> validatePlan(const uint8_t *data, uint64_t bytes, const PlanSurroundings &around);

} // namespace tare
