// Abstract interpretation of a layer (Proof.h). Lattice: what a tensor is in every element, for all finite activations. Every rule below is exact in
// IEEE arithmetic up to the sign of a zero. What is not listed is `finite` when its operands are finite and the op cannot leave the finite numbers
// (overflow aside, which the assumption covers), else `unknown`; 0 * unknown is unknown, so an infinity or NaN in a weight ends every proof.
#include "compiler/checks/Proof.h"
#include "compiler/checks/Parameters.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace tare::graph;

namespace tare::checks {
namespace {

enum class Kind { Unknown, Finite, Constant, One, Zero, Input };

/// `witnesses`: the constants that a Zero, One or Input rests on.
struct Abstract {
  Kind kind = Kind::Unknown;
  std::vector<std::string> witnesses;
  bool zero() const { return kind == Kind::Zero; }
  bool one() const { return kind == Kind::One; }
  bool finite() const { return kind != Kind::Unknown; }
};

class Interpreter {
public:
  Interpreter(LayerOp layer, const reference::Values &known) : layer(layer), known(known) {}

  Abstract run() {
    values[layer.getBody().getArgument(0)] = {Kind::Input, {}};
    return of(layer.getBody().front().getTerminator()->getOperand(0));
  }

private:
  /// Memoised, and without recursion over long chains: operands are worked off a stack first.
  const Abstract &of(Value value) {
    SmallVector<Value> stack{value};
    while (!stack.empty()) {
      Value v = stack.back();
      if (values.count(v)) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      for (Value operand : reads(v))
        if (!values.count(operand)) stack.push_back(operand), ready = false;
      if (ready) {
        values[v] = transfer(v);
        stack.pop_back();
      }
    }
    return values[value];
  }

  SmallVector<Value> reads(Value v) {
    Operation *op = v.getDefiningOp();
    if (!op) { // a layer around or before this one: its argument stands for its input
      auto outer = dyn_cast<LayerOp>(v.getParentBlock()->getParentOp());
      return outer ? SmallVector<Value>{outer.getInput()} : SmallVector<Value>{};
    }
    if (auto inner = dyn_cast<LayerOp>(op)) return {inner.getBody().front().getTerminator()->getOperand(0)};
    return SmallVector<Value>(op->getOperands());
  }

  const Abstract &at(Operation *op, unsigned i) { return values[op->getOperand(i)]; }

  static Abstract with(Kind kind, std::initializer_list<const Abstract *> from) {
    Abstract r{kind, {}};
    for (const Abstract *a : from)
      for (const std::string &w : a->witnesses)
        if (!llvm::is_contained(r.witnesses, w)) r.witnesses.push_back(w);
    return r;
  }
  /// Finite when all operands are.
  Abstract finiteIfAll(Operation *op) {
    for (Value v : op->getOperands())
      if (!values[v].finite()) return {};
    return {Kind::Finite, {}};
  }
  /// The operand itself, for ops that only move or copy elements. Input stays Input only under its own dims.
  Abstract moved(Value result, const Abstract &x, bool sameOrder) {
    if (x.kind != Kind::Input || (sameOrder && dimsOf(result) == dimsOf(layer.getInput()))) return x;
    return {Kind::Finite, {}};
  }

  Abstract classify(ConstantOp op) {
    auto at = known.find(op.getResult());
    if (op.getOverridable() || at == known.end() || !reference::bytesPresent(op.getValue())) return {};
    const reference::Tensor &t = at->second;
    std::string name = op.getName().empty() ? graph::nodeName(op.getLoc()) : op.getName().str();
    bool zero = true, one = true;
    for (double v : t.floats) {
      if (!std::isfinite(v)) return {};
      zero &= v == 0, one &= v == 1;
    }
    for (int64_t v : t.ints) zero &= v == 0, one &= v == 1;
    if (zero) return {Kind::Zero, {name}};
    if (one) return {Kind::One, t.elementCount() > 1 ? std::vector<std::string>{name} : std::vector<std::string>{}};
    return {Kind::Constant, {}};
  }

