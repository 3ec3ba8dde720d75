// The formulas behind Cost.h. In: ops with symbolic types. Out: Dims. Where each number comes from is said in Cost.h;
// docs/reports.md cites it.
#include "compiler/graph/Cost.h"
#include "compiler/graph/Graph.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tare::graph;

namespace tare {

static Dim count(Value value) { return elementCount(dimsOf(value)); }

static int64_t perElement(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::Identity: case UnaryKind::Not: return 0;
  case UnaryKind::GeluErf: return 5;
  case UnaryKind::GeluTanh: return 8;
  case UnaryKind::Silu: case UnaryKind::Softplus: return 4;
  default: return 1;
  }
}

static int64_t perElement(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::L1: case ReduceKind::L2: case ReduceKind::SumSquare: case ReduceKind::LogSum: return 2;
  case ReduceKind::LogSumExp: return 4;
  default: return 1;
  }
}

static Dim matmulFlops(MatmulOp op) {
  auto lhs = dimsOf(op.getLhs());
  return lhs.empty() ? Dim(0) : Dim(2) * count(op.getResult()) * lhs.back();
}

/// [B,H,S,D] in order, whatever the layout letter says.
static Dims headsFirst(Value value, char layout) {
  auto dims = dimsOf(value);
  if (layout == 's' && dims.size() == 4) std::swap(dims[1], dims[2]);
  return dims;
}

static Dim attentionFlops(AttentionOp op) {
  auto layout = op.getLayout();
  if (layout.size() < 3) return 0;
  auto q = headsFirst(op.getQ(), layout[0]), k = headsFirst(op.getK(), layout[1]), v = headsFirst(op.getV(), layout[2]);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return 0;
  Dim scores = q[0] * q[1] * q[2] * k[2];
  return scores * (Dim(2) * (q[3] + v[3]) + 5 + (op.getBias() ? 1 : 0));
}

static Dim checkFlops(FidelityCheckOp op) {
  auto w = dimsOf(op.getW()), e = dimsOf(op.getE()), h = dimsOf(op.getH());
  h.pop_back();
  Dim tokens = elementCount(h);
  return tokens * (Dim(2) * w[0] * w[1] * w[2] + Dim(3) * w[0] * w[1] + Dim(2) * w[0] + Dim(2) * e[0] * e[1]);
}

Dim flopsOf(Operation *op) {
  if (op->getNumRegions()) {
    Dim sum;
    for (Region &region : op->getRegions())
      for (Block &block : region) sum = sum + flopsOf(block);
    return sum;
  }
  return llvm::TypeSwitch<Operation *, Dim>(op)
      .Case([](UnaryOp o) { return count(o.getResult()) * perElement(o.getKind()); })
      .Case([](BinaryOp o) { return count(o.getResult()); })
      .Case([](SelectOp o) { return count(o.getResult()); })
      .Case([](DequantizeOp o) { return Dim(2) * count(o.getResult()); })
      .Case([](MatmulOp o) { return matmulFlops(o); })
      .Case([](ReduceOp o) {
        return count(o.getX()) * perElement(o.getKind()) +
               (o.getKind() == ReduceKind::Mean || o.getKind() == ReduceKind::L2 ? count(o.getResult()) : Dim(0));
      })
      .Case([](CumSumOp o) { return count(o.getResult()); })
      .Case([](SoftmaxOp o) { return Dim(5) * count(o.getResult()); })
      .Case([](LayerNormOp o) { return Dim(8) * count(o.getResult()); })
      .Case([](RmsNormOp o) { return Dim(5) * count(o.getResult()); })
      .Case([](AttentionOp o) { return attentionFlops(o); })
      .Case([](FidelityCheckOp o) { return checkFlops(o); })
      .Default([](Operation *) { return Dim(0); });
}

static Dim bytesOf(Type element, const Dim &count) {
  int64_t bits = element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth();
  return bits % 8 == 0 ? count * Dim(bits / 8) : Dim::floorDiv(count * Dim(bits) + 7, 8);
}

Dim bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? bytesOf(tensor.getElementType(), elementCount(dimsOf(tensor))) : Dim(0);
}

/// How many elements of `value` its users read: all, or the touched ones of a table that is only gathered from or cut,
/// also behind casts and views.
static Dim elementsRead(Value value) {
  Dim all = count(value), touched;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    Dim part = all;
    if (use.getOperandNumber() == 0) {
      if (isa<GatherOp, GatherElementsOp, GatherNDOp, SliceOp>(user)) part = count(user->getResult(0));
      if (isa<CastOp, DequantizeOp, ReshapeOp, TransposeOp>(user)) part = elementsRead(user->getResult(0));
    }
    if (part == all) return all;
    touched = touched + part;
  }
  return touched;
}

Dim bytesOf(Operation *op) {
  if (auto group = dyn_cast<GroupOp>(op)) {
    Dim sum;
    for (Value argument : group.getBody().front().getArguments())
      sum = sum + bytesOf(getElementTypeOrSelf(argument), elementsRead(argument));
    for (Value result : group.getResults()) sum = sum + bytesOf(result.getType());
    return sum;
  }
  if (op->getNumRegions()) {
    Dim sum;
    for (Region &region : op->getRegions())
      for (Block &block : region) sum = sum + bytesOf(block);
    return sum;
  }
  if (isa<ConstantOp, ReshapeOp, YieldOp>(op) || op->getNumResults() == 0) return 0;
  Dim sum;
  for (Value result : op->getResults()) sum = sum + bytesOf(result.getType());
  bool touches = isa<GatherOp, GatherElementsOp, GatherNDOp, SliceOp>(op);
  if (touches) sum = sum + sum;
  llvm::SmallPtrSet<Value, 4> read;
  for (Value operand : op->getOperands().drop_front(touches && op->getNumOperands() ? 1 : 0))
    if (read.insert(operand).second) sum = sum + bytesOf(operand.getType());
  return sum;
}

Dim flopsOf(Block &block) {
  Dim sum;
  for (Operation &op : block) sum = sum + flopsOf(&op);
  return sum;
}

Dim bytesOf(Block &block) {
  Dim sum;
  for (Operation &op : block) sum = sum + bytesOf(&op);
  return sum;
}

} // namespace tare
