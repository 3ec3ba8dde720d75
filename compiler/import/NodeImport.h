// One ONNX node while it is imported: what an importer function of the op table sees. In: operands as values of the graph, attributes, the
// opset version. Out: results set with out(). Must hold: after fail() nothing more is expected of the function but to return.
#pragma once
#include "compiler/import/GraphBuilder.h"

namespace tare {

class NodeImport {
public:
  NodeImport(GraphBuilder &g, const onnx::NodeProto &proto, int64_t version, mlir::Location location, llvm::ArrayRef<mlir::Value> operands);

  GraphBuilder &g;
  const onnx::NodeProto &proto;
  const int64_t version; ///< opset version of the node's domain
  const mlir::Location location;

  // ---- operands -----------------------------------------------------------------------------------------------------------------
  unsigned operandCount() const { return operands.size(); }
  /// Null when the operand is absent ("" or beyond the list).
  mlir::Value in(unsigned i) const { return i < operands.size() ? operands[i] : mlir::Value(); }
  const Dims &dims(unsigned i);
  int64_t rank(unsigned i) { return static_cast<int64_t>(dims(i).size()); }
  mlir::Type element(unsigned i) const;
  /// Contents of operand i; null when it is absent or not known.
  const Dims *content(unsigned i) const { return in(i) ? g.content(in(i)) : nullptr; }
  /// Contents that must be known: fails with "depends on data" otherwise. `what` names the operand ("shape", "axes").
  const Dims *requireContent(unsigned i, llvm::StringRef what);
  /// The same, all constant.
  std::optional<llvm::SmallVector<int64_t>> requireIntegers(unsigned i, llvm::StringRef what);

  // ---- attributes (each read marks it as known; unread ones are refused at the end) -------------------------------------------------
  int64_t integer(llvm::StringRef name, int64_t fallback);
  std::optional<int64_t> integer(llvm::StringRef name);
  double real(llvm::StringRef name, double fallback);
  std::optional<double> real(llvm::StringRef name);
  std::optional<llvm::SmallVector<int64_t>> integers(llvm::StringRef name);
  std::optional<llvm::SmallVector<double>> reals(llvm::StringRef name);
  std::string text(llvm::StringRef name, llvm::StringRef fallback);
  const onnx::AttributeProto *attribute(llvm::StringRef name, std::optional<onnx::AttributeProto::AttributeType> type = {});
  void ignoreAttribute(llvm::StringRef name) { read.insert(name); }
  /// Fails when an attribute was not read by the importer function.
  void refuseUnknownAttributes();

  /// `axis` as a non-negative index into `rank` dims; fails naming the allowed range. `inclusive` allows axis == rank.
  int64_t axis(int64_t axis, int64_t rank, bool inclusive = false);
  /// Several axes, normalised, sorted; fails on repeats.
  llvm::SmallVector<int64_t> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  // ---- results ------------------------------------------------------------------------------------------------------------------------
  unsigned resultCount() const { return proto.output_size(); }
  bool wanted(unsigned i) const { return static_cast<int>(i) < proto.output_size() && !proto.output(i).empty(); }
  template <typename Op, typename... Args> mlir::Value emit(mlir::RankedTensorType type, Args &&...args) {
    return g.builder.create<Op>(location, type, std::forward<Args>(args)...).getResult();
  }
  /// The type, after a check that the number of elements is below the limit.
  mlir::RankedTensorType type(mlir::Type element, llvm::ArrayRef<Dim> dims);
  void out(unsigned i, mlir::Value value) { results[i] = value; }
  /// A result whose elements are known: a graph.constant or graph.dims_constant where that can hold it; false when it cannot.
  bool outContent(unsigned i, mlir::Type element, llvm::ArrayRef<Dim> shape, Dims elements);
  llvm::SmallVector<mlir::Value> results;

  // ---- shared pieces --------------------------------------------------------------------------------------------------------------------
  /// NumPy broadcasting with constraints where two dims are not known to agree: a run must make them equal, or one of them, the one that the message names, 1.
  /// `strict`: equal in any case (the batch of a matmul, whose kernels take one stride for all sizes).
  Dims broadcast(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b, bool strict = false);
  mlir::Value binary(graph::BinaryKind kind, mlir::Value a, mlir::Value b);
  mlir::Value unary(graph::UnaryKind kind, mlir::Value x);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<Dim> dims);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value scalar(mlir::Type element, double value) { return g.scalar(element, value, location); }

  // ---- errors ------------------------------------------------------------------------------------------------------------------------------
  void fail(std::string message, std::string hint = "", ExitCode code = ExitCode::Refused);
  bool failed() const { return failure.has_value(); }
  llvm::Error takeError();

private:
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<std::optional<Dims>> operandDims;
  llvm::StringSet<> read;
  std::optional<Failure> failure;
};

/// "[batch, 128]" for messages.
std::string text(llvm::ArrayRef<Dim> dims);

} // namespace tare
