// What `tare inspect` says about an engine's CUDA part. In: a validated plan, the engine's report. Out: JSON, and text
// made from it. Holds: kernels and launches come from the plan that a run uses; only registers, stack and spills come
// from the report.
#pragma once
#include "compiler/report/Report.h"
#include "runtime/engine_generated.h"
#include <nlohmann/json.hpp>
#include <optional>

namespace tare::cli {

/// "sm_90" (cubins), "compute_90" (PTX); empty for an engine without CUDA.
std::vector<std::string> cudaImages(const fb::Plan &plan);
/// Launches in order, with sizes and arguments as a person reads them; `plan` has a CUDA part.
nlohmann::ordered_json cudaPlanJson(const fb::Plan &plan);
std::string cudaPlanText(const nlohmann::ordered_json &cuda);
/// Images with their sizes, and what each kernel takes.
nlohmann::ordered_json cudaKernelsJson(const fb::Plan &plan, const std::optional<report::Cuda> &reported);
std::string cudaKernelsText(const nlohmann::ordered_json &cuda, const std::optional<report::Cuda> &reported);

} // namespace tare::cli
