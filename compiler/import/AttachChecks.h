// `tare attach-checks` on the protobuf level (spec 6). In: an ONNX model and the entries of a checks file. Out: the model with one tare.FidelityCheck per
// matched linear layer, whose result is added to that layer's. Holds: names, order and types of graph inputs and outputs stay; nothing is added when
// anything is refused.
#pragma once
#include "compiler/import/ChecksFile.h"
#include <onnx/onnx_pb.h>

namespace tare {

struct AttachedCheck {
  std::string name, layer; ///< the check's module path, and the linear layer's
  int64_t heads = 0, rank = 0, width = 0, columns = 0;
};

/// `file`: of the checks, for messages. Refused: a glob that matches no linear layer, a layer twice, shapes that do not fit, names that are taken, models
/// below opset 15 (the function is made of ops that came with it), linear layers whose weight is no constant or that are a Gemm.
llvm::Expected<std::vector<AttachedCheck>> attachChecks(onnx::ModelProto &model, llvm::ArrayRef<CheckEntry> entries, llvm::StringRef file);

} // namespace tare
