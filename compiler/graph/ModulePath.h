// Where in the source's module tree an op belongs. In: an op of the graph or plan dialect. Out: a dotted path such as
// "layers.7.pos_enc.fc1", "" when the source says nothing. Plans, profiles, estimates and progress all speak of modules
// by this one name.
#pragma once
#include "mlir/IR/Operation.h"
#include <string>

namespace tare::graph {

/// The op's `graph.scope`; else the path in its node's name ("/layers.7/pos_enc/fc1/MatMul" -> "layers.7.pos_enc.fc1");
/// else the path of the `graph.layer` around it. A `graph.layer` is its own path.
std::string modulePath(mlir::Operation *op);

} // namespace tare::graph
