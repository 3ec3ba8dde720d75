// The kernel table: fingerprint of a group body -> function; names such as gemm_f32_384x1536_gelu_erf say kind, types, fixed sizes and epilogue.
#include "compiler/plan/Kernels.h"
#include "kernels/cpu/kernels.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tare::plan {

Operation *rootOf(Block &body, StringRef kind) {
  Operation *last = nullptr;
  for (Operation &op : body.without_terminator()) {
    bool root = kind == "reduce"                             ? isa<graph::ReduceOp, graph::CumSumOp>(op)
                : kind == "row"                              ? isa<graph::SoftmaxOp, graph::LayerNormOp, graph::RmsNormOp>(op)
                : kind == "gemm" || kind == "batch_matmul"   ? isa<graph::MatmulOp>(op)
                : kind == "attention"                        ? isa<graph::AttentionOp>(op)
                : kind == "append"                           ? isa<graph::ConcatOp>(op)
                                                             : false;
    if (root) return &op;
    if (!isa<graph::ConstantOp>(op)) last = &op;
  }
  return last ? last : &body.front();
}

int gemmRhsArgument(Block &body) {
  auto root = dyn_cast_if_present<graph::MatmulOp>(rootOf(body, "gemm"));
  if (!root) return -1;
  Value rhs = root.getRhs();
  if (auto cast = rhs.getDefiningOp<graph::CastOp>()) rhs = cast.getX();
  auto argument = dyn_cast<BlockArgument>(rhs);
  return argument ? static_cast<int>(argument.getArgNumber()) : -1;
}

graph::FidelityCheckOp checkOf(Block &body) {
  auto checks = body.getOps<graph::FidelityCheckOp>();
  return checks.empty() ? graph::FidelityCheckOp() : *checks.begin();
}

std::string gemmPacking(Block &body, unsigned argument) {
  if (static_cast<int>(argument) == gemmRhsArgument(body)) return "panel32";
  graph::FidelityCheckOp check = checkOf(body);
  Value value = body.getArgument(argument);
  if (!check) return "raw";
  if (value == check.getAnchors()) return "check";
  if (value == check.getW()) return "check_panel32";
  if (value == check.getQuantized()) return check.getPrecision() == "int4" ? "check_nibble32" : "check_panel32";
  if (value == check.getScale()) return "check_panel32";
  return value == check.getP() ? "check_row32" : "raw";
}

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Fixed sizes as 384x1536; symbolic ones are left out, they say nothing in a name.
static std::string sizesOf(Value value) {
  SmallVector<std::string> parts;
  for (auto &d : graph::dimsOf(value))
    if (auto c = d.constant()) parts.push_back(std::to_string(*c));
  return llvm::join(parts, "x");
}

static std::string kindOf(Operation &op) {
  return TypeSwitch<Operation *, std::string>(&op)
      .Case([](graph::UnaryOp u) { return graph::stringifyUnaryKind(u.getKind()).str(); })
      .Case([](graph::BinaryOp b) { return graph::stringifyBinaryKind(b.getKind()).str(); })
      .Case([](graph::ReduceOp r) { return graph::stringifyReduceKind(r.getKind()).str(); })
      .Default([](Operation *o) { return o->getName().stripDialect().str(); });
}

/// kind, element type, root sizes, then the ops around the root; short enough to read in a profile.
static std::string baseName(graph::GroupOp group) {
  Block &body = group.getBody().front();
  std::string kind = graph::stringifyGroupKind(group.getKind()).str();
  Operation *root = rootOf(body, kind);
  std::string name = kind;
  Value typed = root->getNumOperands() ? root->getOperands().back() : body.getTerminator()->getOperand(0);
  if (isa<graph::MatmulOp>(root)) {
    int rhs = gemmRhsArgument(body);
    if (kind == "gemm" && rhs >= 0) typed = body.getArgument(rhs);
  } else {
    typed = body.getTerminator()->getOperand(0);
  }
  name += "_" + typeName(cast<RankedTensorType>(typed.getType()).getElementType());
  if (std::string sizes = sizesOf(typed); !sizes.empty()) name += "_" + sizes;
  for (Operation &op : body.without_terminator()) {
    if (isa<graph::ConstantOp>(op) || name.size() > 60) continue;
    if (&op == root && kind != "row" && kind != "reduce" && kind != "pointwise") continue;
    name += "_" + kindOf(op);
  }
  return name;
}

