// What the family builders write with: weights by name, and graph ops with their result types worked out. In: a checkpoint and a config.
// Out: ops at the end of `main`. Holds: every op carries its module path (graph.scope) and a node name that is unique; arithmetic is f32 whatever
// the storage; missing and misshapen tensors are collected, so that one error names them all.
#pragma once
#include "compiler/graph/Graph.h"
#include "compiler/import/HuggingFaceConfig.h"
#include "compiler/import/Safetensors.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include <set>

namespace tare::huggingface {

class Builder {
public:
  Builder(mlir::MLIRContext &context, const Config &config, const Checkpoint &checkpoint, llvm::StringRef prefix);

  const Config &config;
  const Dim batch = Dim::symbol("batch"), sequence = Dim::symbol("sequence"), past = Dim::symbol("past");
  mlir::Type f32, i64, i1;

  /// Module path of what follows, relative to the task class's base ("encoder.layer.0"); restored when the guard dies.
  class Scope {
  public:
    Scope(Builder &builder, const llvm::Twine &name);
    ~Scope() { builder.scope.resize(before); }

  private:
    Builder &builder;
    size_t before;
  };

  /// An argument of main. `defaultValue`: "", "ones", "zeros" or "empty".
  mlir::Value input(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<Dim> dims, llvm::StringRef defaultValue);
  void output(llvm::StringRef name, mlir::Value value);
  void require(const Dim &a, const Dim &atMost, llvm::StringRef message);

  /// The tensor `<scope>.<name>` in its storage dtype; its shape must be `shape`.
  mlir::Value weight(llvm::StringRef name, llvm::ArrayRef<int64_t> shape);
  bool has(llvm::StringRef name) const;
  /// As f32 (a cast where the storage is narrower).
  mlir::Value wide(mlir::Value value);

  mlir::Value scalar(double value);
  mlir::Value floats(llvm::ArrayRef<float> values);
  mlir::Value unary(graph::UnaryKind kind, mlir::Value x);
  mlir::Value binary(graph::BinaryKind kind, mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, mlir::Value b) { return binary(graph::BinaryKind::Add, a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return binary(graph::BinaryKind::Mul, a, b); }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<Dim> dims);
  mlir::Value expand(mlir::Value x, llvm::ArrayRef<Dim> dims);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  /// x[.., start : start + length, ..] along axis.
  mlir::Value slice(mlir::Value x, int64_t axis, const Dim &start, const Dim &length);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> parts, int64_t axis);
  mlir::Value gather(mlir::Value table, mlir::Value indices);
  mlir::Value range(const Dim &start, const Dim &length);
  mlir::Value cumsum(mlir::Value x, int64_t axis);
  mlir::Value matmul(mlir::Value a, mlir::Value b);
  mlir::Value softmax(mlir::Value x);
  mlir::Value layerNorm(llvm::StringRef name, mlir::Value x);
  mlir::Value rmsNorm(llvm::StringRef name, mlir::Value x);
  /// x W^T (+ bias) with the module's weight [out, in]; leaves x's other dims.
  mlir::Value linear(llvm::StringRef name, mlir::Value x, int64_t out, bool bias);
  mlir::Value activate(mlir::Value x);
  /// softmax(q k^T / sqrt(d) + bias) v with q, k, v [batch, heads, rows, d]; the result is [batch, sequence, heads * d].
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v, mlir::Value bias);
  /// [batch, rows, heads * d] -> [batch, heads, rows, d]
  mlir::Value splitHeads(mlir::Value x, int64_t heads);

  /// The finished module, or what was wrong with the checkpoint. Tensors that were not used are named in `warnings`.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> finish(std::vector<std::string> &warnings, uint64_t &parameters);

private:
  friend class Scope;
  template <typename Op, typename... Args> mlir::Value make(llvm::StringRef name, mlir::Type type, Args &&...args);
  mlir::Location location(llvm::StringRef op);
  std::string path(llvm::StringRef name) const;

  const Checkpoint &checkpoint;
  std::string scope;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  llvm::StringMap<unsigned> names;
  llvm::StringMap<mlir::Value> constants;
  std::set<std::string> used, missing;
  std::vector<std::string> misshapen;
  llvm::SmallVector<mlir::Attribute> constraints, inputNames, outputNames, defaults;
  llvm::SmallVector<mlir::Value> results;
};

/// One per family: fills `main`. Files HuggingFaceEncoder.cpp and HuggingFaceDecoder.cpp.
void buildBert(Builder &builder);
void buildDistilBert(Builder &builder);
void buildLlama(Builder &builder);

} // namespace tare::huggingface