  Abstract transfer(Value v) {
    Operation *op = v.getDefiningOp();
    if (!op) {
      auto outer = dyn_cast<LayerOp>(v.getParentBlock()->getParentOp());
      return outer ? values[outer.getInput()] : Abstract{Kind::Finite, {}}; // the function's inputs are finite by assumption
    }
    return TypeSwitch<Operation *, Abstract>(op)
        .Case([&](ConstantOp c) { return classify(c); })
        .Case<DimsConstantOp, RangeOp>([&](Operation *) { return Abstract{Kind::Finite, {}}; })
        .Case([&](FillOp fill) { return this->fill(fill); })
        .Case([&](LayerOp inner) { return values[inner.getBody().front().getTerminator()->getOperand(0)]; })
        .Case([&](UnaryOp u) { return unary(u); })
        .Case([&](BinaryOp b) { return binary(b); })
        .Case([&](SelectOp s) { return select(s); })
        .Case([&](CastOp c) { return cast(c); })
        .Case([&](DequantizeOp d) { return dequantize(d); })
        .Case([&](MatmulOp m) {
          const Abstract &a = at(m, 0), &b = at(m, 1);
          if (a.zero() && b.finite()) return with(Kind::Zero, {&a});
          if (b.zero() && a.finite()) return with(Kind::Zero, {&b});
          return finiteIfAll(m);
        })
        .Case([&](ReduceOp r) { return reduce(r); })
        .Case([&](CumSumOp c) { return at(c, 0).zero() ? with(Kind::Zero, {&at(c, 0)}) : finiteIfAll(c); })
        // A probability is finite; a row that is masked completely is the one exception, and not a finite activation.
        .Case([&](SoftmaxOp s) { return s.getLog() ? finiteIfAll(s) : Abstract{Kind::Finite, {}}; })
        .Case([&](LayerNormOp n) { return norm(n, n.getBias() ? &at(n, 2) : nullptr); })
        .Case([&](RmsNormOp n) { return norm(n, nullptr); })
        .Case([&](FidelityCheckOp c) { return at(c, 4).zero() ? with(Kind::Zero, {&at(c, 4)}) : finiteIfAll(c); })
        .Case([&](ConcatOp c) { return joined(c); })
        .Case([&](PadOp p) {
          if (at(p, 0).zero() && at(p, 1).zero()) return with(Kind::Zero, {&at(p, 0), &at(p, 1)});
          return finiteIfAll(p);
        })
        .Case([&](TriluOp t) { return at(t, 0).zero() ? with(Kind::Zero, {&at(t, 0)}) : finiteIfAll(t); })
        .Case<ReshapeOp, ExpandOp>([&](Operation *o) { return moved(v, at(o, 0), true); })
        .Case<TransposeOp, SliceOp, TileOp, GatherOp, GatherElementsOp, GatherNDOp>([&](Operation *o) { return moved(v, at(o, 0), false); })
        .Default([&](Operation *) { return Abstract{}; });
  }

  Abstract fill(FillOp op) {
    auto value = dyn_cast<FloatAttr>(op.getValue());
    if (!value) return {Kind::Finite, {}};
    double v = value.getValueAsDouble();
    return {v == 0 ? Kind::Zero : v == 1 ? Kind::One : std::isfinite(v) ? Kind::Constant : Kind::Unknown, {}};
  }

  Abstract unary(UnaryOp op) {
    const Abstract &x = at(op, 0);
    switch (op.getKind()) {
    case UnaryKind::Identity: return x;
    case UnaryKind::Neg: case UnaryKind::Abs: case UnaryKind::Sqrt: case UnaryKind::Erf: case UnaryKind::Tanh: case UnaryKind::Relu: case UnaryKind::Sin:
    case UnaryKind::Floor: case UnaryKind::Ceil: case UnaryKind::Round: case UnaryKind::Sign: case UnaryKind::GeluErf: case UnaryKind::GeluTanh:
    case UnaryKind::Silu: case UnaryKind::Tan: case UnaryKind::Asin: case UnaryKind::Atan: case UnaryKind::Sinh:
      if (x.zero()) return with(Kind::Zero, {&x});
      return finiteIfAll(op);
    case UnaryKind::Exp: case UnaryKind::Cos: case UnaryKind::Cosh:
      return x.zero() ? with(Kind::One, {&x}) : finiteIfAll(op);
    case UnaryKind::IsNaN: case UnaryKind::IsInf: case UnaryKind::Not: return {Kind::Finite, {}};
    case UnaryKind::Log: case UnaryKind::Rsqrt: case UnaryKind::Reciprocal:
      if (x.one()) return with(op.getKind() == UnaryKind::Log ? Kind::Zero : Kind::One, {&x});
      return x.zero() ? Abstract{} : finiteIfAll(op);
    default: return finiteIfAll(op);
    }
  }

