// Which values get memory and which are recomputed. In: clean, recognised ops of main. Out: groups. Two steps: heavy ops (matmul, norms, softmax,
// attention, reductions) take the pointwise ops behind them as epilogue; then, from the end to the start, every other op either becomes a
// pointwise group or is pulled into its readers, whichever is cheaper. Must hold: no group needs a value that depends on its own result.
#include "passes/GroupPlanner.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/GroupCost.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tare::graph;

namespace tare {

static bool isHeavy(GroupKind kind) { return kind != GroupKind::Pointwise; }

GroupPlanner::GroupPlanner(Block &body) {
  int64_t index = 0;
  for (Operation &op : body) {
    infos[&op].index = index++;
    if (op.getNumResults() == 1) infos[&op].elements = typicalElements(op.getResult(0));
  }
  for (Operation &op : body.without_terminator()) {
    auto kind = groupKindOf(&op);
    if (!kind || !isHeavy(*kind) || infos[&op].state != State::Undecided) continue;
    PlannedGroup group{*kind, &op, {}, {}};
    growEpilogue(group);
    infos[&op].state = State::Root;
    groupOf[&op] = planned.size();
    for (Operation *inner : group.epilogue) {
      infos[inner].state = State::Inner;
      groupOf[inner] = planned.size();
    }
    planned.push_back(std::move(group));
  }
  estimate(body);
  for (Operation &op : llvm::reverse(body)) decide(&op);
  attachExtraResults();
  llvm::sort(planned, [&](const PlannedGroup &a, const PlannedGroup &b) { return infos[a.last()].index < infos[b.last()].index; });
  mergeSiblings();
}

double GroupPlanner::elementsOf(Value value) {
  Operation *op = value.getDefiningOp();
  auto found = op ? infos.find(op) : infos.end();
  return found != infos.end() && op->getNumResults() == 1 ? found->second.elements : typicalElements(value);
}

/// The cost of each element when everything in front of it is pulled. A much smaller operand counts as a read: it would get memory.
void GroupPlanner::estimate(Block &body) {
  for (Operation &op : body) {
    Info &info = infos[&op];
    if (op.getNumResults() != 1) continue;
    bool isView = isa<ReshapeOp>(op) && hasMemory(op.getOperand(0));
    info.weight = isView || hasMemory(op.getResult(0)) ? kReadCost : elementCost(&op);
    if (isView || hasMemory(op.getResult(0))) continue;
    for (Value operand : op.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      double pulled = producer && infos.count(producer) ? infos[producer].weight : kReadCost;
      bool isSmall = pulled > 4 && elementsOf(operand) * 8 <= info.elements;
      info.weight += isSmall ? kReadCost : pulled;
    }
    if (info.weight > kLargestExpression) {
      info.mustHaveMemory = true;
      info.weight = kReadCost;
    }
  }
}

/// Takes pointwise ops of the root's shape behind the root as long as exactly one value leaves the group in the end. Values may meet again on the
/// way (x * sigmoid(x)). As only the result leaves, no operand from outside can depend on the group.
void GroupPlanner::growEpilogue(PlannedGroup &group) {
  if (group.kind == GroupKind::Attention || group.kind == GroupKind::Append) return;
  Dims dims = dimsOf(group.root->getResult(0));
  llvm::SmallPtrSet<Operation *, 16> inside = {group.root};
  SmallVector<Operation *> ops;
  if (FidelityCheckOp check = fusedCheckOf(group.root)) { // its bits are made row by row in front of the tiles
    inside.insert(check);
    ops.push_back(check);
  }
  auto outsideUsers = [&] {
    llvm::SetVector<Operation *> users;
    SmallVector<Operation *> all = {group.root};
    all.append(ops);
    int leaving = 0;
    for (Operation *op : all) {
      bool leaves = false;
      for (Operation *user : op->getUsers())
        if (!inside.contains(user)) leaves = true, users.insert(user);
      leaving += leaves;
    }
    return std::make_pair(leaving, users.takeVector());
  };
  for (int step = 0; step < 24; ++step) {
    auto [leaving, users] = outsideUsers();
    if (leaving == 1 && (ops.empty() || llvm::any_of(ops.back()->getUsers(), [&](Operation *u) { return !inside.contains(u); }))) group.epilogue = ops;
    Operation *next = nullptr;
    for (Operation *user : users)
      if (!next || infos[user].index < infos[next].index) next = user;
    // A dequantize or an op of another shape ends the epilogue; so does an op that another group owns.
    if (!next || !isa<UnaryOp, BinaryOp, SelectOp, CastOp>(next) || infos[next].state != State::Undecided || dimsOf(next->getResult(0)) != dims) break;
    inside.insert(next);
    ops.push_back(next);
  }
}

/// Elements of the scores that an attention op evaluates its bias for.
static double scoresOf(Operation *attention) {
  auto width = dimsOf(attention->getResult(0)).back().constant();
  return typicalElements(attention->getResult(0)) / static_cast<double>(width ? std::max<int64_t>(1, *width) : 64) * 64;
}

bool GroupPlanner::hasMemory(Value value) const {
  Operation *op = behindViews(value).getDefiningOp();
  if (!op || isa<ConstantOp>(op)) return true;
  auto found = infos.find(op);
  return found == infos.end() || found->second.state == State::Root || found->second.state == State::Inner || found->second.state == State::Extra;
}

void GroupPlanner::needMemory(Value value) {
  if (Operation *op = behindViews(value).getDefiningOp())
    if (auto found = infos.find(op); found != infos.end()) found->second.mustHaveMemory = true;
}

void GroupPlanner::request(Value value, uint64_t place, double count) {
  Operation *op = value.getDefiningOp();
  auto found = op ? infos.find(op) : infos.end();
  if (found == infos.end() || isa<ConstantOp>(op)) return;
  for (Request &r : found->second.requests)
    if (r.place == place) return; // the same element at the same place is computed once
  found->second.requests.push_back({place, count});
  // Many places: more detail would not change the decision, and the list must not grow without bound.
  if (found->second.requests.size() > 16) found->second.mustHaveMemory |= found->second.weight > 2;
}

/// Hands on where the operands of `op` are evaluated. Pointwise ops read at their own indices; moving ops at others.
void GroupPlanner::requestOperands(Operation *op, ArrayRef<Request> places, const PlannedGroup *group) {
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned i = operand.getOperandNumber();
    Value value = operand.get();
    bool pulls = isPointwise(op) || movesElements(op);
    if (group && op == group->root) {
      switch (group->kind) {
      case GroupKind::Pointwise: break;
      case GroupKind::Reduce: pulls = true; break;
      case GroupKind::Row: pulls = i == 0; break;
      case GroupKind::Attention: pulls = i == 3; break;
      case GroupKind::Gemm: // a cast of the packed weight
        pulls = i == 1 && value.getDefiningOp<CastOp>();
        break;
      case GroupKind::BatchMatmul:
        pulls = value.getDefiningOp<TransposeOp>() != nullptr;
        if (pulls) needMemory(value.getDefiningOp<TransposeOp>().getX());
        break;
      case GroupKind::Append: pulls = false; break;
      }
    } else if (group) {
      pulls = false; // an operand of the epilogue
    }
    if (!pulls) {
      auto producer = groupOf.find(value.getDefiningOp());
      if (producer == groupOf.end() || producer->second != groupOf.lookup(op)) needMemory(value);
      continue;
    }
    double share = isa<ConcatOp>(op) ? elementsOf(value) / std::max(1.0, infos[op].elements) : 1;
    bool isHeavyRoot = group && op == group->root && isHeavy(group->kind);
    for (const Request &r : places) {
      uint64_t place = isPointwise(op) ? r.place : static_cast<uint64_t>(llvm::hash_combine(r.place, op, i));
      double count = !isHeavyRoot ? r.count * share : group->kind == GroupKind::Attention ? scoresOf(op) : elementsOf(value);
      request(value, place, count);
    }
    auto pulled = infos.find(value.getDefiningOp());
    if (pulled != infos.end()) pulled->second.inBias |= infos[op].inBias || (isHeavyRoot && group->kind == GroupKind::Attention);
  }
}

