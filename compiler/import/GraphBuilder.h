// What the ONNX importer builds while it walks a graph: the function, the values by tensor name, symbolic contents of small tensors,
// constraints between dims, warnings. In: nodes in topological order (OnnxImporter.cpp). Out: ops of the `graph` dialect.
// Must hold: every value's type carries its dims; a content, where known, equals what the value holds in every run.
#pragma once
#include "compiler/graph/Graph.h"
#include "compiler/import/ExternalData.h"
#include "compiler/import/Import.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <onnx/onnx_pb.h>

namespace tare {

/// Contents of more elements than this are not tracked.
inline constexpr int64_t kMaxContent = 256;
/// Constants of more bytes than this are refused (exit 7): ConstantOfShape, Tile and the like of a corrupt file.
inline constexpr uint64_t kMaxElements = uint64_t(1) << 40;

class GraphBuilder {
public:
  GraphBuilder(mlir::MLIRContext &context, std::string file, ExternalData &external);

  mlir::MLIRContext &context;
  mlir::OpBuilder builder;
  std::string file;                   ///< for messages
  ExternalData &external;
  std::vector<std::string> warnings;
  std::vector<std::string> trainingDropouts, overridables; ///< node and initializer names, for one warning each

  /// Elements of an integer or bool value (or a float value that a Cast made of integers), row-major; null when not known.
  const Dims *content(mlir::Value value) const;
  void setContent(mlir::Value value, Dims elements);
  /// Erases the op behind a value together with its content: a later op may get the same address.
  void erase(mlir::Value value);

  /// Records that `a` and `b` must be equal, or a <= b, in every run. Equal constraints are kept once.
  void require(llvm::StringRef kind, const Dim &a, const Dim &b, const std::string &message);
  mlir::ArrayAttr constraintsAttr();

  /// The symbol for a dimension of an input: ONNX's own name as far as it is an identifier, made unique otherwise.
  Dim inputDim(llvm::StringRef parameter, llvm::StringRef fallback);

  /// A dimension that an exporter wrote as an expression of other inputs' symbols ("past + sequence"); nothing when it is none. Call it when
  /// all plain symbols are known.
  std::optional<Dim> inputExpression(llvm::StringRef parameter) const;

  /// A graph.constant for a TensorProto (initializer, Constant node or attribute), at the builder's insertion point. Small integer tensors get
  /// their content. `overridable`: also a graph input.
  llvm::Expected<mlir::Value> constant(const onnx::TensorProto &tensor, llvm::StringRef name, mlir::Location location, bool overridable = false);
  /// A constant of given integers (i64, i32, bool ...).
  mlir::Value integers(mlir::Type element, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> values, mlir::Location location);
  /// A one-element float or integer constant of rank 0.
  mlir::Value scalar(mlir::Type element, double value, mlir::Location location);
  uint64_t parameters = 0; ///< elements of floating-point weights so far
  /// Protobuf messages made while importing whose bytes constants may point to; kept by ImportedModel::storage.
  std::shared_ptr<std::vector<std::unique_ptr<google::protobuf::Message>>> made;

private:
  llvm::DenseMap<mlir::Value, Dims> contents;
  llvm::SmallVector<mlir::Attribute> constraints;
  llvm::StringSet<> constraintKeys, symbols;
  llvm::StringMap<std::string> renamed;
};

/// The MLIR type of an ONNX element type number, null when Tare has none (string, complex, float8 ...).
mlir::Type elementType(mlir::MLIRContext &context, int32_t onnxType);
/// "float16" and so on for messages; the number when unknown.
std::string typeName(int32_t onnxType);
/// ONNX's name of an MLIR element type.
std::string typeName(mlir::Type type);

} // namespace tare
