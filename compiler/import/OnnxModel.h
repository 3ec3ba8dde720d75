// A parsed ONNX file after the checks that need no shapes. In: a path. Out: the protobuf, its map, opsets, functions.
// Must hold: IR and opsets are in range and unique, functions do not recurse, there is a graph with something to compile.
#pragma once
#include "compiler/import/ModelFile.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <onnx/onnx_pb.h>

namespace tare {

using Opsets = std::map<std::string, int64_t>; ///< domain ("" is the default one) to version
using Metadata = std::map<std::string, std::string>;

struct OnnxModel {
  std::shared_ptr<MappedFile> file;
  onnx::ModelProto proto;
  Opsets opsets;
  /// By functionKey(); pointers into proto.
  llvm::StringMap<const onnx::FunctionProto *> functions;
};

/// Reads, checks and parses. Nothing is printed, protobuf's own messages included.
llvm::Expected<std::shared_ptr<OnnxModel>> loadOnnx(llvm::StringRef path);

/// Opset imports of a model or function: each domain once, versions in range for the default domain.
llvm::Expected<Opsets> readOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports, llvm::StringRef owner);
/// The function that a node calls; null when it calls none.
const onnx::FunctionProto *calledFunction(const OnnxModel &model, const onnx::NodeProto &node);

/// metadata_props, from the unknown fields when the installed ONNX is older than the field.
Metadata metadataOf(const onnx::NodeProto &node);         // field 9
Metadata metadataOf(const onnx::FunctionProto &function); // field 14
Metadata metadataOf(const onnx::GraphProto &graph);       // field 16
Metadata metadataOf(const onnx::ModelProto &model);

} // namespace tare