/// A mask over query and key positions: no tensor of that size is made for it unless it is expensive.
static bool isQuadratic(Value value) {
  Dims dims = dimsOf(value);
  return dims.size() >= 2 && !dims[dims.size() - 1].isConstant(1) && !dims[dims.size() - 2].isConstant(1);
}

bool GroupPlanner::isWorthMemory(Operation *op, const Info &info) const {
  if (info.mustHaveMemory) return true;
  if (isa<CastOp, DequantizeOp>(op) && op->getOperand(0).getDefiningOp<ConstantOp>()) return false; // weights stay as stored
  double count = 0, weight = elementCost(op);
  for (const Request &r : info.requests) count += r.count;
  // An operand that has memory, or that later readers have given memory, costs a read; so does a view of it.
  for (Value operand : op->getOperands()) {
    auto source = infos.find(behindViews(operand).getDefiningOp()), producer = infos.find(operand.getDefiningOp());
    bool isRead = hasMemory(operand) || (source != infos.end() && source->second.mustHaveMemory) || producer->second.mustHaveMemory;
    weight += isRead ? kReadCost : std::min(producer->second.weight, info.weight);
  }
  if (weight < kReadCost + 1) return false; // a move of memory is as cheap as reading its copy
  if (info.inBias && isQuadratic(op->getResult(0)) && weight < kQuadraticCost) return false;
  double pulled = count * weight, kept = info.elements * (weight + kWriteCost) + count * kReadCost + kDispatchCost;
  return kept < pulled;
}

