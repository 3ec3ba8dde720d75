// The `graph` dialect for C++: ops, attributes, and the helpers that everyone needs for symbolic tensor types.
#pragma once
#include "compiler/graph/Dim.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/graph/GraphDialect.h.inc"
#include "compiler/graph/GraphEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/graph/GraphAttrs.h.inc"
#define GET_OP_CLASSES
#include "compiler/graph/GraphOps.h.inc"

namespace tare::graph {

/// Attribute names that importers and passes agree on (discardable; see GraphDialect.td).
inline constexpr llvm::StringLiteral kNodeAttr = "graph.node", kScopeAttr = "graph.scope", kMetaAttr = "graph.meta", kTensorAttr = "graph.tensor";
/// Argument and result attributes of the function `main`: the source's own tensor name; on inputs that may be left out, their default
/// ("ones", "zeros", "empty", "positions"), on both the declared element type when it was widened.
inline constexpr llvm::StringLiteral kNameAttr = "graph.name", kDefaultAttr = "graph.default", kDeclaredTypeAttr = "graph.declared_type";
/// Module attributes: constraints between dims that the runtime checks before a run. Array of dictionaries
/// {kind = "equal" | "at_most", a = #graph.dims<[x]>, b = #graph.dims<[y]>, message = "..."}.
inline constexpr llvm::StringLiteral kConstraintsAttr = "graph.constraints";

/// A tensor type with these dims; the encoding is left out when all are constant.
mlir::RankedTensorType tensorType(mlir::Type element, llvm::ArrayRef<Dim> dims);
/// The dims of a tensor type, symbolic or constant. A dynamic dim without encoding becomes a symbol "?" + index (only in hand-written tests).
Dims dimsOf(mlir::RankedTensorType type);
Dims dimsOf(mlir::Value value);
/// The source node name in a location: the innermost NameLoc, or "" when there is none.
std::string nodeName(mlir::Location location);
/// The value's defining constant, through nothing; null when it is not a graph.constant or is overridable.
ConstantOp constantOf(mlir::Value value);
/// Raw bytes of a constant, row-major in ONNX's layout (packed for i4), splats included only as one element (see isSplat).
llvm::ArrayRef<char> rawBytes(mlir::ElementsAttr value);
/// The single element of a constant with one element or a splat, as double; nothing otherwise.
std::optional<double> scalarValue(mlir::Value value);

} // namespace tare::graph