  Abstract binary(BinaryOp op) {
    const Abstract &a = at(op, 0), &b = at(op, 1);
    Value v = op.getResult();
    switch (op.getKind()) {
    case BinaryKind::Add:
      if (a.zero() && b.zero()) return with(Kind::Zero, {&a, &b});
      if ((a.zero() && b.one()) || (a.one() && b.zero())) return with(Kind::One, {&a, &b});
      if (b.zero() && a.kind == Kind::Input) return kept(v, a, b);
      if (a.zero() && b.kind == Kind::Input) return kept(v, b, a);
      return finiteIfAll(op);
    case BinaryKind::Sub:
      if (a.zero() && b.zero()) return with(Kind::Zero, {&a, &b});
      if (a.one() && b.zero()) return with(Kind::One, {&a, &b});
      if (b.zero() && a.kind == Kind::Input) return kept(v, a, b);
      return finiteIfAll(op);
    case BinaryKind::Mul:
      if (a.zero() && b.finite()) return with(Kind::Zero, {&a});
      if (b.zero() && a.finite()) return with(Kind::Zero, {&b});
      if (a.one() && b.one()) return with(Kind::One, {&a, &b});
      if (b.one() && a.kind == Kind::Input) return kept(v, a, b);
      if (a.one() && b.kind == Kind::Input) return kept(v, b, a);
      return finiteIfAll(op);
    case BinaryKind::Div:
      if (b.zero() || (b.kind == Kind::Constant && !isNonZeroConstant(op.getRhs()))) return {};
      if (a.zero() && (b.one() || isNonZeroConstant(op.getRhs()))) return with(Kind::Zero, {&a});
      if (b.one() && a.kind == Kind::Input) return kept(v, a, b);
      return finiteIfAll(op);
    case BinaryKind::Pow:
      if (a.zero() && positiveScalar(op.getRhs())) return with(Kind::Zero, {&a});
      if (a.zero() && !positiveScalar(op.getRhs())) return {};
      return finiteIfAll(op);
    case BinaryKind::Min: case BinaryKind::Max:
      if (a.zero() && b.zero()) return with(Kind::Zero, {&a, &b});
      return finiteIfAll(op);
    case BinaryKind::Mod: case BinaryKind::Fmod: return b.zero() ? Abstract{} : finiteIfAll(op);
    default: return {Kind::Finite, {}}; // comparisons, logic
    }
  }

  /// The input under a neutral operand: still the input when broadcasting does not make it grow.
  Abstract kept(Value result, const Abstract &input, const Abstract &neutral) {
    if (dimsOf(result) != dimsOf(layer.getInput())) return {Kind::Finite, {}};
    return with(Kind::Input, {&input, &neutral});
  }

  static bool positiveScalar(Value v) {
    auto value = scalarValue(v);
    return value && *value > 0 && std::isfinite(*value);
  }
  bool isNonZeroConstant(Value v) {
    auto op = constantOf(v);
    auto at = op ? known.find(op.getResult()) : known.end();
    return at != known.end() && llvm::all_of(at->second.floats, [](double d) { return std::isfinite(d) && d != 0; });
  }

  Abstract select(SelectOp op) {
    const Abstract &a = at(op, 1), &b = at(op, 2);
    if (a.kind == b.kind && a.kind == Kind::Input) return kept(op.getResult(), a, b);
    if (a.kind == b.kind && (a.zero() || a.one())) return with(a.kind, {&a, &b});
    return a.finite() && b.finite() ? Abstract{Kind::Finite, {}} : Abstract{};
  }

  Abstract cast(CastOp op) {
    const Abstract &x = at(op, 0);
    if (x.kind != Kind::Input) return x.kind == Kind::Constant ? Abstract{Kind::Finite, {}} : x;
    auto own = dyn_cast<FloatType>(layer.getInput().getType().getElementType());
    auto to = dyn_cast<FloatType>(elementOf(op.getResult()));
    // Every value of the input's type must be a value of the target type, so that the way back is exact.
    bool holdsAll = own && to && (to == own || (to.getWidth() > own.getWidth() && to.getFPMantissaWidth() >= own.getFPMantissaWidth()));
    return holdsAll ? x : Abstract{Kind::Finite, {}};
  }
  static Type elementOf(Value v) { return llvm::cast<RankedTensorType>(v.getType()).getElementType(); }