void GroupPlanner::decide(Operation *op) {
  Info &info = infos[op];
  uint64_t place = llvm::hash_value(op);
  if (isa<func::ReturnOp>(op)) {
    for (Value value : op->getOperands())
      if (Operation *producer = value.getDefiningOp(); producer && infos.count(producer)) infos[producer].mustHaveMemory = true;
    return;
  }
  if (isa<ConstantOp>(op)) return;
  if (info.state == State::Root || info.state == State::Inner) {
    const PlannedGroup &group = planned[groupOf[op]];
    return requestOperands(op, {{place, info.elements}}, &group);
  }
  bool isReturned = llvm::any_of(op->getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
  if (isa<ReshapeOp>(op) && !isReturned && (hasMemory(op->getOperand(0)) || isWorthMemory(op, info))) { // the memory is its operand's
    info.state = State::View;
    needMemory(op->getOperand(0));
    return;
  }
  if (isWorthMemory(op, info)) {
    info.state = State::Root;
    groupOf[op] = planned.size();
    planned.push_back({GroupKind::Pointwise, op, {}, {}});
    return requestOperands(op, {{place, info.elements}}, nullptr);
  }
  info.state = State::Pulled;
  SmallVector<Request> places(info.requests.begin(), info.requests.end());
  requestOperands(op, places, nullptr);
}

/// A pointwise group whose value is the x of a row group next to it becomes a further result of that row: residual + norm in one kernel. All other
/// readers must come after the row, else the row would wait for its own result.
void GroupPlanner::attachExtraResults() {
  for (PlannedGroup &row : planned) {
    if (row.kind != GroupKind::Row) continue;
    Operation *sum = row.root->getOperand(0).getDefiningOp();
    auto own = sum ? groupOf.find(sum) : groupOf.end();
    if (own == groupOf.end() || planned[own->second].kind != GroupKind::Pointwise || !isPointwise(sum)) continue;
    int64_t end = infos[row.last()].index;
    if (dimsOf(sum->getResult(0)) != dimsOf(row.root->getResult(0))) continue;
    bool isLate = llvm::all_of(sum->getUsers(), [&](Operation *user) { return user == row.root || infos[user].index > end; });
    if (!isLate) continue;
    infos[sum].state = State::Extra;
    row.extra.push_back(sum);
    planned[own->second].root = nullptr;
    groupOf.erase(own);
  }
  llvm::erase_if(planned, [](const PlannedGroup &group) { return !group.root; });
}

/// The place of the first op that reads `value`, through views; views move along with the group.
int64_t GroupPlanner::firstUse(Value value) const {
  int64_t first = INT64_MAX;
  for (Operation *user : value.getUsers()) first = std::min(first, isa<ReshapeOp>(user) ? firstUse(user->getResult(0)) : infos.find(user)->second.index);
  return first;
}

/// Pointwise groups over the same dims whose results nobody reads before the later one run as one kernel (cos and sin, rotated q and k).
void GroupPlanner::mergeSiblings() {
  llvm::DenseMap<Attribute, size_t> waiting;
  for (size_t i = 0; i < planned.size(); ++i) {
    PlannedGroup &later = planned[i];
    if (later.kind != GroupKind::Pointwise) continue;
    Dims dims = dimsOf(later.root->getResult(0));
    auto [slot, isFirst] = waiting.try_emplace(DimsAttr::get(later.root->getContext(), dims), i);
    if (isFirst) continue;
    PlannedGroup &earlier = planned[slot->second];
    bool fits = earlier.extra.size() + later.extra.size() + 2 <= kMostResults && firstUse(earlier.root->getResult(0)) > infos[later.root].index;
    for (Operation *extra : earlier.extra) fits &= firstUse(extra->getResult(0)) > infos[later.root].index;
    if (fits) {
      later.extra.append(earlier.extra);
      later.extra.push_back(earlier.root);
      for (Operation *op : later.extra) infos[op].state = State::Extra;
      earlier.root = nullptr;
    }
    slot->second = i;
  }
  llvm::erase_if(planned, [](const PlannedGroup &group) { return !group.root; });
}

SmallVector<Operation *> GroupPlanner::opsOf(const PlannedGroup &group) const {
  llvm::SetVector<Operation *> ops;
  ops.insert(group.root);
  ops.insert(group.epilogue.begin(), group.epilogue.end());
  ops.insert(group.extra.begin(), group.extra.end());
  // The cast of a packed weight belongs to its GEMM, also when another group reads the weight.
  if (group.kind == GroupKind::Gemm && group.root->getOperand(1).getDefiningOp<CastOp>()) ops.insert(group.root->getOperand(1).getDefiningOp());
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      auto found = producer ? infos.find(producer) : infos.end();
      if (found == infos.end() || found->second.state != State::Pulled) continue;
      if (!isa<ReshapeOp>(producer) || !hasMemory(operand)) ops.insert(producer); // a view of memory stays outside
    }
  SmallVector<Operation *> ordered = ops.takeVector();
  llvm::sort(ordered, [&](Operation *a, Operation *b) { return infos.find(a)->second.index < infos.find(b)->second.index; });
  return ordered;
}

} // namespace tare
