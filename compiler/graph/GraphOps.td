// The ops of the `graph` dialect. Every op has a reference in compiler/reference and, unless it is structural, an emitter in compiler/codegen/cpu.
// Shapes: broadcasting is NumPy's. Where an ONNX op takes a shape, sizes or offsets as an operand, the importer has resolved it symbolically:
// the result type's dims (or a #graph.dims attribute) say it, so no graph op reads a shape from data.
#ifndef TARE_GRAPH_OPS
#define TARE_GRAPH_OPS
include "compiler/graph/GraphDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Graph_Tensor : Type<CPred<"::llvm::isa<::mlir::RankedTensorType>($_self)">, "ranked tensor", "::mlir::RankedTensorType">;
class Graph_Op<string name, list<Trait> traits = []> : Op<Graph_Dialect, name, traits>;
class Graph_PureOp<string name, list<Trait> traits = []> : Graph_Op<name, !listconcat([Pure], traits)>;

// ---- sources -------------------------------------------------------------------------------------------------------------------
def Graph_ConstantOp : Graph_PureOp<"constant"> {
  let summary = "A constant tensor: dense<> when small, dense_resource<> (memory-mapped, never copied) when large";
  let description = [{ `name` is the initializer's own name (empty for a constant without one). `overridable` marks an initializer that is also a
    graph input: a caller may feed another value, so no check and no fold may rely on it.
    `graph.constant "fc1.weight" dense<0.0> : tensor<128x640xf32>` }];
  let arguments = (ins StrAttr:$name, ElementsAttr:$value, UnitAttr:$overridable);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$name (`overridable` $overridable^)? $value attr-dict `->` type($result)";
  let hasFolder = 0;
}
def Graph_DimsConstantOp : Graph_PureOp<"dims_constant"> {
  let summary = "A small i64/i32 tensor of rank 0 or 1 whose elements are symbolic dimensions: what a Shape/Gather/Concat chain computes";
  let arguments = (ins Graph_DimsAttr:$content);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$content attr-dict `:` type($result)";
}
def Graph_RangeOp : Graph_PureOp<"range"> {
  let summary = "start + i*delta for i in [0, length of the result); start and delta are symbolic integers, cast to the element type";
  let arguments = (ins Graph_DimsAttr:$start_delta);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$start_delta attr-dict `:` type($result)";
}
def Graph_FillOp : Graph_PureOp<"fill"> {
  let summary = "A tensor of one repeated value (ConstantOfShape)";
  let arguments = (ins AnyAttr:$value);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$value attr-dict `->` type($result)";
}

