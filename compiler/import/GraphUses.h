// Names that a node reads, with those that the bodies of its subgraphs capture. For liveness and rewiring on the protobuf level.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <onnx/onnx_pb.h>
#include <string>

namespace tare {

/// Calls `visit` for every reference to a tensor of the graph around `node`: its operands, and operands and outputs inside its subgraphs that no
/// inner name shadows. The string may be changed. Iterative.
void visitReferences(onnx::NodeProto &node, llvm::function_ref<void(std::string &)> visit);

} // namespace tare
