// Row kernels: softmax, layer_norm and rms_norm over the last dim. Each row is computed by one thread in two or three passes while it is hot; what precedes the
// root is computed once, in the first pass, and kept in a result that wants it or in the thread's scratch row. Formulas: ONNX Softmax, LayerNormalization,
// RMSNormalization; the variance is the two-pass one.
#include "compiler/codegen/cpu/Kinds.h"
#include "compiler/plan/Kernels.h"

using namespace mlir;

namespace tare::codegen {
namespace {

using B = graph::BinaryKind;
using U = graph::UnaryKind;

class RowEmitter {
public:
  RowEmitter(Emitter &e, Kernel &k) : e(e), root(plan::rootOf(k.body.front(), "row")), x(root->getOperand(0)), dims(graph::dimsOf(x)) {
    type = Emitter::scalarType(cast<RankedTensorType>(x.getType()).getElementType());
    for (auto [v, m] : llvm::zip(k.body.front().getTerminator()->getOperands(), k.results)) (dependsOnRoot(v) ? after : before).push_back({v, m, {}});
  }

  void emit() {
    Memory scratch{e.env.scratch, type, {dims.back()}};
    auto given = e.memory.find(x);
    const Target *kept = nullptr;
    for (auto &t : before)
      if (t.value == x && t.memory.element == type) kept = &t;
    e.rows(
        dims,
        [&](Indices at, Value, Value) {
          row.assign(at.begin(), at.end());
          bool isGiven = given != e.memory.end();
          source = isGiven ? given->second : kept ? kept->memory : scratch;
          base = isGiven || kept ? e.linear(withColumn(e.integer(0)), source.physical) : e.integer(0);
          work = scratch;
          materialise = !isGiven;
          storeSource = !isGiven && !kept;
          if (isa<graph::SoftmaxOp>(root)) return softmax();
          if (isa<graph::LayerNormOp>(root)) return layerNorm();
          rmsNorm();
        },
        /*whole=*/true);
  }

private:
  bool dependsOnRoot(Value v) {
    if (v.getDefiningOp() == root) return true;
    Operation *op = v.getDefiningOp();
    return op && llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnRoot(operand); });
  }
  SmallVector<Value> withColumn(Value j) {
    SmallVector<Value> at(row);
    at.push_back(j);
    return at;
  }
  Value op(B kind, Value a, Value c) { return e.binary(kind, a, c, type); }
  Value loadX(Value j) { return e.loadLinear(source, e.add(base, j)); }

  /// A pass over the row that computes x (the first one) and folds it.
  Value firstPass(Value init, llvm::function_ref<Value(Value, Value)> fold) {
    return e.loop(e.integer(0), e.dim(dims.back()), init, [&](Value j, ValueRange carried) -> SmallVector<Value> {
      SmallVector<Value> at = withColumn(j);
      Value v = materialise ? e.element(x, at) : loadX(j);
      if (!materialise) e.bind(x, at, v);
      if (storeSource) e.storeLinear(source, e.add(base, j), v);
      for (auto &t : before) e.store(t.memory, at, e.element(t.value, at));
      return {fold(carried[0], v)};
    })[0];
  }
  Value laterPass(Value init, llvm::function_ref<Value(Value, Value, Value)> fold) {
    return e.loop(e.integer(0), e.dim(dims.back()), init, [&](Value j, ValueRange carried) -> SmallVector<Value> { return {fold(carried[0], loadX(j), j)}; })[0];
  }
  /// The last pass: `y` gives the root's value from x at a column; everything behind the root is computed and stored.
  void lastPass(llvm::function_ref<Value(Value j, Indices at)> y) {
    e.loop(e.integer(0), e.dim(dims.back()), [&](Value j) {
      SmallVector<Value> at = withColumn(j);
      e.bindRoot(root->getResult(0), at, y(j, at));
      SmallVector<Value> values;
      for (auto &t : after) values.push_back(e.element(t.value, at));
      for (auto [t, v] : llvm::zip(after, values)) e.store(t.memory, at, v);
    });
  }

  void softmax() {
    bool isLog = cast<graph::SoftmaxOp>(root).getLog();
    Value most = firstPass(e.number(type, -std::numeric_limits<double>::infinity()), [&](Value m, Value v) { return op(B::Max, m, v); });
    Value sum = laterPass(e.number(type, 0), [&](Value s, Value v, Value j) {
      Value power = e.unary(U::Exp, op(B::Sub, v, most), type);
      if (!isLog) e.storeLinear(work, j, power);
      return e.accumulate(s, power);
    });
    if (isLog) {
      Value shift = op(B::Add, most, e.unary(U::Log, sum, type)); // x - (max + log sum)
      return lastPass([&](Value j, Indices at) {
        Value v = loadX(j);
        e.bind(x, at, v);
        return op(B::Sub, v, shift);
      });
    }
    Value factor = op(B::Div, e.number(type, 1), sum);
    lastPass([&](Value j, Indices) { return op(B::Mul, e.loadLinear(work, j), factor); });
  }

  Value meanOf(Value sum) { return op(B::Div, sum, e.cast(e.dim(dims.back()), e.i64(), type)); }
  Value scaled(Value v, Value scale, Value bias, Indices at) {
    v = op(B::Mul, v, e.element(scale, e.broadcast(scale, at, dims)));
    return bias ? op(B::Add, v, e.element(bias, e.broadcast(bias, at, dims))) : v;
  }

  void layerNorm() {
    auto norm = cast<graph::LayerNormOp>(root);
    Value mean = meanOf(firstPass(e.number(type, 0), [&](Value s, Value v) { return e.accumulate(s, v); }));
    Value square = laterPass(e.number(type, 0), [&](Value s, Value v, Value) {
      Value d = op(B::Sub, v, mean);
      return e.accumulate(s, op(B::Mul, d, d));
    });
    Value deviation = e.unary(U::Sqrt, op(B::Add, meanOf(square), e.number(type, norm.getEpsilon().convertToDouble())), type);
    Value factor = op(B::Div, e.number(type, 1), deviation);
    lastPass([&](Value j, Indices at) {
      Value v = loadX(j);
      e.bind(x, at, v);
      return scaled(op(B::Mul, op(B::Sub, v, mean), factor), norm.getScale(), norm.getBias(), at);
    });
  }

  void rmsNorm() {
    auto norm = cast<graph::RmsNormOp>(root);
    Value square = firstPass(e.number(type, 0), [&](Value s, Value v) { return e.accumulate(s, op(B::Mul, v, v)); });
    Value deviation = e.unary(U::Sqrt, op(B::Add, meanOf(square), e.number(type, norm.getEpsilon().convertToDouble())), type);
    Value factor = op(B::Div, e.number(type, 1), deviation);
    lastPass([&](Value j, Indices at) {
      Value v = loadX(j);
      e.bind(x, at, v);
      return scaled(op(B::Mul, v, factor), norm.getScale(), Value(), at);
    });
  }

  Emitter &e;
  Operation *root;
  Value x;
  Dims dims;
  Type type;
  SmallVector<Target> before, after; // results that do not, and that do depend on the root
  SmallVector<Value> row;
  Memory source, work; // where the row of x is read from after the first pass; scratch for powers
  Value base;
  bool materialise = false, storeSource = false;
};

} // namespace

void emitRow(Emitter &e, Kernel &k) { RowEmitter(e, k).emit(); }

} // namespace tare::codegen
