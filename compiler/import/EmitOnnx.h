// The source ONNX graph without its removed layers (`--emit-onnx`, spec 4). In: the source file and, per removed layer, the names of its input
// and output tensors. Out: an .onnx file that any runtime can load. Must hold: names, order and types of graph inputs and outputs stay; what
// does not depend on the removal stays as it is (metadata, unknown fields, names, external data references).
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tare {

struct LayerRemoval {
  std::string layer;  ///< for messages
  std::string input;  ///< source name of the activation that the layer reads
  std::string output; ///< source name of its result: every consumer reads `input` instead
};

/// Consumers of each `output` (in subgraphs too) read `input`; a graph output keeps its name through an Identity. Nodes and initializers that
/// nothing needs any more because of it are dropped. External data: references are kept; when the target lies in another folder the files
/// that are still needed are copied beside it under the same relative names (an existing different file is refused).
/// Failures: a tensor that is not in the graph (also: inside of a function), target equal to source, I/O.
llvm::Error emitPrunedOnnx(llvm::StringRef source, llvm::StringRef target, llvm::ArrayRef<LayerRemoval> removals);

} // namespace tare
