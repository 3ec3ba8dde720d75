// The tool that every kernel emitter works with: one Emitter per LLVM function under construction. In: a kernel function (graph ops over tensors) and
// pointers to its buffers. Out: scf/arith/llvm ops that compute single elements. Any value of the body can be "pulled" at given indices: moving ops
// become index arithmetic, pointwise ops become scalar ops, block arguments become loads. All index arithmetic is i64. What must hold: indices handed to
// element() lie inside the value's dims; memo entries never outlive the region they were made in (Scope).
#pragma once
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>

namespace tare::codegen {

/// Where a tensor lies: `physical` are the dims for addressing (equal to the logical ones unless the buffer has a pitch).
struct Memory {
  mlir::Value pointer;
  mlir::Type element; // IR element type
  Dims physical;
};

/// What a kernel function receives besides buffers, in the order of its trailing arguments.
struct Environment {
  mlir::Value dims, thread, threads, scratch, fault, step;
};

using Indices = llvm::ArrayRef<mlir::Value>;

class Emitter {
public:
  /// `table`: the program's dims table, for loads by index. The builder stands in the function's entry block; constants and dims are made there.
  Emitter(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<Dim> table);

  /// Constants and dims go after this op of the entry block (hooks first load their environment).
  void startAfter(mlir::Operation *op) { lastEntryOp = op; }

  mlir::OpBuilder &b;
  mlir::Location loc;
  Environment env;
  llvm::DenseMap<mlir::Value, Memory> memory; // block arguments (and row scratch) by tensor value
  bool flat = false;                          // one linear index for every tensor of more than one element (EmitPointwise)
  llvm::SmallVector<mlir::Value> checkBits;   // f32 0 or 1 per head: the fidelity check's bits of the row being finished
  mlir::Value badIndex;                       // i8 flag in memory, set when a gather met an index out of range; null when the body has none

  // ---- numbers (EmitDims.cpp) ----
  mlir::Type i64() const { return b.getI64Type(); }
  mlir::Value integer(int64_t value);
  mlir::Value number(mlir::Type type, double value); ///< float or integer constant of a scalar type
  mlir::Value dim(const Dim &d);                     ///< loaded or computed once, in the entry block
  void bindSymbol(llvm::StringRef symbol, mlir::Value value); ///< capacities that the dispatch passes
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value sub(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, mlir::Value c);
  mlir::Value div(mlir::Value a, mlir::Value c); ///< non-negative / positive
  mlir::Value rem(mlir::Value a, mlir::Value c);
  mlir::Value less(mlir::Value a, mlir::Value c); ///< signed
  mlir::Value equal(mlir::Value a, mlir::Value c);
  mlir::Value select(mlir::Value cond, mlir::Value a, mlir::Value c);
  mlir::Value smaller(mlir::Value a, mlir::Value c);
  mlir::Value larger(mlir::Value a, mlir::Value c);
  mlir::Value linear(Indices indices, llvm::ArrayRef<Dim> dims);
  llvm::SmallVector<mlir::Value> delinearise(mlir::Value index, llvm::ArrayRef<Dim> dims);

