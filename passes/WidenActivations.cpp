// f16 and bf16 activations become f32 (spec 10: arithmetic in f32 whatever the storage). In: ops in any float type. Out: narrow types only at inputs,
// constants (through a cast) and results of main. Must hold: weights keep their storage type; a rounding that the source asks for by casting to a
// narrow type and back stays a pair of casts; f64 is left alone.
#include "passes/Passes.h"
#include "passes/Rewrite.h"

namespace tare {
#define GEN_PASS_DEF_WIDENACTIVATIONSPASS
#include "passes/Passes.h.inc"
} // namespace tare

using namespace mlir;
using namespace tare::graph;

namespace {

bool isNarrow(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() < 32;
}

RankedTensorType wide(Type type) { return tensorType(Float32Type::get(type.getContext()), dimsOf(cast<RankedTensorType>(type))); }

/// The source rounds on purpose: a value of f32 or f64 is cast to a narrow type and from there to a wider one.
bool roundsOnPurpose(CastOp op) {
  Type from = getElementTypeOrSelf(op.getX());
  if (!isNarrow(op.getType()) || !isa<FloatType>(from) || isNarrow(from)) return false;
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<CastOp>(user) && !isNarrow(user->getResult(0).getType()); });
}

struct WidenActivationsPass : tare::impl::WidenActivationsPassBase<WidenActivationsPass> {
  void runOnOperation() override {
    Block *body = tare::mainBody(getOperation());
    if (!body) return;
    OpBuilder builder(&getContext());
    // Purposes are read off before any type changes.
    SmallVector<CastOp> roundings;
    for (auto op : body->getOps<CastOp>())
      if (roundsOnPurpose(op)) roundings.push_back(op);
    llvm::SmallPtrSet<Operation *, 8> keep(roundings.begin(), roundings.end());

    builder.setInsertionPointToStart(body);
    for (BlockArgument argument : body->getArguments()) widenUses(builder, argument);
    for (Operation &op : llvm::make_early_inc_range(body->without_terminator())) {
      builder.setInsertionPointAfter(&op);
      if (isa<ConstantOp>(op) || keep.contains(&op)) {
        widenUses(builder, op.getResult(0));
        continue;
      }
      for (Value result : op.getResults())
        if (isNarrow(result.getType())) result.setType(wide(result.getType()));
      if (auto fill = dyn_cast<FillOp>(op))
        if (auto value = dyn_cast<FloatAttr>(fill.getValue()); value && isNarrow(value.getType()))
          fill.setValueAttr(builder.getF32FloatAttr(static_cast<float>(value.getValueAsDouble())));
      if (auto cast = dyn_cast<CastOp>(op); cast && cast.getX().getType() == cast.getType()) tare::replaceBy(&op, cast.getX());
    }
    narrowResults(builder, body->getTerminator());
    tare::eraseDeadOps(*body);
  }

  /// All uses of a narrow value but its return read an f32 copy.
  void widenUses(OpBuilder &builder, Value value) {
    if (!isNarrow(value.getType()) || value.use_empty()) return;
    auto cast = builder.create<CastOp>(value.getLoc(), wide(value.getType()), value);
    value.replaceUsesWithIf(cast.getResult(), [&](OpOperand &use) { return use.getOwner() != cast && !isa<func::ReturnOp>(use.getOwner()); });
  }

  /// Results keep the type that the signature of main declares.
  void narrowResults(OpBuilder &builder, Operation *exit) {
    auto declared = cast<func::FuncOp>(exit->getParentOp()).getResultTypes();
    builder.setInsertionPoint(exit);
    for (auto [operand, type] : llvm::zip_equal(exit->getOpOperands(), declared))
      if (getElementTypeOrSelf(operand.get()) != getElementTypeOrSelf(type)) operand.set(builder.create<CastOp>(operand.get().getLoc(), type, operand.get()));
  }
};

} // namespace
