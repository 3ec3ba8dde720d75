// What recomputing one element costs, in units of one addition; used to decide between recomputing and keeping a value in memory.
#pragma once
#include "compiler/graph/Graph.h"

namespace tare {
/// Cost of the op itself for one element of its result.
double elementCost(mlir::Operation *op);
/// The number of elements for typical sizes (every symbol taken as 64); only ratios matter.
double typicalElements(mlir::Value value);
constexpr double kReadCost = 1, kWriteCost = 1.5;
/// A dispatch and its barrier: about two microseconds.
constexpr double kDispatchCost = 10000;
/// Above this a mask over query and key positions is worth memory (logarithms of T5's buckets); below it is recomputed per head.
constexpr double kQuadraticCost = 15;
/// A pulled expression never gets more expensive than this: kernels stay small, and a chain of a million ops becomes many groups.
constexpr double kLargestExpression = 300;
/// Results that one pointwise kernel writes at most.
constexpr size_t kMostResults = 4;
} // namespace tare
