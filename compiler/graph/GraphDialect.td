// The `graph` dialect: a transformer as tensors in, tensors out. This file holds the dialect, its attributes and enums; GraphOps.td the ops.
#ifndef TARE_GRAPH_DIALECT
#define TARE_GRAPH_DIALECT
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::tare::graph";
  let summary = "Transformer graphs with symbolic shapes and named layers";
  let description = [{
    Values are ranked tensors. A tensor with a dynamic dimension carries `#graph.dims` as its encoding, which names every dimension
    symbolically: `tensor<?x?x128xf32, #graph.dims<["batch", "sequence", 128]>>`. Signless integers are ONNX's signed ones, `ui8` ... its
    unsigned ones, `i1` is bool. An op's location is the source node's name. Discardable attributes that an importer may set on any op:
    `graph.node` (i64, index of the source node), `graph.scope` (string, module path), `graph.meta` (dictionary of source metadata),
    `graph.tensor` (string or array, source names of the results).
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 0;
}

class Graph_Attr<string name, string keyword> : AttrDef<Graph_Dialect, name> { let mnemonic = keyword; }

def Graph_DimsAttr : Graph_Attr<"Dims", "dims"> {
  let summary = "symbolic sizes or offsets: an array of integers and strings, each string a polynomial as tare::Dim prints it";
  let parameters = (ins "::mlir::ArrayAttr":$values);
  let assemblyFormat = "`<` $values `>`";
  let extraClassDeclaration = [{
    /// All entries as Dim. Entries are valid by construction (genVerifyDecl).
    ::tare::Dims dims() const;
    static DimsAttr get(::mlir::MLIRContext *context, ::llvm::ArrayRef<::tare::Dim> dims);
  }];
  let genVerifyDecl = 1;
}

def Graph_VerdictAttr : Graph_Attr<"Verdict", "verdict"> {
  let summary = "what the checks decided about a layer: pruned, rejected or frozen; with the basis or the code";
  let parameters = (ins StringRefParameter<"pruned | rejected | frozen">:$verdict,
                        StringRefParameter<"proved | evidence | empty">:$basis,
                        StringRefParameter<"rejection code or empty">:$code);
  let assemblyFormat = "`<` $verdict `,` $basis `,` $code `>`";
}

class Graph_Enum<string name, list<I32EnumAttrCase> cases> : I32EnumAttr<name, name, cases> {
  let cppNamespace = "::tare::graph";
  let genSpecializedAttr = 0;
}
class Graph_EnumAttr<I32EnumAttr info, string keyword> : EnumAttr<Graph_Dialect, info, keyword> { let assemblyFormat = "`<` $value `>`"; }

class C<string sym, int val, string str> : I32EnumAttrCase<sym, val, str>;
def Graph_UnaryKind : Graph_Enum<"UnaryKind", [
  C<"Neg",0,"neg">, C<"Abs",1,"abs">, C<"Exp",2,"exp">, C<"Log",3,"log">, C<"Sqrt",4,"sqrt">, C<"Rsqrt",5,"rsqrt">, C<"Reciprocal",6,"reciprocal">,
  C<"Erf",7,"erf">, C<"Tanh",8,"tanh">, C<"Sigmoid",9,"sigmoid">, C<"Relu",10,"relu">, C<"Sin",11,"sin">, C<"Cos",12,"cos">, C<"Floor",13,"floor">,
  C<"Ceil",14,"ceil">, C<"Round",15,"round">, C<"Sign",16,"sign">, C<"Not",17,"not">, C<"IsNaN",18,"isnan">, C<"IsInf",19,"isinf">,
  C<"Softplus",20,"softplus">, C<"GeluErf",21,"gelu_erf">, C<"GeluTanh",22,"gelu_tanh">, C<"Silu",23,"silu">, C<"Identity",24,"identity">,
  C<"Tan",25,"tan">, C<"Asin",26,"asin">, C<"Acos",27,"acos">, C<"Atan",28,"atan">, C<"Sinh",29,"sinh">, C<"Cosh",30,"cosh">]>;
def Graph_UnaryKindAttr : Graph_EnumAttr<Graph_UnaryKind, "unary_kind">;
def Graph_BinaryKind : Graph_Enum<"BinaryKind", [
  C<"Add",0,"add">, C<"Sub",1,"sub">, C<"Mul",2,"mul">, C<"Div",3,"div">, C<"Pow",4,"pow">, C<"Mod",5,"mod">, C<"Fmod",6,"fmod">,
  C<"Min",7,"min">, C<"Max",8,"max">, C<"And",9,"and">, C<"Or",10,"or">, C<"Xor",11,"xor">, C<"Eq",12,"eq">, C<"Lt",13,"lt">, C<"Le",14,"le">,
  C<"Gt",15,"gt">, C<"Ge",16,"ge">]>;
def Graph_BinaryKindAttr : Graph_EnumAttr<Graph_BinaryKind, "binary_kind">;
def Graph_ReduceKind : Graph_Enum<"ReduceKind", [
  C<"Sum",0,"sum">, C<"Mean",1,"mean">, C<"Max",2,"max">, C<"Min",3,"min">, C<"Prod",4,"prod">, C<"L1",5,"l1">, C<"L2",6,"l2">,
  C<"SumSquare",7,"sum_square">, C<"LogSumExp",8,"log_sum_exp">, C<"ArgMax",9,"arg_max">, C<"ArgMin",10,"arg_min">, C<"LogSum",11,"log_sum">]>;
def Graph_ReduceKindAttr : Graph_EnumAttr<Graph_ReduceKind, "reduce_kind">;
def Graph_GroupKind : Graph_Enum<"GroupKind", [
  C<"Pointwise",0,"pointwise">, C<"Reduce",1,"reduce">, C<"Row",2,"row">, C<"Gemm",3,"gemm">, C<"BatchMatmul",4,"batch_matmul">, C<"Attention",5,"attention">,
  C<"Append",6,"append">]>;
def Graph_GroupKindAttr : Graph_EnumAttr<Graph_GroupKind, "group_kind">;
#endif
