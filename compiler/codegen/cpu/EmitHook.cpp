// Hooks: functions that a microkernel calls back for finished tiles or bias rows, and the fault flag of gathers. The environment is an array of 8-byte words on
// the kernel's stack: buffer pointers, capacities, dims, fault, step; after inlining LLVM sees through it.
#include "compiler/codegen/cpu/Kinds.h"

using namespace mlir;

namespace tare::codegen {

static Value slotAt(OpBuilder &b, Location loc, Value array, int32_t i) {
  return b.create<LLVM::GEPOp>(loc, array.getType(), b.getI64Type(), array, ArrayRef<LLVM::GEPArg>{i});
}

Hook::Hook(Emitter &outer, Kernel &k, StringRef suffix, ArrayRef<Type> arguments, llvm::function_ref<void(Emitter &, Kernel &, ValueRange)> body) {
  OpBuilder &b = outer.b;
  Location loc = outer.loc;
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Value> words;
  for (auto &m : k.operands) words.push_back(m.pointer);
  for (auto &m : k.results) words.push_back(m.pointer);
  for (auto &c : k.capacities) words.push_back(c.second);
  llvm::append_range(words, ArrayRef<Value>{outer.env.dims, outer.env.fault, outer.env.step});
  auto array = LLVM::LLVMArrayType::get(b.getI64Type(), words.size());
  environment = b.create<LLVM::AllocaOp>(loc, pointer, array, outer.integer(1), 8);
  for (auto [i, word] : llvm::enumerate(words)) b.create<LLVM::StoreOp>(loc, word, slotAt(b, loc, environment, i));

  SmallVector<Type> types{pointer};
  llvm::append_range(types, arguments);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(k.function);
  std::string name = (k.function.getName() + suffix).str();
  auto hook = b.create<LLVM::LLVMFuncOp>(loc, name, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types), LLVM::Linkage::Internal);
  Block *entry = hook.addEntryBlock(b);
  OpBuilder inside = OpBuilder::atBlockEnd(entry);
  SmallVector<Value> loaded;
  for (auto [i, word] : llvm::enumerate(words)) loaded.push_back(inside.create<LLVM::LoadOp>(loc, word.getType(), slotAt(inside, loc, entry->getArgument(0), i)));
  Emitter inner(inside, loc, k.table);
  inner.startAfter(&entry->back());
  Kernel mine = k;
  ArrayRef<Value> rest = loaded;
  auto take = [&] {
    Value v = rest.front();
    rest = rest.drop_front();
    return v;
  };
  for (auto &m : mine.operands) m.pointer = take();
  for (auto &m : mine.results) m.pointer = take();
  for (auto &c : mine.capacities) inner.bindSymbol(c.first, c.second = take());
  inner.env.dims = take();
  inner.env.fault = take();
  inner.env.step = take();
  for (auto [argument, m] : llvm::zip(mine.body.getArguments(), mine.operands)) inner.memory[argument] = m;
  beginFault(inner, mine.body);
  body(inner, mine, entry->getArguments().drop_front());
  endFault(inner);
  inside.create<LLVM::ReturnOp>(loc, ValueRange());
  b.setInsertionPointToEnd(environment.getParentBlock());
  function = b.create<LLVM::AddressOfOp>(loc, hook);
}

void beginFault(Emitter &e, func::FuncOp body) {
  bool gathers = body.walk([](Operation *op) { return isa<graph::GatherOp, graph::GatherElementsOp, graph::GatherNDOp>(op) ? WalkResult::interrupt() : WalkResult::advance(); }).wasInterrupted();
  if (!gathers) return;
  e.badIndex = e.b.create<LLVM::AllocaOp>(e.loc, LLVM::LLVMPointerType::get(e.b.getContext()), e.b.getI8Type(), e.integer(1), 1);
  e.b.create<LLVM::StoreOp>(e.loc, e.number(e.b.getI8Type(), 0), e.badIndex);
}

void endFault(Emitter &e) {
  if (!e.badIndex) return;
  Value flag = e.b.create<LLVM::LoadOp>(e.loc, e.b.getI8Type(), e.badIndex);
  Value bad = e.b.create<arith::CmpIOp>(e.loc, arith::CmpIPredicate::ne, flag, e.number(e.b.getI8Type(), 0));
  e.when(bad, [&] { e.b.create<LLVM::StoreOp>(e.loc, e.env.step, e.env.fault); });
}

} // namespace tare::codegen