// ---- pointwise -----------------------------------------------------------------------------------------------------------------
def Graph_UnaryOp : Graph_PureOp<"unary"> {
  let summary = "Elementwise function of one tensor; same shape. isnan/isinf give i1. `gelu_*`, `silu` are recognised or native activations";
  let arguments = (ins Graph_UnaryKindAttr:$kind, Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$kind $x attr-dict `:` type($x) `->` type($result)";
}
def Graph_BinaryOp : Graph_PureOp<"binary"> {
  let summary = "Elementwise function of two tensors with broadcasting; comparisons give i1. Integer div truncates, mod takes the divisor's sign, fmod the dividend's; pow follows ONNX";
  let arguments = (ins Graph_BinaryKindAttr:$kind, Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
}
def Graph_SelectOp : Graph_PureOp<"select"> {
  let summary = "cond ? lhs : rhs with broadcasting of all three (Where); cond is i1";
  let arguments = (ins Graph_Tensor:$cond, Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($lhs) `,` type($rhs) `->` type($result)";
}
def Graph_CastOp : Graph_PureOp<"cast"> {
  let summary = "Element type conversion: to narrower floats rounds to nearest even, float to integer truncates, to i1 is `!= 0`";
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}
def Graph_DequantizeOp : Graph_PureOp<"dequantize"> {
  let summary = "(x - zero_point) * scale, per tensor, per axis or per block along axis (DequantizeLinear)";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$scale, Optional<Graph_Tensor>:$zero_point, I64Attr:$axis, DefaultValuedAttr<I64Attr, "0">:$block_size);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// ---- moving elements: each result element is one element of one operand ------------------------------------------------------------
def Graph_ReshapeOp : Graph_PureOp<"reshape"> {
  let summary = "Same elements in row-major order under the result type's dims (Reshape, Flatten, Squeeze, Unsqueeze); no data moves";
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}
def Graph_TransposeOp : Graph_PureOp<"transpose"> {
  let summary = "result dim i is operand dim perm[i]";
  let arguments = (ins Graph_Tensor:$x, DenseI64ArrayAttr:$perm);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x $perm attr-dict `:` type($x) `->` type($result)";
}
def Graph_ExpandOp : Graph_PureOp<"expand"> {
  let summary = "Broadcast to the result type's dims (Expand)";
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}
def Graph_SliceOp : Graph_PureOp<"slice"> {
  let summary = "result[i] = x[starts + i*steps]; one start and step per dimension, already clamped; negative steps walk down";
  let arguments = (ins Graph_Tensor:$x, Graph_DimsAttr:$starts, DenseI64ArrayAttr:$steps);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x $starts $steps attr-dict `:` type($x) `->` type($result)";
}
def Graph_ConcatOp : Graph_PureOp<"concat"> {
  let summary = "Operands one after another along axis";
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$axis `(` $inputs `)` attr-dict `:` functional-type($inputs, $result)";
}
def Graph_PadOp : Graph_PureOp<"pad"> {
  let summary = "Constant padding: `before` elements in front per dimension, the result type's dims say the rest; negative values crop";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$value, Graph_DimsAttr:$before);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `,` $value $before attr-dict `:` type($x) `,` type($value) `->` type($result)";
}
def Graph_TileOp : Graph_PureOp<"tile"> {
  let summary = "result[i] = x[i mod dim] per dimension";
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}
def Graph_GatherOp : Graph_PureOp<"gather"> {
  let summary = "result[.., i.., ..] = x[.., indices[i..], ..] along axis; negative indices count from the end; out of range is a run-time error";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `[` $indices `]` $axis attr-dict `:` type($x) `,` type($indices) `->` type($result)";
}
def Graph_GatherElementsOp : Graph_PureOp<"gather_elements"> {
  let summary = "result[i] = x[i with the axis entry replaced by indices[i]]";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `[` $indices `]` $axis attr-dict `:` type($x) `,` type($indices) `->` type($result)";
}
def Graph_GatherNDOp : Graph_PureOp<"gather_nd"> {
  let summary = "ONNX GatherND: the last dim of indices addresses the dims of x after batch_dims";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, I64Attr:$batch_dims);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `[` $indices `]` $batch_dims attr-dict `:` type($x) `,` type($indices) `->` type($result)";
}
def Graph_TriluOp : Graph_PureOp<"trilu"> {
  let summary = "Keeps the upper (or lower) triangle of the last two dims, zero elsewhere; k shifts the diagonal";
  let arguments = (ins Graph_Tensor:$x, Graph_DimsAttr:$k, BoolAttr:$upper);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x $k $upper attr-dict `:` type($x) `->` type($result)";
}

// ---- contractions, reductions, normalisations --------------------------------------------------------------------------------------
def Graph_MatmulOp : Graph_PureOp<"matmul"> {
  let summary = "NumPy matmul with batch broadcasting; 1-D operands as NumPy has them";
  let arguments = (ins Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
}
def Graph_ReduceOp : Graph_PureOp<"reduce"> {
  let summary = "Reduction over `axes` (non-negative, sorted); keepdims leaves 1s. arg_max/arg_min take one axis and give i64; last_index picks the last of equal elements";
  let arguments = (ins Graph_ReduceKindAttr:$kind, Graph_Tensor:$x, DenseI64ArrayAttr:$axes, BoolAttr:$keepdims, UnitAttr:$last_index);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$kind $x $axes `keepdims` $keepdims (`last_index` $last_index^)? attr-dict `:` type($x) `->` type($result)";
}
def Graph_CumSumOp : Graph_PureOp<"cumsum"> {
  let summary = "Running sum along axis";
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x $axis attr-dict `:` type($x) `->` type($result)";
}
def Graph_SoftmaxOp : Graph_PureOp<"softmax"> {
  let summary = "Softmax over one axis, maximum subtracted; a row of -inf gives NaN; `log` for LogSoftmax";
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis, UnitAttr:$log);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x $axis (`log` $log^)? attr-dict `:` type($x) `->` type($result)";
}
def Graph_LayerNormOp : Graph_PureOp<"layer_norm"> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias over dims [axis, rank); scale and bias broadcast to them";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$scale, Optional<Graph_Tensor>:$bias, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Graph_RmsNormOp : Graph_PureOp<"rms_norm"> {
  let summary = "x / sqrt(mean(x^2) + epsilon) * scale over dims [axis, rank)";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$scale, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Graph_AttentionOp : Graph_PureOp<"attention"> {
  let summary = "softmax(scale * q k^T + bias) v, made by fusion only; heads of q may be a multiple of the heads of k and v (GQA)";
  let description = [{ q [B,S,H,D] and the result [B,S,H,D]; k [B,T,G,D], v [B,T,G,Dv] when `heads_last` is false they are [B,H,S,D], [B,G,T,D]. Each of q, k, v, result
    has its own flag: `layout` is a string of four letters, 's' for [B,S,H,D], 'h' for [B,H,S,D], in the order q k v result. `bias` broadcasts to [B,H,S,T].
    `nan_guard`: rows whose softmax is NaN become 0 (the IsNaN/Where form of newer exporters); without it they stay NaN. }];
  let arguments = (ins Graph_Tensor:$q, Graph_Tensor:$k, Graph_Tensor:$v, Optional<Graph_Tensor>:$bias, F64Attr:$scale, StrAttr:$layout, UnitAttr:$nan_guard);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Graph_FidelityCheckOp : Graph_PureOp<"fidelity_check", [AttrSizedOperandSegments]> {
  let summary = "sum_k (|| W_k h - p_k ||_2 < tau_k) E_k per token (spec 6); near anchors only when it has them, carried elsewhere";
  let description = [{ h [.., D], W [K,R,D], p [K,R], tau [K], E [K,F]; result [.., F], added to the FFN's first bias. Without more operands every token is evaluated.
    `anchors` (i32 [batch, A], -1 is padding; h is [batch, T, D]): evaluated are the first token and the `window` tokens before each anchor, every other
    token has the bits of the last evaluated one. `quantized` (i8 [K,R,D], in [-8,7] when `precision` is int4) with `scale` (f32 [K,R,ceil(D/group)])
    stand for W at evaluated tokens: W ~ quantized * scale of its group of `group` elements along D. A run without anchors uses W itself.
    `precision`: f32, int8, int4; or dense: evidence says that it must not become sparse (graph-sparsify-fidelity-checks then leaves out `anchors`).
    Discardable: `graph.check` (string, name in reports), `graph.check_evidence` (dictionary, graph-measure-fidelity-checks). }];
  let arguments = (ins Graph_Tensor:$h, Graph_Tensor:$w, Graph_Tensor:$p, Graph_Tensor:$tau, Graph_Tensor:$e, Optional<Graph_Tensor>:$anchors,
                       Optional<Graph_Tensor>:$quantized, Optional<Graph_Tensor>:$scale, DefaultValuedAttr<StrAttr, "\"f32\"">:$precision,
                       DefaultValuedAttr<I64Attr, "3">:$window, DefaultValuedAttr<I64Attr, "0">:$group);
  let results = (outs Graph_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$h, "::mlir::Value":$w, "::mlir::Value":$p, "::mlir::Value":$tau, "::mlir::Value":$e), [{
    build($_builder, $_state, type, h, w, p, tau, e, ::mlir::Value(), ::mlir::Value(), ::mlir::Value());
  }]>];
  let assemblyFormat = [{ $h `,` $w `,` $p `,` $tau `,` $e (`near` $anchors^ `:` type($anchors))? (`as` $quantized^ `,` $scale `:` type($quantized) `,` type($scale))?
    attr-dict `:` `(` type($h) `,` type($w) `,` type($p) `,` type($tau) `,` type($e) `)` `->` type($result) }];
}

// ---- structure -----------------------------------------------------------------------------------------------------------------------
def Graph_YieldOp : Graph_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["LayerOp", "GroupOp"]>]> {
  let summary = "Ends a layer or a group with its results";
  let arguments = (ins Variadic<Graph_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}
def Graph_LayerOp : Graph_PureOp<"layer", [SingleBlock]> {
  let summary = "A named sub-module with one activation in and one out (spec 1); what checks, rewriting, reports and gradients speak of";
  let description = [{ The body's only argument is the activation; positions, masks and constants are captured from above. `marked_by` is path, metadata, rules or
    discovery. Passes that measure attach `verdict`; only graph-short-circuit-layers erases, and only after the independent checker agrees.
    `input_name`/`output_name` are the source names of the activation and the result (for --emit-onnx).
    ```
    %y = graph.layer "layers.7.pos_enc" "position_encoding_enhancer" "path" (%x) : tensor<..> -> tensor<..> { ^bb0(%a: tensor<..>): ... graph.yield %o : tensor<..> }
    ``` }];
  let arguments = (ins StrAttr:$name, StrAttr:$role, StrAttr:$marked_by, Graph_Tensor:$input, OptionalAttr<Graph_VerdictAttr>:$verdict);
  let results = (outs Graph_Tensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name $role $marked_by `(` $input `)` (`verdict` $verdict^)? attr-dict-with-keyword `:` type($input) `->` type($result) $body";
}
def Graph_GroupOp : Graph_PureOp<"group", [IsolatedFromAbove, SingleBlock]> {
  let summary = "A fusion group: becomes one kernel. Two groups with equal bodies share the kernel's code";
  let description = [{ All inputs are explicit. What each kind may contain is written in docs/architecture.md ("Fusion groups"). }];
  let arguments = (ins Graph_GroupKindAttr:$kind, Variadic<Graph_Tensor>:$inputs);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind `(` $inputs `)` attr-dict-with-keyword `:` functional-type($inputs, $results) $body";
}
#endif