  // ---- control flow (EmitLoops.cpp) ----
  /// for i in [lo, hi) step 1; the body may carry values: it gets them and returns the next ones.
  llvm::SmallVector<mlir::Value> loop(mlir::Value lo, mlir::Value hi, mlir::ValueRange init,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  void loop(mlir::Value lo, mlir::Value hi, llvm::function_ref<void(mlir::Value)> body);
  mlir::Value choose(mlir::Value cond, mlir::Type type, llvm::function_ref<mlir::Value()> yes, llvm::function_ref<mlir::Value()> no);
  void when(mlir::Value cond, llvm::function_ref<void()> yes);
  /// This thread's part [lo, hi) of [0, count), even to `grain`.
  std::pair<mlir::Value, mlir::Value> part(mlir::Value count, int64_t grain = 1);
  /// All index tuples of `space` that belong to this thread, the last dim innermost. Rows (all dims but the last) are shared out, or the last dim when
  /// there is one row (unless `whole`). `row` is called once per row with the row's indices and must emit the inner loop over [lo, hi).
  void rows(llvm::ArrayRef<Dim> space, llvm::function_ref<void(Indices row, mlir::Value lo, mlir::Value hi)> row, bool whole = false);

  // ---- scalars (EmitMemory.cpp, EmitScalar.cpp) ----
  static mlir::Type scalarType(mlir::Type element);  ///< f16 and bf16 compute in f32, integers are signless, i1 stays
  static mlir::Type storageType(mlir::Type element); ///< what one stored element is in LLVM; i8 for bool and 4-bit pairs
  mlir::Value address(const Memory &m, mlir::Value linear);
  mlir::Value loadLinear(const Memory &m, mlir::Value linear);
  void storeLinear(const Memory &m, mlir::Value linear, mlir::Value scalar);
  mlir::Value load(const Memory &m, Indices indices) { return loadLinear(m, flat ? indices[0] : linear(indices, m.physical)); }
  void store(const Memory &m, Indices indices, mlir::Value s) { storeLinear(m, flat ? indices[0] : linear(indices, m.physical), s); }
  mlir::Value cast(mlir::Value scalar, mlir::Type from, mlir::Type to); ///< IR element types; graph.cast semantics
  mlir::Value unary(graph::UnaryKind kind, mlir::Value x, mlir::Type element);
  mlir::Value binary(graph::BinaryKind kind, mlir::Value x, mlir::Value y, mlir::Type element);
  mlir::Value accumulate(mlir::Value sum, mlir::Value x); ///< sum + x, reassociable for floats
  mlir::Value callMath(llvm::StringRef name, mlir::ValueRange arguments); ///< tare_<name>f or tare_<name> of kernels/cpu/kernels.h

  // ---- pulling (EmitPull.cpp, EmitMoving.cpp, EmitReduce.cpp) ----
  mlir::Value element(mlir::Value tensor, Indices indices);
  /// Makes element(tensor, indices) this scalar in the current scope.
  void bind(mlir::Value tensor, Indices indices, mlir::Value scalar);
  /// The same for a kernel's root, which has no other elements: asking for one marks the module with kMissedRoot, and emitKernels fails.
  void bindRoot(mlir::Value tensor, Indices indices, mlir::Value scalar);
  static constexpr llvm::StringLiteral kMissedRoot = "tare.missed_root";
  /// The operand's indices under NumPy broadcasting to `dims`.
  llvm::SmallVector<mlir::Value> broadcast(mlir::Value operand, Indices indices, llvm::ArrayRef<Dim> dims);
  llvm::SmallVector<mlir::Value> reshapeIndices(Indices indices, llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to);
  /// Tells the index-range analysis that iv lies in [lo, hi).
  void knowRange(mlir::Value iv, int64_t lo, int64_t hi) { ranges[iv] = {lo, hi}; }

private:
  friend struct Scope;
  mlir::Value memoised(int op, mlir::Value a, mlir::Value c, llvm::function_ref<mlir::Value()> make);
  mlir::Value pull(mlir::Value tensor, Indices indices);
  mlir::Value pullMoving(mlir::Value tensor, Indices indices);
  mlir::Value pullConcat(graph::ConcatOp op, Indices indices);
  mlir::Value pullPad(graph::PadOp op, Indices indices);
  mlir::Value pullGather(graph::GatherOp op, Indices indices);
  mlir::Value pullGatherElements(graph::GatherElementsOp op, Indices indices);
  mlir::Value pullGatherND(graph::GatherNDOp op, Indices indices);
  mlir::Value pullDequantize(graph::DequantizeOp op, Indices indices);
  mlir::Value pullReduce(graph::ReduceOp op, Indices indices);
  mlir::Value pullCumSum(graph::CumSumOp op, Indices indices);
  mlir::Value pullMatmul(graph::MatmulOp op, Indices indices);
  mlir::Value pullSmallTable(llvm::ArrayRef<Dim> content, Indices indices, mlir::Type element);
  mlir::Value checkedIndex(mlir::Value index, mlir::Type indexElement, const Dim &size);
  mlir::Value floatToInteger(mlir::Value x, mlir::Type to);
  mlir::Value roundToStorage(mlir::Value x, mlir::Type element);

  using Key = std::pair<const void *, llvm::SmallVector<const void *, 6>>;
  std::vector<std::map<Key, mlir::Value>> memos;
  std::map<std::string, mlir::Value> dimValues;
  std::map<std::pair<const void *, uint64_t>, mlir::Value> constants;
  std::map<std::string, size_t> tableIndex;
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>> ranges;
  llvm::DenseSet<mlir::Value> roots;
  mlir::Block *entry;
  mlir::Operation *lastEntryOp = nullptr; // constants and dims are inserted after this one, at the top of the entry block
};

/// A region of control flow: what is memoised inside is forgotten at its end.
struct Scope {
  explicit Scope(Emitter &e) : e(e) { e.memos.emplace_back(); }
  ~Scope() { e.memos.pop_back(); }
  Scope(const Scope &) = delete;
  Emitter &e;
};

/// Declares (once) a function of the module; for microkernels and hooks.
mlir::LLVM::LLVMFuncOp declare(mlir::ModuleOp module, llvm::StringRef name, mlir::Type result, llvm::ArrayRef<mlir::Type> arguments);

} // namespace tare::codegen
