// The attribute of an argument of `main` whose default (graph.default) is "weight": the elements themselves, as a constant has them. In: nothing. Out: its name.
#pragma once
#include "llvm/ADT/StringRef.h"

namespace tare::graph {
inline constexpr llvm::StringLiteral kDefaultValueAttr = "graph.default_value";
} // namespace tare::graph
