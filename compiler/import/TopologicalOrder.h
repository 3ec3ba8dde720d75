// The order in which nodes are imported. In: the nodes of one graph or function body and the names that exist before it. Out: indices so that
// every node comes after the producers of its operands, as close to the file's order as possible. Iterative: n log n for n nodes.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <onnx/onnx_pb.h>
#include <vector>

namespace tare {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// The node's own name, or "<op>_<index>" when it has none.
std::string displayName(const onnx::NodeProto &node, int index);

/// Failure: a tensor with two producers (both nodes), an operand that nobody makes (tensor, consumer), a cycle (its path).
/// `exists`: graph inputs, initializers, values of an outer graph.
llvm::Expected<std::vector<int>> topologicalOrder(const NodeList &nodes, llvm::function_ref<bool(llvm::StringRef)> exists);

} // namespace tare
