// The module path of an ONNX node as PyTorch's exporters leave it: in the metadata of newer ones, in the node names of older ones. In: a node. Out: its
// segments joined by dots, "layers.7.up", or nothing.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <onnx/onnx_pb.h>
#include <string>

namespace tare {

/// The innermost module of pkg.torch.onnx.name_scopes: a Python list whose last entry is the node's own function name.
/// "['', 'm', 'm.layers.1', 'm.layers.1.attn', 'linear_10']" gives "m.layers.1.attn".
std::string innermostScope(llvm::StringRef list);

/// From the scopes, else from the name: "/layers.7/up/MatMul" gives "layers.7.up". Empty when the node has neither.
std::string modulePathOf(const onnx::NodeProto &node);

} // namespace tare
