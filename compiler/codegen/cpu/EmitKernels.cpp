// emitKernels: one llvm.func per kernel function of the plan, the entry function, then scf, arith and cf are lowered to the LLVM dialect with upstream patterns.
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/codegen/cpu/EmitEntry.h"
#include "compiler/codegen/cpu/Kinds.h"
#include "compiler/graph/Failure.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace tare::codegen {
namespace {

Memory memoryOf(Type type, Value pointer, Attribute pitch) {
  auto tensor = cast<RankedTensorType>(type);
  auto physical = dyn_cast_if_present<graph::DimsAttr>(pitch);
  return {pointer, tensor.getElementType(), physical ? physical.dims() : graph::dimsOf(tensor)};
}

/// Capacity symbols in a pitch, in the order in which the dispatch passes them.
unsigned countCapacities(Attribute pitch, Type type) {
  auto physical = dyn_cast_if_present<graph::DimsAttr>(pitch);
  unsigned count = 0;
  if (physical)
    for (auto [p, l] : llvm::zip(physical.dims(), graph::dimsOf(cast<RankedTensorType>(type)))) count += !(p == l);
  return count;
}

void emitKernel(ModuleOp target, func::FuncOp body, ArrayRef<Dim> table) {
  MLIRContext *context = target.getContext();
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = b.getI64Type();
  unsigned operands = body.getNumArguments(), results = body.getNumResults(), capacities = 0;
  for (unsigned i = 0; i < operands; ++i) capacities += countCapacities(body.getArgAttr(i, plan::kPitchAttr), body.getArgumentTypes()[i]);
  for (unsigned i = 0; i < results; ++i) capacities += countCapacities(body.getResultAttr(i, plan::kPitchAttr), body.getResultTypes()[i]);
  SmallVector<Type> types(operands + results, pointer);
  types.append(capacities, i64);
  types.append({pointer, i64, i64, pointer, pointer, i64});
  StringRef kind = body->getAttrOfType<StringAttr>(plan::kKindAttr).getValue();
  Location loc = body.getLoc();
  auto function = b.create<LLVM::LLVMFuncOp>(loc, body.getSymName(), LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types), LLVM::Linkage::Internal);
  if (kind != "append") // an append in place reads and writes the same memory
    for (unsigned i = 0; i < operands + results; ++i) function.setArgAttr(i, "llvm.noalias", b.getUnitAttr());
  for (unsigned i = 0; i < operands; ++i) function.setArgAttr(i, "llvm.readonly", b.getUnitAttr());
  unsigned trailing = operands + results + capacities;
  function.setArgAttr(trailing, "llvm.noalias", b.getUnitAttr());
  function.setArgAttr(trailing + 3, "llvm.noalias", b.getUnitAttr());
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Emitter e(b, loc, table);
  e.env = {entry->getArgument(trailing), entry->getArgument(trailing + 1), entry->getArgument(trailing + 2), entry->getArgument(trailing + 3), entry->getArgument(trailing + 4),
           entry->getArgument(trailing + 5)};
  Kernel k{body, function, {}, {}, {}, table};
  for (unsigned i = 0; i < capacities; ++i) {
    k.capacities.push_back({plan::capacitySymbol(i), entry->getArgument(operands + results + i)});
    e.bindSymbol(k.capacities.back().first, k.capacities.back().second);
  }
  for (unsigned i = 0; i < operands; ++i) {
    k.operands.push_back(memoryOf(body.getArgumentTypes()[i], entry->getArgument(i), body.getArgAttr(i, plan::kPitchAttr)));
    e.memory[body.getArgument(i)] = k.operands.back();
  }
  for (unsigned i = 0; i < results; ++i)
    k.results.push_back(memoryOf(body.getResultTypes()[i], entry->getArgument(operands + i), body.getResultAttr(i, plan::kPitchAttr)));
  beginFault(e, body);
  if (kind == "row")
    emitRow(e, k);
  else if (kind == "gemm")
    emitGemm(e, k);
  else if (kind == "batch_matmul")
    emitBatchMatmul(e, k);
  else if (kind == "attention")
    emitAttention(e, k);
  else if (kind == "append")
    emitAppend(e, k);
  else
    emitPointwise(e, k);
  endFault(e);
  b.create<LLVM::ReturnOp>(loc, ValueRange());
}

LogicalResult lowerToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  ConversionTarget conversion(*context);
  conversion.addLegalDialect<LLVM::LLVMDialect>();
  conversion.addLegalOp<ModuleOp>();
  conversion.addIllegalDialect<scf::SCFDialect, arith::ArithDialect, cf::ControlFlowDialect>();
  return applyPartialConversion(module, conversion, std::move(patterns));
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> emitKernels(ModuleOp planned) {
  MLIRContext *context = planned.getContext();
  context->loadDialect<LLVM::LLVMDialect, scf::SCFDialect, arith::ArithDialect, cf::ControlFlowDialect>();
  auto programs = planned.getOps<plan::ProgramOp>();
  if (programs.empty()) return fail(ExitCode::Internal, "the module has no plan.program").withHint("run plan-buffers first");
  plan::ProgramOp program = *programs.begin();
  Dims table = program.getDims().dims();
  OwningOpRef<ModuleOp> target = ModuleOp::create(planned.getLoc());
  for (auto body : planned.getOps<func::FuncOp>()) {
    if (!body->hasAttr(plan::kKindAttr)) continue;
    std::string why;
    if (!canEmit(body, why))
      return fail(ExitCode::Internal, "no code for " + why + " in kernel " + body.getSymName().str()).atNode(graph::nodeName(body.getLoc())).withHint("this op and form is missing in the CPU back end: please report it with the model's graph");
    emitKernel(*target, body, table);
    if ((*target)->hasAttr(Emitter::kMissedRoot))
      return fail(ExitCode::Internal, "kernel " + body.getSymName().str() + " asks for an element of its root that the loop does not stand at").atNode(graph::nodeName(body.getLoc())).withHint("this form is missing in the CPU back end: please report it with the model's graph");
  }
  emitEntry(*target, program);
  if (failed(lowerToLLVM(*target))) return fail(ExitCode::Internal, "the kernels did not lower to LLVM");
  return target;
}

} // namespace tare::codegen
