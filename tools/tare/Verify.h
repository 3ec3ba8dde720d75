// The shadow run for `tare verify` and `tare compile --verify`. In: a model, an engine, cases. Out: text and JSON of the comparison, and exit 4 as an error when
// the violation rate is above the gate.
#pragma once
#include "compiler/import/TensorFiles.h"
#include "tools/tare/EngineHandle.h"
#include <nlohmann/json.hpp>

namespace tare::cli {
struct Console;

struct ShadowResult {
  std::string text;
  nlohmann::ordered_json json;
};
/// `gate` is a rate, not percent. `golden`: the cases carry outputs of their own, and it is said when none of them could be compared.
llvm::Error shadowRun(const std::string &model, const EngineHandle &engine, const std::vector<Sample> &cases, double gate, bool golden, Console &console, ShadowResult &result);

} // namespace tare::cli
