// Attention kernels (the streaming-softmax driver of kernels/cpu/kernels.h with an emitted bias row) and append kernels (a cache plus new rows, in place when
// the context owns the cache). Layouts: 's' is [B,S,H,D], 'h' is [B,H,S,D].
#include "compiler/codegen/cpu/Views.h"
#include "compiler/plan/Kernels.h"

using namespace mlir;

namespace tare::codegen {

namespace {
/// Strides for batch, head, position; with a physical layout other than the logical one for caches.
SmallVector<Value> headStrides(Emitter &e, const Memory &m, char layout) {
  ArrayRef<Dim> p = m.physical;
  Value batch = e.dim(elementCount(p.drop_front(1))), second = e.dim(elementCount(p.drop_front(2))), third = e.dim(elementCount(p.drop_front(3)));
  return layout == 's' ? SmallVector<Value>{batch, third, second} : SmallVector<Value>{batch, second, third};
}
} // namespace

void emitAttention(Emitter &e, Kernel &k) {
  auto root = cast<graph::AttentionOp>(plan::rootOf(k.body.front(), "attention"));
  StringRef layout = root.getLayout();
  Memory q = e.memory[root.getQ()], key = e.memory[root.getK()], v = e.memory[root.getV()], out = k.results[0];
  Dims qDims = graph::dimsOf(root.getQ()), kDims = graph::dimsOf(root.getK()), vDims = graph::dimsOf(root.getV());
  auto head = [](ArrayRef<Dim> dims, char l) { return l == 's' ? dims[2] : dims[1]; };
  auto position = [](ArrayRef<Dim> dims, char l) { return l == 's' ? dims[1] : dims[2]; };
  Dim heads = head(qDims, layout[0]), queries = position(qDims, layout[0]), keys = position(kDims, layout[1]);
  auto pointer = LLVM::LLVMPointerType::get(e.b.getContext());
  Value hookFunction = e.b.create<LLVM::ZeroOp>(e.loc, pointer), environment = hookFunction;
  if (root.getBias()) {
    Type i64 = e.i64();
    Hook hook(e, k, ".bias", {pointer, i64, i64, i64, i64, i64}, [&](Emitter &inner, Kernel &, ValueRange in) {
      Memory row{in[0], inner.b.getF32Type(), {Dim(1)}};
      SmallVector<Dim> space{qDims[0], heads, queries, keys};
      inner.loop(inner.integer(0), in[5], [&](Value i) {
        Value at[] = {in[1], in[2], in[3], inner.add(in[4], i)};
        inner.storeLinear(row, i, inner.element(root.getBias(), inner.broadcast(root.getBias(), at, space)));
      });
    });
    hookFunction = hook.function;
    environment = hook.environment;
  }
  SmallVector<Value> words{q.pointer, key.pointer, v.pointer, out.pointer, e.dim(qDims[0]), e.dim(heads), e.dim(head(kDims, layout[1])), e.dim(queries), e.dim(keys),
                           e.dim(qDims[3]), e.dim(vDims[3])};
  llvm::append_range(words, headStrides(e, q, layout[0]));
  llvm::append_range(words, headStrides(e, key, layout[1]));
  llvm::append_range(words, headStrides(e, v, layout[2]));
  llvm::append_range(words, headStrides(e, out, layout[3]));
  words.push_back(e.number(e.b.getF64Type(), root.getScale().convertToDouble()));
  words.push_back(e.integer(root.getNanGuard()));
  callDriver(e, k, "tare_attention_f32", {packWords(e, words), hookFunction, environment, e.env.thread, e.env.threads, e.env.scratch});
}

void emitAppend(Emitter &e, Kernel &k) {
  auto root = cast<graph::ConcatOp>(plan::rootOf(k.body.front(), "append"));
  Value old = root.getInputs()[0], fresh = root.getInputs()[1];
  Memory result = k.results[0], cache = e.memory[old];
  Value moved = e.b.create<LLVM::ICmpOp>(e.loc, LLVM::ICmpPredicate::ne, cache.pointer, result.pointer);
  e.when(moved, [&] { emitNest(e, Target{old, result, {}}); });
  SmallVector<Dim> offset(graph::dimsOf(fresh).size(), Dim(0));
  offset[root.getAxis()] = graph::dimsOf(old)[root.getAxis()];
  emitNest(e, Target{fresh, result, offset});
}

} // namespace tare::codegen
