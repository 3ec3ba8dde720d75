// Every pass: summary, before ==> after, options. One pass, one file, one lit test, one name (test/house checks it).
// The order in which they run is passes/Pipeline.cpp. docs/passes.md is made from this file.
#ifndef TARE_PASSES
#define TARE_PASSES
include "mlir/Pass/PassBase.td"

class TarePass<string arg> : Pass<arg, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tare::graph::GraphDialect"];
}

// ---- marked --------------------------------------------------------------------------------------------------------------------------
def MarkLayersPass : TarePass<"graph-mark-layers"> {
  let summary = "Puts marked groups of nodes into graph.layer regions with name and role (spec 2)";
  let description = [{
    Sources of a mark in order: rules file, metadata, module path (passes/default-rules.yaml), names of initializers. Constant-only nodes stay outside and
    are captured; the residual Add belongs to the region; what cannot be a layer is listed in the module attribute `graph.rejected`.
    ```
    %b = graph.unary <relu> %x ... loc("/layers.7/pos_enc/Relu")
    %y = graph.binary <add> %x, %b ... loc("/layers.7/pos_enc/Add")
    ==>
    %y = graph.layer "layers.7.pos_enc" "position_encoding_enhancer" "path"(%x) : ... { ^bb0(%a: ...): %b = graph.unary <relu> %a ... graph.yield %s : ... }
    ```
  }];
  let options = [Option<"rules", "rules", "std::string", "", "YAML file with rules that come before all other sources">];
}

