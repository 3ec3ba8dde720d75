// The `plan` dialect: buffers with symbolic sizes and lifetimes, dispatches in order. Same nouns as runtime/engine.fbs.
#ifndef TARE_PLAN
#define TARE_PLAN
include "compiler/graph/GraphDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::tare::plan";
  let summary = "What the runtime executes: buffers and dispatches";
}
class Plan_Op<string name, list<Trait> traits = []> : Op<Plan_Dialect, name, traits>;

def Plan_ProgramOp : Plan_Op<"program", [SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "The whole plan: buffers first, then dispatches in execution order";
  let description = [{ `dims` lists every dimension expression that buffers, dispatches, constraints, inputs and outputs use; kernels load values by index in it.
    Beside the program the module keeps `main` as a declaration (names, types and defaults of inputs and outputs) and one private function per kernel: the
    group's body, with the attribute `plan.kind`, and on its arguments and results `plan.packing` and `plan.pitch` as their buffers have them (a pitch says
    "capacity.K" for the K-th capacity that the dispatch passes).
    Attribute `states`: an array of dictionaries {input, output, axis, input_capacity, output_capacity} for the context-owned tensors (engine.fbs State):
    numbers of the tensors in `main`, the axis, the names of the two symbols. Attributes `checks` (array of dictionaries {name, heads, rank, precision,
    flops}, in the order of their buffers) and `check_input` ({anchors, mask, batch, tokens, past, window}) for fidelity checks (engine.fbs Checks). }];
  let arguments = (ins StrArrayAttr:$symbols, Graph_DimsAttr:$dims);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$symbols $dims attr-dict-with-keyword $body";
}
def Plan_BufferOp : Plan_Op<"buffer"> {
  let summary = "One buffer; `kind` is input, output, weight, arena, per_thread or check; index = its order in the program";
  let description = [{ `bytes` has one entry. `type` is the tensor it holds (symbolic). `tensor` numbers inputs and outputs. Live in steps [first, last].
    A weight names its constant (`name`) and how it is stored (`packing`: "raw", or "panel32" for GEMM operands: [ceil(N/32)][K][32], zero padded; for fidelity
    checks "check_panel32": [K,R,X] as [K][ceil(R/32)][X][32], "check_nibble32": the same of i8 in [-8,7], value + 8, columns c and c + 16 in one byte,
    "check_row32": [K,R] as [K][ceil(R/32)][32]). A `check` buffer (`tensor`: its number) is the kernel's tare_check_rows, made by the runtime for every run. `pitch`: physical dims for addressing
    when they differ from the logical ones (a cache that the context owns has room for `capacity` rows). }];
  let arguments = (ins StrAttr:$kind, StrAttr:$name, TypeAttr:$type, Graph_DimsAttr:$bytes, DefaultValuedAttr<I64Attr, "-1">:$tensor,
                       DefaultValuedAttr<I64Attr, "0">:$first, DefaultValuedAttr<I64Attr, "0">:$last, DefaultValuedAttr<StrAttr, "\"raw\"">:$packing,
                       OptionalAttr<Graph_DimsAttr>:$pitch, OptionalAttr<ElementsAttr>:$value);
  let assemblyFormat = "$kind $name $type $bytes attr-dict";
}
def Plan_DispatchOp : Plan_Op<"dispatch"> {
  let summary = "One step: a kernel over buffers (indices), operands first";
  let description = [{ The location is the source node of the group's root. `capacities` are passed to the kernel as extra integers. `serial` (unit): thread 0 runs it alone and no
    barrier follows when the next step is serial too. Discardable `graph.scope`: the module path of the root; `plan.cuda_scratch`: the number of an arena buffer that the launches of the step's CUDA kernels use between
    themselves, the last of its buffers in the engine. }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, StrAttr:$kind, DenseI64ArrayAttr:$operands, DenseI64ArrayAttr:$results, DefaultValuedAttr<I64Attr, "-1">:$scratch,
                       OptionalAttr<Graph_DimsAttr>:$capacities, UnitAttr:$serial, Graph_DimsAttr:$flops, Graph_DimsAttr:$bytes);
  let assemblyFormat = "$kernel $kind $operands `->` $results attr-dict";
}
#endif
