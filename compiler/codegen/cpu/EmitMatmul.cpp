// gemm and batch_matmul kernels: the microkernel drivers of kernels/cpu/kernels.h with an emitted epilogue over finished tiles. A batch_matmul whose operands are
// not strided f32 views (other types, more than four batch dims) is computed element by element instead.
#include "compiler/codegen/cpu/Kinds.h"
#include "compiler/codegen/cpu/Views.h"
#include "compiler/plan/Kernels.h"
#include "kernels/cpu/kernels.h"

using namespace mlir;

namespace tare::codegen {

/// for each element of a finished tile: binds the product, pulls the result, stores it. `indices` maps (row, col) to the root's indices.
static void emitTile(Emitter &e, Kernel &k, Value product, Value tile, Value row, Value col, Value rows, Value cols,
                     llvm::function_ref<SmallVector<Value>(Value)> leading, bool hasColumn, llvm::function_ref<void(Value)> beginRow = {}) {
  Memory finished{tile, e.b.getF32Type(), {Dim(14), Dim(32)}};
  Value result = k.body.front().getTerminator()->getOperand(0);
  e.loop(e.integer(0), rows, [&](Value r) {
    SmallVector<Value> lead = leading(e.add(row, r));
    if (beginRow) beginRow(r);
    e.loop(e.integer(0), cols, [&](Value c) {
      SmallVector<Value> at(lead);
      if (hasColumn) at.push_back(e.add(col, c));
      e.bindRoot(product, at, e.load(finished, {r, c}));
      e.store(k.results[0], at, e.element(result, at));
    });
  });
}

/// The word of bits of row `r` of the tile as one factor per head.
static void loadBits(Emitter &e, Value bits, Value r, int64_t heads) {
  Type i32 = e.b.getI32Type(), f32 = e.b.getF32Type();
  Value word = e.loadLinear({bits, i32, {Dim(1)}}, r);
  e.checkBits.clear();
  for (int64_t k = 0; k < heads; ++k) {
    auto constant = [&](int64_t v) { return e.b.create<arith::ConstantOp>(e.loc, e.b.getI32IntegerAttr(static_cast<int32_t>(v))); };
    Value bit = e.b.create<arith::AndIOp>(e.loc, e.b.create<arith::ShRUIOp>(e.loc, word, constant(k)), constant(1));
    e.checkBits.push_back(e.b.create<arith::UIToFPOp>(e.loc, f32, bit));
  }
}

static int64_t panelKind(Type element) { return element.isF32() ? TARE_F32 : element.isF16() ? TARE_F16 : TARE_BF16; }

/// The tare_check of kernels.h: what the runtime says about this run, then the weights.
static Value emitCheck(Emitter &e, graph::FidelityCheckOp check) {
  auto pointerTo = [&](Value operand) { return operand ? e.memory[operand].pointer : e.b.create<LLVM::ZeroOp>(e.loc, LLVM::LLVMPointerType::get(e.b.getContext())).getResult(); };
  Dims w = graph::dimsOf(check.getW());
  int64_t dense = panelKind(e.memory[check.getW()].element), sparse = check.getPrecision() == "int4" ? TARE_I4 : check.getPrecision() == "int8" ? TARE_I8 : dense;
  SmallVector<Value> words{pointerTo(check.getAnchors()), pointerTo(check.getW()), e.integer(dense), pointerTo(check.getQuantized() ? check.getQuantized() : check.getW()), e.integer(sparse),
                           pointerTo(check.getScale()), e.integer(std::max<int64_t>(check.getGroup(), 1)), pointerTo(check.getP()), pointerTo(check.getTau()), e.dim(w[0]), e.dim(w[1]), e.dim(w[2])};
  return packWords(e, words);
}

void emitGemm(Emitter &e, Kernel &k) {
  auto root = cast<graph::MatmulOp>(plan::rootOf(k.body.front(), "gemm"));
  graph::FidelityCheckOp check = plan::checkOf(k.body.front());
  int rhs = plan::gemmRhsArgument(k.body.front());
  Memory a = e.memory[root.getLhs()], w = k.operands[rhs];
  Dims dims = graph::dimsOf(root.getResult()), lhs = graph::dimsOf(root.getLhs());
  Dim depth = lhs.back(), columns = dims.back(), rows = elementCount(ArrayRef<Dim>(lhs).drop_back());
  Type i64 = e.i64();
  auto pointer = LLVM::LLVMPointerType::get(e.b.getContext());
  SmallVector<Type> arguments{pointer, i64, i64, i64, i64};
  if (check) arguments.push_back(pointer);
  Hook hook(e, k, ".epilogue", arguments, [&](Emitter &inner, Kernel &mine, ValueRange in) {
    auto leading = [&](Value m) { return inner.delinearise(m, ArrayRef<Dim>(dims).drop_back()); };
    auto beginRow = [&](Value r) { if (check) loadBits(inner, in[5], r, *graph::dimsOf(check.getW())[0].constant()); };
    emitTile(inner, mine, root.getResult(), in[0], in[1], in[2], in[3], in[4], leading, true, beginRow);
  });
  std::string name = check ? "tare_gemm_checked_" : "tare_gemm_";
  name += w.element.isF16() ? "f16" : w.element.isBF16() ? "bf16" : "f32";
  SmallVector<Value> words{a.pointer, e.dim(depth), w.pointer, e.dim(rows), e.dim(columns), e.dim(depth)};
  if (check) words.push_back(emitCheck(e, check));
  words.append({e.env.thread, e.env.threads, hook.function, hook.environment});
  callDriver(e, k, name, words);
}

namespace {
struct Side {
  Value pointer, row, col;
  SmallVector<Value> batch; // strides, one per batch dim of the result
};

/// Strides of one operand for the driver; `row` and `col` name its last two dims, a missing one (NumPy's 1-D operands) has stride 0.
std::optional<Side> sideOf(Emitter &e, Value operand, bool isLhs, ArrayRef<Dim> batch) {
  auto view = viewOf(e, operand);
  if (!view || !view->memory.element.isF32()) return std::nullopt;
  Dims dims = graph::dimsOf(operand);
  Side side{view->memory.pointer, e.integer(0), e.integer(0), {}};
  if (dims.size() == 1) {
    (isLhs ? side.col : side.row) = view->strides[0];
    side.batch.assign(batch.size(), e.integer(0));
    return side;
  }
  side.row = view->strides[dims.size() - 2];
  side.col = view->strides[dims.size() - 1];
  size_t own = dims.size() - 2, missing = batch.size() - own;
  side.batch.assign(missing, e.integer(0));
  for (size_t i = 0; i < own; ++i) {
    Value stride = view->strides[i];
    if (dims[i].isConstant(1)) stride = e.integer(0);
    else if (!(dims[i] == batch[missing + i])) {
      Value repeats = e.b.create<arith::CmpIOp>(e.loc, arith::CmpIPredicate::ne, e.dim(dims[i]), e.integer(1));
      stride = e.mul(stride, e.b.create<arith::ExtUIOp>(e.loc, e.i64(), repeats));
    }
    side.batch.push_back(stride);
  }
  return side;
}
} // namespace

void emitBatchMatmul(Emitter &e, Kernel &k) {
  auto root = cast<graph::MatmulOp>(plan::rootOf(k.body.front(), "batch_matmul"));
  Dims dims = graph::dimsOf(root.getResult()), lhs = graph::dimsOf(root.getLhs()), rhs = graph::dimsOf(root.getRhs());
  bool hasRow = lhs.size() > 1, hasColumn = rhs.size() > 1;
  SmallVector<Dim> batch(ArrayRef<Dim>(dims).drop_back(hasRow + hasColumn));
  auto a = sideOf(e, root.getLhs(), true, batch), w = sideOf(e, root.getRhs(), false, batch);
  if (!a || !w || batch.size() > 4) return emitPointwise(e, k);
  Type i64 = e.i64();
  auto pointer = LLVM::LLVMPointerType::get(e.b.getContext());
  Hook hook(e, k, ".epilogue", {pointer, i64, i64, i64, i64, i64}, [&](Emitter &inner, Kernel &mine, ValueRange in) {
    SmallVector<Value> index = inner.delinearise(in[1], batch);
    auto leading = [&](Value m) {
      SmallVector<Value> at(index);
      if (hasRow) at.push_back(m);
      return at;
    };
    emitTile(inner, mine, root.getResult(), in[0], in[2], in[3], in[4], in[5], leading, hasColumn);
  });
  SmallVector<Value> words{a->pointer, w->pointer};
  auto addBatch = [&](ArrayRef<Value> values, int64_t missing) { // leading unused batch dims
    for (size_t i = batch.size(); i < 4; ++i) words.push_back(e.integer(missing));
    llvm::append_range(words, values);
  };
  SmallVector<Value> sizes;
  for (auto &d : batch) sizes.push_back(e.dim(d));
  addBatch(sizes, 1);
  addBatch(a->batch, 0);
  addBatch(w->batch, 0);
  llvm::append_range(words, ArrayRef<Value>{hasRow ? e.dim(lhs[lhs.size() - 2]) : e.integer(1), hasColumn ? e.dim(rhs.back()) : e.integer(1), e.dim(lhs.back()), a->row, a->col, w->row, w->col});
  Value block = packWords(e, words);
  callDriver(e, k, "tare_matmul_f32", {block, e.env.thread, e.env.threads, e.env.scratch, hook.function, hook.environment});
}

} // namespace tare::codegen