// ---- checked -------------------------------------------------------------------------------------------------------------------------
def CheckLayersPass : TarePass<"graph-check-layers"> {
  let summary = "Measures every candidate (weights, forward, gradient, proof) and attaches its verdict and evidence (spec 3)";
  let description = [{
    Reads only: no op changes. Before: `graph.layer` without verdict. After: every candidate has `verdict #graph.verdict<...>` and `graph.evidence`;
    the module has `graph.calibration` and, when everything is measured, `graph.heatmap`. A policy, threshold or seed that cannot be used is an error.
    ```
    %y = graph.layer "l" "adapter" "path"(%x) : ...
    ==>
    %y = graph.layer "l" "adapter" "path"(%x) verdict <pruned, proved, > attributes {graph.evidence = {elements = 16 : i64, ...}} : ...
    ```
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"strict\"", "strict, inference or proved">,
    Option<"weightThreshold", "weight-threshold", "double", "1e-6", "a weight is dead when abs(w) is below it, compared in f32">,
    Option<"forwardThreshold", "forward-threshold", "double", "1e-5", "the layer is an identity when L2(out - in) is below it">,
    Option<"strictNans", "strict-nans", "bool", "false", "refuse removals that need finite activations">,
    Option<"calibration", "calibration", "std::string", "", "npz file or folder; empty: seeded random inputs">,
    Option<"seed", "seed", "uint64_t", "0", "seed of random inputs and cotangents">,
    Option<"loss", "loss", "std::string", "", "scalar output whose gradient counts; empty: random cotangents at all outputs">,
    Option<"cotangents", "cotangents", "int", "8", "random cotangents per sample">,
    Option<"samples", "samples", "int", "4", "random samples">,
    Option<"sequence", "sequence", "int", "64", "tokens of a random sample">,
    Option<"past", "past", "int", "16", "cached positions of a random sample">,
    ListOption<"keep", "keep", "std::string", "globs: these candidates stay">,
    ListOption<"only", "only", "std::string", "globs: all other candidates stay">,
    Option<"measureAll", "measure-all", "bool", "false", "measure gradients and the heatmap although no verdict needs them">,
    Option<"threads", "threads", "unsigned", "1", "threads over samples; the numbers do not depend on it">];
}

// ---- pruned --------------------------------------------------------------------------------------------------------------------------
def ExposeOverridablesPass : TarePass<"graph-expose-overridables"> {
  let summary = "Initializers that are also graph inputs become optional inputs with their own value as default";
  let description = [{
    After the checks, which see them as parameters that prove nothing (WEIGHT_OVERRIDABLE). The place among the inputs is that of the module attribute
    `graph.input_order`, the source's own.
    ```
    func.func @main(%x: ...) { %w = graph.constant "w" overridable dense<...> : tensor<4xf32> -> tensor<4xf32> ... }
    ==>
    func.func @main(%x: ..., %w: tensor<4xf32> {graph.name = "w", graph.default = "weight", graph.default_value = dense<...>}) { ... }
    ```
  }];
}
def ShortCircuitLayersPass : TarePass<"graph-short-circuit-layers"> {
  let summary = "Erases layers whose verdict is `pruned`, after an independent checker agreed: consumers of the output read the input (spec 4)";
  let description = [{
    ```
    %y = graph.layer "l" "adapter" "path"(%x) verdict <pruned, proved, > ... : ...   %z = graph.unary <relu> %y
    ==>
    %z = graph.unary <relu> %x
    ```
    Removals are listed in the module attribute `graph.removed` (name, input_name, output_name) for --emit-onnx. Removing over half of the parameters or
    every block is an error unless `allow-large-removal` is set.
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"strict\"", "the policy of the verdicts">,
    Option<"weightThreshold", "weight-threshold", "double", "1e-6", "as for graph-check-layers">,
    Option<"forwardThreshold", "forward-threshold", "double", "1e-5", "as for graph-check-layers">,
    Option<"strictNans", "strict-nans", "bool", "false", "as for graph-check-layers">,
    Option<"allowLargeRemoval", "allow-large-removal", "bool", "false", "allow the removal of most of the model">];
}
def InlineLayersPass : TarePass<"graph-inline-layers"> {
  let summary = "Replaces every remaining graph.layer by its body";
  let description = [{
    ```
    %y = graph.layer "l" "adapter" "path"(%x) ... { ^bb0(%a: ...): %b = graph.unary <relu> %a ... graph.yield %b : ... }
    ==>
    %b = graph.unary <relu> %x
    ```
  }];
}

// ---- clean: what a compile does to any graph ------------------------------------------------------------------------------------------
def FoldShapesPass : TarePass<"graph-fold-shapes"> {
  let summary = "Shape arithmetic becomes symbolic constants";
  let description = [{
    Small integer ops over sizes leave the graph: where the content is symbolic a `graph.dims_constant` stays, where it is a number a constant.
    A size that only a run knows is never frozen.
    ```
    %0 = graph.dims_constant <["batch", "seq"]> : tensor<2xi64>
    %1 = graph.gather %0[%one] 0 : ... -> tensor<1xi64>
    ==>
    %1 = graph.dims_constant <["seq"]> : tensor<1xi64>
    ```
  }];
}
def FoldConstantsPass : TarePass<"graph-fold-constants"> {
  let summary = "Ops on constants become constants";
  let description = [{
    Evaluated by the reference in float64 and rounded to the element type; transposes and reshapes move the stored bytes. Overridable constants are never
    folded. A result may be at most `fold-limit` bytes larger than the constants that disappear; weights keep their storage type, so a widening cast or
    dequantize of a big one stays. What stays is listed in the module attribute `graph.not_folded`.
    ```
    %0 = graph.transpose %w [1, 0] : tensor<4x3xf16> -> tensor<3x4xf16>
    ==>
    %0 = graph.constant "w" ... -> tensor<3x4xf16>
    ```
  }];
  let options = [Option<"limit", "fold-limit", "uint64_t", "1048576", "bytes that a folded constant may add beyond what it replaces">];
}
def SimplifyPass : TarePass<"graph-simplify"> {
  let summary = "Local rewrites that change no value";
  let description = [{
    Identity ops, identity and composed transposes, reshape of reshape, lossless double casts, x*1, x-0, known masks, k^T behind merging reshapes, GatherND as
    Gather, and more: passes/SimplifyPointwise.cpp and passes/SimplifyMoves.cpp are tables of rules. Every rule is exact: NaN, infinities and signed
    zeros stay, so `x + 0.0`, `x - x` and `x * 0` are left alone.
    ```
    %1 = graph.transpose %0 [1, 0, 2]; %2 = graph.transpose %1 [0, 2, 1]
    ==>
    %2 = graph.transpose %0 [1, 2, 0]
    ```
  }];
}
def FuseActivationsPass : TarePass<"graph-fuse-activations"> {
  let summary = "Recognises GELU (erf and tanh form) and SiLU that are written out";
  let description = [{
    Any order of the factors, scalars as Mul or Div. Constants must agree with the exact ones up to the rounding of the type that stores them.
    ```
    0.5 * x * (1 + erf(x / sqrt(2)))                               ==> graph.unary <gelu_erf>
    0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))        ==> graph.unary <gelu_tanh>
    x * sigmoid(x)                                                 ==> graph.unary <silu>
    ```
  }];
}
def WidenActivationsPass : TarePass<"graph-widen-activations"> {
  let summary = "f16 and bf16 activations become f32";
  let description = [{
    Inputs and constants keep their type behind a cast, results of main are cast back to their declared type, f64 is left alone. A cast to a narrow type
    and back that the source writes on an f32 value stays: it rounds on purpose.
    ```
    %0 = graph.unary <relu> %x : tensor<4xf16> -> tensor<4xf16>
    ==>
    %0 = graph.cast %x : tensor<4xf16> -> tensor<4xf32>; %1 = graph.unary <relu> %0; %2 = graph.cast %1 : tensor<4xf32> -> tensor<4xf16>
    ```
  }];
}
def MergeEqualOpsPass : TarePass<"graph-merge-equal-ops"> {
  let summary = "Common subexpressions, whatever their source names";
  let description = [{
    Of ops with the same kind, operands, properties and types only the first stays.
    ```
    %0 = graph.unary <cos> %x {graph.node = 1}; %1 = graph.unary <cos> %x {graph.node = 2}   ==>   %0 = graph.unary <cos> %x
    ```
  }];
}
def RemoveDeadOpsPass : TarePass<"graph-remove-dead-ops"> {
  let summary = "Ops that nothing uses and functions besides main disappear";
  let description = [{ `%0 = graph.unary <relu> %x` without a use ==> nothing. Inputs and outputs of main stay. }];
}

def RecogniseFidelityChecksPass : TarePass<"graph-recognise-fidelity-checks"> {
  let summary = "Recognises fidelity checks that exporters wrote out (spec 6)";
  let description = [{
    Less or Greater, z * z, Pow or ReduceL2, d against tau or d^2 against tau^2, W stored in either orientation, casts of the bits. K and R are p's shape.
    ```
    z = reshape(matmul(h, W^T)) - p; matmul(cast(sqrt(sum(z * z)) < tau), E)   ==>   graph.fidelity_check h, W, p, tau, E
    ```
  }];
}
def MeasureFidelityChecksPass : TarePass<"graph-measure-fidelity-checks"> {
  let summary = "Chooses the form of every fidelity check by its agreement with the dense f32 bits on calibration text (spec 6)";
  let description = [{
    The dense model and the sparse one run side by side in the reference evaluator; int4, int8 and f32 are tried in this order, dense is what remains. Attaches
    `precision`, the integers of W where it is int4 or int8, and `graph.check_evidence`; no op is moved.
    ```
    %y = graph.fidelity_check %h, ...   ==>   %y = graph.fidelity_check %h, ... as %q, %scale {precision = "int4", graph.check_evidence = {...}}
    ```
  }];
  let options = [
    Option<"precision", "precision", "std::string", "\"\"", "int4, int8, f32 or dense for every check, measured all the same; empty: the first that agrees">,
    Option<"fidelity", "fidelity", "double", "98", "percent of bits near anchors, per head, that a form must keep">,
    Option<"window", "window", "int64_t", "3", "tokens before an anchor at which checks are evaluated">,
    Option<"calibration", "calibration", "std::string", "", "npz file or folder; empty: seeded random inputs">,
    Option<"seed", "seed", "uint64_t", "0", "seed of random inputs and anchors">,
    Option<"samples", "samples", "int", "4", "random samples">,
    Option<"sequence", "sequence", "int", "64", "tokens of a random sample">,
    Option<"past", "past", "int", "16", "cached positions of a random sample">,
    Option<"threads", "threads", "unsigned", "1", "threads over samples; the numbers do not depend on it">];
}
def SparsifyFidelityChecksPass : TarePass<"graph-sparsify-fidelity-checks"> {
  let summary = "Fidelity checks run near anchors only, as part of the FFN-up kernel (spec 6)";
  let description = [{
    A check whose h is the input of the matmul that it is added to moves right behind that matmul and gets main's new optional input `anchors`; its weights become f32
    constants, W keeps its storage. `precision` and `quantized` are what graph-measure-fidelity-checks attached, or what the option forces. Any other check
    stays as it is, with the code CHECK_NOT_FUSABLE. Module attributes: `graph.checks` for reports, `graph.check_input` for the planner.
    ```
    %1 = graph.matmul %h, %up; %2 = add %1, %bias; %3 = graph.fidelity_check %h, ...; %4 = add %2, %3
    ==>
    %1 = graph.matmul %h, %up; %3 = graph.fidelity_check %h, ... near %anchors; %2 = add %1, %3; %4 = add %2, %bias
    ```
  }];
  let options = [
    Option<"precision", "precision", "std::string", "\"\"", "int4, int8, f32 or dense for every check; empty: what the evidence says">,
    Option<"window", "window", "int64_t", "3", "tokens before an anchor at which checks are evaluated">];
}
def ExpandFidelityChecksPass : TarePass<"graph-expand-fidelity-checks"> {
  let summary = "The dense form of fidelity checks in ordinary ops";
  let description = [{
    `graph.fidelity_check` without anchors ==> matmul, sub, mul, reduce, sqrt, less, cast, matmul: for every token d_k = ||W_k h - p_k||, b_k = d_k < tau_k,
    sum_k b_k E_k (spec 6).
  }];
}

// ---- fused: recognition, then one group per kernel -----------------------------------------------------------------------------------
def FuseNormsPass : TarePass<"graph-fuse-norms"> {
  let summary = "Recognises LayerNorm and RMSNorm that are written out";
  let description = [{
    ReduceMean, Sub, Pow or Mul, Sqrt, Div, Reciprocal or Rsqrt over the last dims, then an optional scale and bias.
    ```
    d = x - mean(x); d / sqrt(mean(d * d) + eps) * scale + bias    ==> graph.layer_norm
    x * (1 / sqrt(mean(x^2) + eps)) * scale                        ==> graph.rms_norm
    ```
  }];
}
def FuseAttentionPass : TarePass<"graph-fuse-attention"> {
  let summary = "Recognises softmax attention";
  let description = [{
    matmul(softmax(scale * q k^T + bias), v) with the scale on either side of the product, an optional IsNaN/Where guard, transposes absorbed into `layout`
    and heads of k and v repeated by Expand (grouped queries). bias stays ordinary ops: graph-form-groups pulls it into the kernel. A fully
    masked row stays NaN unless the source guards it.
    ```
    %0 = graph.matmul %q, %kT; %1 = mul %0, scale; %2 = add %1, %mask; %3 = graph.softmax %2 3; %4 = graph.matmul %3, %v
    ==>
    %4 = graph.attention %q, %k, %v, %mask {layout = "ssss", scale = ...}
    ```
  }];
}
def NormalizeAxesPass : TarePass<"graph-normalize-axes"> {
  let summary = "Softmax and norms over the last axis only, matmul of matrices only";
  let description = [{
    ```
    %0 = graph.softmax %x 1 : tensor<2x3x4xf32>
    ==>
    %1 = graph.transpose %x [0, 2, 1]; %2 = graph.softmax %1 2; %0 = graph.transpose %2 [0, 2, 1]
    ```
  }];
}
def FormGroupsPass : TarePass<"graph-form-groups"> {
  let summary = "Cuts main into fusion groups, each of which becomes one kernel";
  let description = [{
    Before: any clean ops. After: only `graph.constant`, `graph.group`, `graph.reshape` (a view) and `func.return` in the body of `main`; what a group
    of each kind may hold is written in docs/architecture.md ("Fusion groups"). A value that `main` returns is the result of a group, and no two
    results of `main` are the same value: copies are made where they would be.
    ```
    %0 = graph.unary <relu> %x : tensor<4xf32> -> tensor<4xf32>
    ==>
    %0 = graph.group <pointwise>(%x) : (tensor<4xf32>) -> tensor<4xf32> { ^bb0(%a: tensor<4xf32>): %1 = graph.unary <relu> %a ... graph.yield %1 : tensor<4xf32> }
    ```
  }];
}

// ---- planned -------------------------------------------------------------------------------------------------------------------------
def PlanBuffersPass : TarePass<"plan-buffers"> {
  let summary = "Groups become buffers, kernels and dispatches";
  let description = [{
    `main` in fused form ==> one `plan.program` (compiler/plan/Plan.td): a buffer for every tensor that lives between groups, with its symbolic size and the
    steps it lives in; reshapes are views of the same buffer; equal constants are one weight; one private function per distinct group body; `main` stays as a
    declaration.
    ```
    %0 = graph.group <pointwise>(%x) ...; return %0
    ==>
    plan.program ["n"] <[...]> { plan.buffer "input" "x" ...; plan.buffer "output" "y" ...; plan.dispatch @pointwise_f32_relu "pointwise" [0] -> [1] ... }
    ```
  }];
  let dependentDialects = ["::tare::graph::GraphDialect", "::tare::plan::PlanDialect"];
}
#endif
