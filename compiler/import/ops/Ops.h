// The importer functions that the op table lists: one per ONNX op or family. Each reads operands and attributes of one node and sets its
// results; refusals go through NodeImport::fail. Semantics: the ONNX operator specification at the node's opset version.
#pragma once
#include "compiler/import/NodeImport.h"

namespace tare::ops {

// Pointwise.cpp, Activations.cpp
void unary(NodeImport &n, graph::UnaryKind kind);
void binary(NodeImport &n, graph::BinaryKind kind);
template <graph::UnaryKind K> void unaryOp(NodeImport &n) { unary(n, K); }
template <graph::BinaryKind K> void binaryOp(NodeImport &n) { binary(n, K); }
template <graph::BinaryKind K> void chain(NodeImport &n);
void mod(NodeImport &n);
void mean(NodeImport &n);
void where(NodeImport &n);
void castOp(NodeImport &n);
void castLike(NodeImport &n);
void clip(NodeImport &n);
void isInf(NodeImport &n);
void gelu(NodeImport &n);
void leakyRelu(NodeImport &n);
void pRelu(NodeImport &n);
void elu(NodeImport &n);
void celu(NodeImport &n);
void selu(NodeImport &n);
void hardSigmoid(NodeImport &n);
void hardSwish(NodeImport &n);
void softsign(NodeImport &n);
void swish(NodeImport &n);
void mish(NodeImport &n);
void thresholdedRelu(NodeImport &n);

// Shapes.cpp, Sources.cpp
void identity(NodeImport &n);
void dropout(NodeImport &n);
void shape(NodeImport &n);
void size(NodeImport &n);
void reshape(NodeImport &n);
void flatten(NodeImport &n);
void squeeze(NodeImport &n);
void unsqueeze(NodeImport &n);
void expand(NodeImport &n);
void constant(NodeImport &n);
void constantOfShape(NodeImport &n);
void range(NodeImport &n);

// Moves.cpp, Slices.cpp, Gathers.cpp
void transpose(NodeImport &n);
void concat(NodeImport &n);
void split(NodeImport &n);
void slice(NodeImport &n);
void pad(NodeImport &n);
void tile(NodeImport &n);
void trilu(NodeImport &n);
void gather(NodeImport &n);
void gatherElements(NodeImport &n);
void gatherND(NodeImport &n);

// Contractions.cpp, Reductions.cpp, Norms.cpp, Quantized.cpp
void matmul(NodeImport &n);
void gemm(NodeImport &n);
void reduce(NodeImport &n, graph::ReduceKind kind);
template <graph::ReduceKind K> void reduceOp(NodeImport &n) { reduce(n, K); }
void argReduce(NodeImport &n, graph::ReduceKind kind);
template <graph::ReduceKind K> void argOp(NodeImport &n) { argReduce(n, K); }
void cumSum(NodeImport &n);
void softmax(NodeImport &n);
void logSoftmax(NodeImport &n);
void layerNorm(NodeImport &n);
void rmsNorm(NodeImport &n);
void dequantizeLinear(NodeImport &n);
void fidelityCheck(NodeImport &n);

} // namespace tare::ops
