// tare_entry, built straight in the LLVM dialect because it leaves early when a barrier says stop. A kernel is told its fault value (1 + step) and writes it to
// the thread's own word. Serial steps run on thread 0 alone, and the barrier waits until the last of a sequence of them. Joined steps follow one another without a barrier: q, k and v of a layer are one parallel region.
// A step that the runtime marks as skipped costs one load and one branch.
#include "compiler/codegen/cpu/EmitEntry.h"
#include "compiler/plan/Joined.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tare::codegen {
namespace {

class Entry {
public:
  Entry(ModuleOp target, plan::ProgramOp program) : b(OpBuilder::atBlockEnd(target.getBody())), program(program), target(target), loc(program.getLoc()) {
    pointer = LLVM::LLVMPointerType::get(b.getContext());
    i64 = b.getI64Type();
    unsigned i = 0;
    for (auto &d : program.getDims().dims()) dimIndex.try_emplace(d.str(), i++);
  }

  void emit() {
    function = b.create<LLVM::LLVMFuncOp>(loc, "tare_entry", LLVM::LLVMFunctionType::get(i64, {pointer, i64}));
    Block *entry = function.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    args = entry->getArgument(0), thread = entry->getArgument(1);
    buffers = field(0, pointer), dims = field(1, pointer), threads = field(2, i64), pool = field(3, pointer), barrier = field(4, pointer);
    stampState = field(5, pointer), stamp = field(6, pointer);
    fault = at(field(7, pointer), i64, thread);
    skip = field(8, pointer);
    isFirst = b.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::eq, thread, constant(0));
    Value hasStamp = b.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::ne, stamp, b.create<LLVM::ZeroOp>(loc, pointer));
    stamps = b.create<LLVM::AndOp>(loc, isFirst, hasStamp);
    stopped = function.addBlock();
    for (auto buffer : program.getBody().getOps<plan::BufferOp>()) bufferOps.push_back(buffer);
    SmallVector<plan::DispatchOp> steps(program.getBody().getOps<plan::DispatchOp>());
    for (auto [i, step] : llvm::enumerate(steps)) {
      loc = step.getLoc();
      bool serial = step.getSerial();
      bool joined = step->hasAttr(plan::kJoinedAttr), nextSerial = i + 1 < steps.size() && steps[i + 1].getSerial(), nextJoined = i + 1 < steps.size() && steps[i + 1]->hasAttr(plan::kJoinedAttr);
      // The barrier after serial or joined steps stands for all of them: it is not skipped with the last one.
      bool alone = !serial && !joined && !nextJoined;
      onlyWhen(isNeeded(i), [&, i = i, step = step] {
        emitStamp(i);
        onlyWhen(serial ? isFirst : Value(), [&] { emitCall(step, i); });
        if (alone) emitBarrier();
      });
      if (!alone && !(serial && nextSerial) && !nextJoined) emitBarrier();
    }
    emitStamp(steps.size());
    b.create<LLVM::ReturnOp>(loc, constant(0));
    b.setInsertionPointToStart(stopped);
    b.create<LLVM::ReturnOp>(loc, constant(1));
  }

private:
  Value constant(int64_t v) { return b.create<LLVM::ConstantOp>(loc, i64, b.getI64IntegerAttr(v)); }
  Value at(Value base, Type element, Value index) { return b.create<LLVM::GEPOp>(loc, pointer, element, base, ArrayRef<LLVM::GEPArg>{index}); }
  Value field(int64_t i, Type type) { return b.create<LLVM::LoadOp>(loc, type, at(args, i64, constant(i))); }

  Value isNeeded(int64_t step) {
    Type byte = b.getI8Type();
    Value word = b.create<LLVM::LoadOp>(loc, byte, at(skip, byte, constant(step)));
    return b.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::eq, word, b.create<LLVM::ConstantOp>(loc, byte, b.getI8IntegerAttr(0)));
  }
  void onlyWhen(Value cond, llvm::function_ref<void()> body) {
    if (!cond) return body();
    Block *inside = function.addBlock(), *after = function.addBlock();
    b.create<LLVM::CondBrOp>(loc, cond, inside, after);
    b.setInsertionPointToStart(inside);
    body();
    b.create<LLVM::BrOp>(loc, after);
    b.setInsertionPointToStart(after);
  }
  void emitStamp(int64_t step) {
    onlyWhen(stamps, [&] {
      auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64});
      b.create<LLVM::CallOp>(loc, type, ValueRange{stamp, stampState, constant(step)});
    });
  }
  void emitBarrier() {
    auto type = LLVM::LLVMFunctionType::get(i64, {pointer, i64});
    Value stop = b.create<LLVM::CallOp>(loc, type, ValueRange{barrier, pool, thread}).getResult();
    Block *next = function.addBlock();
    b.create<LLVM::CondBrOp>(loc, b.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::ne, stop, constant(0)), stopped, next);
    b.setInsertionPointToStart(next);
  }
  Value dim(const Dim &d) { return b.create<LLVM::LoadOp>(loc, i64, at(dims, i64, constant(dimIndex.lookup(d.str())))); }

  void emitCall(plan::DispatchOp step, int64_t number) {
    SmallVector<Value> operands;
    for (int64_t index : step.getOperands()) operands.push_back(b.create<LLVM::LoadOp>(loc, pointer, at(buffers, pointer, constant(index))));
    for (int64_t index : step.getResults()) operands.push_back(b.create<LLVM::LoadOp>(loc, pointer, at(buffers, pointer, constant(index))));
    if (auto capacities = step.getCapacities())
      for (auto &d : capacities->dims()) operands.push_back(dim(d));
    Value scratch = b.create<LLVM::ZeroOp>(loc, pointer);
    if (int64_t index = step.getScratch(); index >= 0) {
      Value base = b.create<LLVM::LoadOp>(loc, pointer, at(buffers, pointer, constant(index)));
      auto bytes = bufferOps[index].getBytes().dims()[0];
      Value each = bytes.constant() ? constant(*bytes.constant()) : dim(bytes);
      scratch = at(base, b.getI8Type(), b.create<LLVM::MulOp>(loc, each, thread));
    }
    bool serial = step.getSerial();
    llvm::append_range(operands, ArrayRef<Value>{dims, serial ? constant(0) : thread, serial ? constant(1) : threads, scratch, fault, constant(number + 1)});
    b.create<LLVM::CallOp>(loc, target.lookupSymbol<LLVM::LLVMFuncOp>(step.getKernel()), operands);
  }

  OpBuilder b;
  plan::ProgramOp program;
  ModuleOp target;
  Location loc;
  LLVM::LLVMFuncOp function;
  Type pointer, i64;
  Value args, thread, buffers, dims, threads, pool, barrier, stampState, stamp, fault, skip, isFirst, stamps;
  Block *stopped = nullptr;
  SmallVector<plan::BufferOp> bufferOps;
  llvm::StringMap<unsigned> dimIndex;
};

} // namespace

void emitEntry(ModuleOp target, plan::ProgramOp program) { Entry(target, program).emit(); }

} // namespace tare::codegen
