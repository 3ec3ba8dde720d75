// Check (a), weights. In: a layer's parameters and their decoded values. Out: per tensor the counts that the rows present, constant, finite, weights and
// noise need. -0.0 is zero; the threshold is compared in f32 after decoding (f32(1e-6) is not below 1e-6); NaN is not below it.
#pragma once
#include "compiler/checks/Evidence.h"
#include "compiler/checks/Parameters.h"
#include "compiler/reference/Evaluator.h"

namespace tare::checks {
/// `decoded`: the parameter's value, or null when its bytes are missing.
TensorEvidence measureTensor(const Parameter &parameter, const reference::Tensor *decoded, double threshold);
/// SHA-256 (hex) of a constant's bytes as they are stored, splats written out.
std::string hashOf(mlir::ElementsAttr value);
} // namespace tare::checks
