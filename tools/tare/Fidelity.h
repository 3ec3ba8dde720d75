// What the sparse form of the fidelity checks costs on one input (`tare run --measure-fidelity`; spec 6). In: a request that ran with its anchors and kept the bits of every token.
// Out: per check and head how many bits are those of the dense form, near anchors and overall, and how far the outputs are apart.
// Holds: the dense form is the same engine without anchors, on the same machine code.
#pragma once
#include "tools/tare/EngineHandle.h"
#include <nlohmann/json.hpp>

namespace tare::cli {

struct MeasuredCheck {
  std::string name, precision;
  std::vector<double> window, overall; ///< percent per head, as in reports; `window`: at evaluated tokens
};
struct MeasuredFidelity {
  std::vector<MeasuredCheck> checks;
  int64_t evaluated = 0, tokens = 0;
  double outputDifference = 0, outputMagnitude = 0; ///< largest over all floating-point outputs; magnitude: of the dense form
  int64_t changedArgmax = 0;
  /// As compiles report it: percent of equal bits at evaluated tokens, of the worst check; nothing when no token was evaluated.
  std::optional<double> score() const;
};

/// `sparse` ran on `inputs` (with `anchors`) after traceChecks(); `results` are its outputs.
llvm::Expected<MeasuredFidelity> measureFidelity(const EngineHandle &engine, Request &sparse, const ArrayMap &inputs, const ArrayMap &results, int threads);
/// Lines for a person.
std::vector<std::string> describeFidelity(const MeasuredFidelity &measured);
nlohmann::ordered_json toObject(const MeasuredFidelity &measured);

} // namespace tare::cli