  Abstract dequantize(DequantizeOp op) {
    const Abstract &scale = at(op, 1);
    if (!scale.finite()) return {};
    // Zero when every code is its zero point: computed on the constants, not guessed.
    SmallVector<const reference::Tensor *> operands;
    for (Value v : op->getOperands()) {
      auto constant = constantOf(v);
      auto at = constant ? known.find(v) : known.end();
      if (at == known.end()) return {Kind::Finite, {}};
      operands.push_back(&at->second);
    }
    auto decoded = reference::evaluateOp(op, operands, {});
    if (!decoded) {
      llvm::consumeError(decoded.takeError());
      return {};
    }
    bool zero = true;
    for (double v : decoded->front().floats) {
      if (!std::isfinite(v)) return {};
      zero &= v == 0;
    }
    if (zero) return {Kind::Zero, {constantOf(op.getX()).getName().str()}};
    return {Kind::Constant, {}};
  }

  Abstract reduce(ReduceOp op) {
    const Abstract &x = at(op, 0);
    if (!x.zero() || !op.getX().getType().hasStaticShape())
      switch (op.getKind()) {
      case ReduceKind::LogSum: case ReduceKind::LogSumExp: return x.zero() ? Abstract{} : finiteIfAll(op);
      case ReduceKind::Sum: case ReduceKind::L1: case ReduceKind::L2: case ReduceKind::SumSquare: return x.zero() ? with(Kind::Zero, {&x}) : finiteIfAll(op);
      default: return finiteIfAll(op);
      }
    switch (op.getKind()) {
    case ReduceKind::LogSum: return {};
    case ReduceKind::LogSumExp: case ReduceKind::ArgMax: case ReduceKind::ArgMin: case ReduceKind::Prod: return {Kind::Finite, {}};
    default: return op.getX().getType().getNumElements() ? with(Kind::Zero, {&x}) : Abstract{};
    }
  }

  /// (x - mean) * finite * scale + bias: zero when scale or x is zero, and the bias too.
  Abstract norm(Operation *op, const Abstract *bias) {
    const Abstract &x = at(op, 0), &scale = at(op, 1);
    bool flat = (x.zero() && scale.finite()) || (scale.zero() && x.finite());
    if (flat && !bias) return with(Kind::Zero, {x.zero() ? &x : &scale});
    if (flat && bias->zero()) return with(Kind::Zero, {x.zero() ? &x : &scale, bias});
    return finiteIfAll(op);
  }

  Abstract joined(ConcatOp op) {
    Abstract r = values[op->getOperand(0)];
    for (Value v : op->getOperands().drop_front()) {
      const Abstract &next = values[v];
      if (r.kind == next.kind && (r.zero() || r.one()))
        r = with(r.kind, {&r, &next});
      else
        return finiteIfAll(op);
    }
    return r.kind == Kind::Input && op->getNumOperands() > 1 ? Abstract{Kind::Finite, {}} : r;
  }

  LayerOp layer;
  const reference::Values &known;
  llvm::DenseMap<Value, Abstract> values;
};

} // namespace

Proof prove(LayerOp layer, const reference::Values &known) {
  Abstract output = Interpreter(layer, known).run();
  Proof proof;
  proof.holds = output.kind == Kind::Input;
  proof.witnesses = output.witnesses;
  std::string prefix = layer.getName().str() + ".";
  for (std::string &w : proof.witnesses)
    if (llvm::StringRef(w).starts_with(prefix)) w = w.substr(prefix.size());
  Value yielded = layer.getBody().front().getTerminator()->getOperand(0);
  while (auto identity = yielded.getDefiningOp<UnaryOp>())
    if (identity.getKind() == UnaryKind::Identity)
      yielded = identity.getX();
    else
      break;
  proof.needsFinite = yielded != layer.getBody().getArgument(0);
  if (!proof.holds)
    proof.rule = "no rule shows that the output equals the input for all finite inputs";
  else if (proof.witnesses.empty())
    proof.rule = "the output is the input";
  else
    proof.rule = "the output equals the input for all finite inputs, because of " + llvm::join(proof.witnesses, ", ");
  return proof;
}

} // namespace tare::checks
