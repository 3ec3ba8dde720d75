// Implementation of RecheckParts.h. Nothing here calls Parameters, Weights, Proof, Measure or Verdict.
#include "compiler/checks/RecheckParts.h"
#include "compiler/checks/Random.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <cmath>

using namespace mlir;
using tare::reference::Tensor;

namespace tare::checks::again {

namespace {

bool isReal(Value v) { return isa<FloatType>(getElementTypeOrSelf(v.getType())); }

/// Follows a constant to its readers through ops all of whose operands are constants: what it becomes inside the layer.
struct Trace {
  graph::LayerOp layer;
  llvm::DenseMap<Value, bool> constantCache;

  bool constant(Value v) {
    auto at = constantCache.find(v);
    if (at != constantCache.end()) return at->second;
    Operation *op = v.getDefiningOp();
    bool result = op && op->getNumRegions() == 0 && !isa<graph::DimsConstantOp, graph::RangeOp>(op) &&
                  (op->getNumOperands() > 0 || isa<graph::ConstantOp>(op) || cast<RankedTensorType>(v.getType()).hasStaticShape());
    if (result)
      for (Value operand : op->getOperands()) result = result && constant(operand);
    return constantCache[v] = result;
  }

  /// Does a reader inside the layer get it? `entries` collects the values as they enter.
  bool enters(Value v, llvm::SetVector<Value> &entries) {
    bool any = false;
    for (Operation *user : v.getUsers()) {
      if (layer->isProperAncestor(user)) {
        entries.insert(v);
        any = true;
      } else if (user->getNumResults() == 1 && user->getBlock() == v.getParentBlock() && constant(user->getResult(0)) && isReal(user->getResult(0))) {
        any |= enters(user->getResult(0), entries);
      }
    }
    return any;
  }
};

/// A single number that scales all that the layer adds to its input.
bool scalesBranch(graph::LayerOp layer, const llvm::SetVector<Value> &entries, Trace &trace) {
  Operation *end = layer.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  auto other = [&](Operation *op, Value one) { return op->getOperand(0) == one ? op->getOperand(1) : op->getOperand(0); };
  Value x = layer.getBody().getArgument(0);
  if (auto sum = dyn_cast_or_null<graph::BinaryOp>(end); sum && sum.getKind() == graph::BinaryKind::Add && llvm::is_contained(sum->getOperands(), x))
    end = other(sum, x).getDefiningOp();
  for (; end; ) {
    auto product = dyn_cast<graph::BinaryOp>(end);
    if (product && product.getKind() == graph::BinaryKind::Mul) {
      bool first = trace.constant(product.getLhs()), second = trace.constant(product.getRhs());
      if (first == second) return false;
      Value factor = first ? product.getLhs() : product.getRhs(), rest = other(product, factor);
      // 0.5 * (.. * (1 + erf)) is part of an activation.
      bool activation = false;
      SmallVector<std::pair<Value, int>> look{{rest, 0}};
      while (!look.empty()) {
        auto [v, depth] = look.pop_back_val();
        auto unary = v.getDefiningOp<graph::UnaryOp>();
        activation |= unary && (unary.getKind() == graph::UnaryKind::Erf || unary.getKind() == graph::UnaryKind::Tanh) && depth > 0;
        auto binary = v.getDefiningOp<graph::BinaryOp>();
        if (binary && depth < 3 && (binary.getKind() == graph::BinaryKind::Mul || (binary.getKind() == graph::BinaryKind::Add)))
          for (Value o : binary->getOperands()) look.push_back({o, binary.getKind() == graph::BinaryKind::Add ? 3 : depth + 1});
      }
      if (activation) return false;
      if (entries.contains(factor)) return true;
      end = rest.getDefiningOp();
      continue;
    }
    auto unary = dyn_cast<graph::UnaryOp>(end);
    bool passes = isa<graph::CastOp, graph::ReshapeOp, graph::TransposeOp, graph::ExpandOp>(end) ||
                  (unary && (unary.getKind() == graph::UnaryKind::Identity || unary.getKind() == graph::UnaryKind::Neg));
    end = passes ? end->getOperand(0).getDefiningOp() : nullptr;
  }
  return false;
}

std::string digest(ElementsAttr value) {
  llvm::SHA256 hash;
  auto raw = graph::rawBytes(value);
  auto dense = dyn_cast<DenseElementsAttr>(value);
  for (int64_t n = dense && dense.isSplat() ? value.getNumElements() : 1; n > 0; --n) hash.update(llvm::StringRef(raw.data(), raw.size()));
  return llvm::toHex(hash.final(), true);
}

} // namespace

llvm::Expected<std::vector<Witness>> witnessesOf(graph::LayerOp layer, const reference::Values &known, double threshold) {
  auto function = layer->getParentOfType<ModuleOp>();
  Trace trace{layer, llvm::DenseMap<Value, bool>()};
  std::vector<Witness> found;
  SmallVector<graph::ConstantOp> constants;
  function.walk([&](graph::ConstantOp op) { constants.push_back(op); });
  for (graph::ConstantOp op : constants) {
    // Codes become numbers in a graph.dequantize; scales and zero points never count.
    SmallVector<Value> decoded;
    if (isReal(op.getResult())) decoded.push_back(op.getResult());
    SmallVector<Value> codes{op.getResult()};
    for (size_t i = 0; i < codes.size(); ++i)
      for (OpOperand &use : codes[i].getUses()) {
        Operation *user = use.getOwner();
        if (isa<graph::DequantizeOp>(user) && use.getOperandNumber() == 0)
          decoded.push_back(user->getResult(0));
        else if (!isReal(codes[i]) && user->getNumResults() == 1 && user->getNumOperands() == 1)
          codes.push_back(user->getResult(0));
      }
    for (Value value : decoded) {
      llvm::SetVector<Value> entries;
      if (!trace.enters(value, entries)) continue;
      // A scale or zero point reaches the layer through the dequantize only: that is not a parameter.
      bool onlyScale = !value.getUsers().empty() && llvm::all_of(value.getUses(), [](OpOperand &u) { return isa<graph::DequantizeOp>(u.getOwner()) && u.getOperandNumber() > 0; });
      if (onlyScale) continue;
      Witness w;
      w.elements = cast<RankedTensorType>(value.getType()).getNumElements();
      llvm::StringRef name = op.getName();
      std::string prefix = layer.getName().str() + ".";
      if (w.elements == 0 || (w.elements == 1 && !name.starts_with(prefix) && !scalesBranch(layer, entries, trace))) continue;
      w.name = name.empty() ? graph::nodeName(op.getLoc()) : name.starts_with(prefix) ? name.substr(prefix.size()).str() : name.str();
      Type element = op.getValue().getElementType();
      llvm::raw_string_ostream(w.storage) << element;
      w.decoded = value, w.overridable = op.getOverridable(), w.there = reference::bytesPresent(op.getValue());
      if (w.there) {
        w.sha256 = digest(op.getValue());
        auto numbers = reference::evaluateConstant(value, known);
        if (!numbers) return numbers.takeError();
        const float limit = static_cast<float>(threshold);
        for (double v : numbers->floats) {
          bool finite = std::isfinite(v);
          w.nonFinite += !finite;
          w.nonzero += !(v == 0);
          w.above += !finite || std::fabs(static_cast<float>(v)) >= limit;
          if (finite) w.largest = std::max(w.largest, std::fabs(v));
        }
      }
      found.push_back(std::move(w));
    }
  }
  return found;
}

Outcome outcome(const std::vector<Witness> &witnesses, const Numbers &n, bool proved, const CompileOptions &options) {
  bool missing = false, overridable = false, infinite = false, large = false, noisy = false;
  for (const Witness &w : witnesses) {
    missing |= !w.there;
    overridable |= w.overridable;
    infinite |= w.nonFinite != 0;
    large |= w.above != 0;
    noisy |= (w.storage == "f16" || w.storage == "bf16") && w.nonzero != 0;
  }
  std::string code;
  if (missing)
    code = "WEIGHT_MISSING";
  else if (overridable)
    code = "WEIGHT_OVERRIDABLE";
  else if (infinite)
    code = "WEIGHT_NOT_FINITE";
  else if (options.policy == Policy::Proved)
    code = proved ? "" : "NOT_PROVED";
  else if (options.policy == Policy::Inference && proved)
    code = "";
  else if (large)
    code = "WEIGHT_ABOVE_THRESHOLD";
  else if (noisy)
    code = "WEIGHT_NOISE_DETECTED";
  else if (!(n.forward < options.forwardThreshold)) // NaN fails
    code = "FORWARD_NOT_IDENTITY";
  else if (!(n.branch == 0) || (options.policy == Policy::Strict && !(n.parameters == 0)))
    code = "GRADIENT_NONZERO";
  if (code.empty()) return {true, proved ? "proved" : "evidence", ""};
  return {false, "", code};
}

std::optional<bool> isIdentityOnRandomInputs(graph::LayerOp layer, const reference::Values &known, uint64_t seed, bool strictNans) {
  reference::Symbols symbols;
  auto bindAll = [&](Value v) {
    for (const Dim &d : graph::dimsOf(v))
      for (const std::string &s : d.symbols()) symbols.try_emplace(s, 3);
  };
  llvm::SetVector<Value> captured;
  bindAll(layer.getInput());
  layer.getBody().walk([&](Operation *op) {
    for (Value v : op->getOperands()) {
      bindAll(v);
      if (!layer->isAncestor(v.getParentRegion()->getParentOp())) captured.insert(v);
    }
    for (Value v : op->getResults()) bindAll(v);
  });
  auto shapeOf = [&](Value v) -> std::optional<std::vector<int64_t>> {
    std::vector<int64_t> shape;
    for (const Dim &d : graph::dimsOf(v)) {
      auto size = d.evaluate([&](llvm::StringRef s) -> std::optional<int64_t> { return symbols.lookup(s); });
      if (!size || *size < 0) return std::nullopt;
      shape.push_back(*size);
    }
    return shape;
  };
  Random random(seed, 77);
  for (double scale : {1.0, 1e3}) {
    auto fill = [&](Value v) -> std::optional<Tensor> {
      auto shape = shapeOf(v);
      if (!shape) return std::nullopt;
      Tensor t = Tensor::zeros(cast<RankedTensorType>(v.getType()).getElementType(), *shape);
      for (double &x : t.floats) x = scale * random.normal();
      return t;
    };
    reference::Values around;
    for (Value v : captured) {
      auto constant = reference::evaluateConstant(v, known);
      if (constant) {
        around[v] = std::move(*constant);
        continue;
      }
      llvm::consumeError(constant.takeError());
      auto t = fill(v);
      if (!t) return std::nullopt;
      around[v] = std::move(*t);
    }
    auto x = fill(layer.getInput());
    if (!x) return std::nullopt;
    auto values = reference::evaluate(layer.getBody().front(), {*x}, &around, &symbols);
    if (!values) {
      llvm::consumeError(values.takeError());
      return std::nullopt;
    }
    Value yielded = layer.getBody().front().getTerminator()->getOperand(0);
    auto at = values->find(yielded);
    const Tensor &y = at != values->end() ? at->second : around[yielded];
    // Where the branch itself overflowed (exp of 1e3 times 0), the licence of finite activations (spec 3) says nothing; a strict proof has none.
    for (size_t i = 0; i < y.floats.size(); ++i)
      if (!(y.floats[i] == x->floats[i]) && (strictNans || std::isfinite(y.floats[i]))) return false;
  }
  return true;
}

} // namespace tare::checks::again
