// Which constants are parameters of a layer (spec 1). In: a graph.layer in its function. Out: its parameters in the order in which its ops read them,
// each once, with the value that counts: the constant itself, or what DequantizeLinear makes of it.
#pragma once
#include "compiler/graph/Graph.h"
#include <string>
#include <vector>

namespace tare::checks {

struct Parameter {
  mlir::Value value;           ///< result of `constant`, or of the graph.dequantize that decodes it
  graph::ConstantOp constant;  ///< where the bytes are
  std::string name;            ///< the initializer's own name without the layer's prefix
  std::string storage;         ///< "f32", "f16", "i8", ...
};
std::vector<Parameter> parametersOf(graph::LayerOp layer);

/// Ops outside the layer that compute what it captures from constants only, in block order (Transpose of a weight, DequantizeLinear, ...).
std::vector<mlir::Operation *> constantChain(graph::LayerOp layer);

/// True when nothing but constants reaches the value.
bool isConstantOnly(mlir::Value value);

} // namespace tare::checks
