// Which form each fidelity check takes (spec 6). In: main with graph.fidelity_check ops, calibration with anchors. Out: for each check the first of int4, int8, f32
// whose bits agree well enough with the dense f32 bits near anchors, else dense, with every number that was measured. Holds: nothing is rewritten; the
// numbers do not depend on threads or CPU.
#pragma once
#include "compiler/checks/Calibration.h"
#include "compiler/checks/CheckWeights.h"
#include "compiler/graph/Graph.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tare::checks {

/// The sparse bits of one form against the dense f32 bits of the source, in percent of tokens, per head.
struct FormAgreement {
  std::string precision;       ///< int4, int8, f32
  std::vector<double> window;  ///< at evaluated tokens: the first and those near anchors
  std::vector<double> overall; ///< at all tokens, carried bits included
  /// Percent of agreeing bits at evaluated tokens, all heads together.
  double fidelity() const;
};

struct CheckDecision {
  graph::FidelityCheckOp check;
  std::string name, precision; ///< int4, int8, f32, dense
  std::string code, line, why; ///< why a check stays dense, or that it was forced; empty when the ladder chose a sparse form
  std::vector<FormAgreement> forms; ///< in the order in which they were tried; the last is the one that `precision` speaks of
  QuantizedCheck quantized;         ///< for int4 and int8
  int64_t heads = 0, rank = 0, evaluated = 0, tokens = 0;
};

struct CheckLadder {
  std::vector<CheckDecision> checks; ///< in the order of the graph
  std::string anchors;               ///< "file", or "seeded": one per 64 tokens
  /// Largest difference of an output between the dense model and the one with all decisions, and the largest absolute value of an output.
  double outputDifference = 0, outputMagnitude = 0;
};

/// Both models run side by side, op by op: a check sees the states that the decisions before it lead to, and its bits are compared with those of the
/// undisturbed dense model. Codes are fitted to the states of all calibration tokens, agreement is asked for at the few near anchors.
/// Failures: anchors whose batch is not the model's; an op that the reference cannot evaluate.
/// `whyDense`: why a check will be dense whatever is measured (CHECK_NOT_FUSABLE); such a check is not measured, and later ones see what it makes.
llvm::Expected<CheckLadder> climbLadder(mlir::func::FuncOp main, const Calibration &calibration, const CompileOptions &options,
                                        llvm::function_ref<std::string(graph::FidelityCheckOp)> whyDense = {});

} // namespace tare::checks