std::string KernelTable::uniqueName(std::string base) {
  std::string name = base;
  for (unsigned i = 2; !names.insert(name).second; ++i) name = base + "_v" + std::to_string(i);
  return name;
}

func::FuncOp KernelTable::kernelFor(graph::GroupOp group, ArrayRef<Storage> storage) {
  MLIRContext *context = module.getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  std::string kind = graph::stringifyGroupKind(group.getKind()).str();
  Block &body = group.getBody().front();
  SmallVector<Type> results(body.getTerminator()->getOperandTypes());
  auto type = builder.getFunctionType(body.getArgumentTypes(), results);
  OwningOpRef<func::FuncOp> kernel = func::FuncOp::create(group.getLoc(), "kernel", type);
  IRMapping mapping;
  Block *entry = kernel->addEntryBlock();
  for (auto [from, to] : llvm::zip(body.getArguments(), entry->getArguments())) mapping.map(from, to);
  builder.setInsertionPointToEnd(entry);
  for (Operation &op : body.without_terminator()) builder.clone(op, mapping);
  SmallVector<Value> yielded;
  for (Value v : body.getTerminator()->getOperands()) yielded.push_back(mapping.lookupOrDefault(v));
  builder.create<func::ReturnOp>(body.getTerminator()->getLoc(), yielded);
  // Names and scopes of the source are the dispatch's; equal code must look equal.
  kernel->walk([](Operation *op) {
    SmallVector<StringAttr> drop;
    for (NamedAttribute attr : op->getDiscardableAttrs())
      if (attr.getName().getValue().starts_with("graph.")) drop.push_back(attr.getName());
    for (StringAttr name : drop) op->removeDiscardableAttr(name);
    if (auto constant = dyn_cast<graph::ConstantOp>(op)) constant.setName("");
  });
  kernel->setVisibility(SymbolTable::Visibility::Private);
  (*kernel)->setAttr(kKindAttr, StringAttr::get(context, kind));
  for (auto [i, s] : llvm::enumerate(storage)) {
    bool isResult = i >= type.getNumInputs();
    auto set = [&](StringRef name, Attribute value) {
      if (isResult)
        kernel->setResultAttr(i - type.getNumInputs(), name, value);
      else
        kernel->setArgAttr(i, name, value);
    };
    if (s.packing != "raw") set(kPackingAttr, StringAttr::get(context, s.packing));
    if (s.pitch) set(kPitchAttr, s.pitch);
  }
  std::string fingerprint;
  llvm::raw_string_ostream stream(fingerprint);
  (*kernel)->print(stream, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  func::FuncOp &slot = byBody[fingerprint];
  if (slot) return slot;
  kernel->setName(uniqueName(baseName(group)));
  slot = kernel.release();
  module.push_back(slot);
  return slot;
}

Dim scratchBytes(func::FuncOp kernel) {
  StringRef kind = kernel->getAttrOfType<StringAttr>(kKindAttr).getValue();
  Operation *root = rootOf(kernel.front(), kind);
  if (kind == "row") {
    Dims dims = graph::dimsOf(root->getOperand(0));
    return dims.empty() ? Dim(8) : dims.back() * Dim(8); // one row in f64 at most
  }
  if (kind == "batch_matmul") return TARE_MATMUL_SCRATCH;
  if (auto attention = dyn_cast<graph::AttentionOp>(root)) {
    Dim dim = graph::dimsOf(attention.getQ()).back(), valueDim = graph::dimsOf(attention.getV()).back();
    // The macro is linear in dim and in value_dim rounded up: taken apart here, it holds for symbols too.
    constexpr int64_t base = TARE_ATTENTION_SCRATCH(0, 0), perDim = TARE_ATTENTION_SCRATCH(1, 0) - base, per32 = TARE_ATTENTION_SCRATCH(0, 32) - base;
    return Dim(base) + Dim(perDim) * dim + Dim(per32) * Dim::floorDiv(valueDim + 31, 32);
  }
  return 0;
}

} // namespace tare::plan
