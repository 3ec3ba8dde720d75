// The walk of the ONNX importer over one graph and the functions it calls.
#pragma once
#include "compiler/import/GraphBuilder.h"
#include "compiler/import/OnnxModel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tare {

class GraphImport {
public:
  GraphImport(mlir::MLIRContext &context, const OnnxModel &model, ExternalData &external);
  /// Builds `module`. The first problem found ends it; unsupported ops are looked for before and reported all at once.
  llvm::Error run();

  GraphBuilder g;
  mlir::OwningOpRef<mlir::ModuleOp> module;

private:
  using Scope = llvm::StringMap<mlir::Value>;
  /// What surrounds the nodes being imported: the graph, or a function call that is inlined.
  struct Frame {
    Scope values;
    Opsets opsets;
    std::string prefix;                          ///< of node names: "call/" when inlined
    const onnx::NodeProto *call = nullptr;       ///< gives attribute values
    const onnx::FunctionProto *function = nullptr;
    Metadata metadata;                           ///< of the function and the call
    mlir::Operation *anchor = nullptr;
  };

  llvm::Error checkOps();
  llvm::Error inputs();
  llvm::Error initializers();
  llvm::Error nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &list, Frame &frame, unsigned depth);
  llvm::Error node(const onnx::NodeProto &proto, int index, Frame &frame, unsigned depth);
  llvm::Error inlineCall(const onnx::FunctionProto &function, const onnx::NodeProto &call, const std::string &name, Frame &frame, unsigned depth);
  llvm::Error outputs();
  llvm::Error sparse(const onnx::SparseTensorProto &tensor);
  void annotate(const onnx::NodeProto &proto, int index, const Frame &frame, mlir::Operation *before, llvm::ArrayRef<mlir::Value> results);
  mlir::Location locationOf(const std::string &name);

  const OnnxModel &model;
  mlir::Block *body = nullptr;
  Frame top;
  llvm::SmallVector<mlir::Attribute> argumentNames;
  llvm::StringMap<unsigned> usedNames;
  uint64_t imported = 0; ///< nodes, functions expanded
};

} // namespace tare
