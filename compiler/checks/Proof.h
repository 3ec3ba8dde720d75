// The structural proof (spec 3): abstract interpretation over {zero, one, constant, finite, unknown}, plus "equal to the layer's input", that shows a
// layer to be the identity for all finite activations. In: the layer in its function and the values of constants. Out: whether it holds, and the
// witnesses: the constants that are zero (or one) and make it hold. Overridable constants prove nothing (bad-inputs B64).
#pragma once
#include "compiler/graph/Graph.h"
#include "compiler/reference/Evaluator.h"
#include <string>
#include <vector>

namespace tare::checks {

struct Proof {
  bool holds = false;
  /// The identity holds for non-finite activations and signed zeros too: nothing is added to the input.
  bool needsFinite = true;
  std::string rule;
  std::vector<std::string> witnesses;
};
/// `known`: decoded values of the function's constants.
Proof prove(graph::LayerOp layer, const reference::Values &known);

} // namespace tare::checks
