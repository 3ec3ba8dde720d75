// plan-buffers. In: `main` in fused form (constants, groups, free reshapes, return; docs/architecture.md "Fusion groups"). Out: one plan.program with
// buffers, lifetimes and dispatches, a function per kernel, and `main` as a declaration. What must hold: no two buffers that live at the same step
// are told apart by anything but their index; a returned value is written straight into its output buffer.
#include "compiler/graph/Cost.h"
#include "compiler/graph/InputDefault.h"
#include "compiler/plan/Joined.h"
#include "compiler/plan/Kernels.h"
#include "passes/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tare {
#define GEN_PASS_DEF_PLANBUFFERSPASS
#include "passes/Passes.h.inc"

namespace {

/// The dims table of a program: every expression once, in order of first use.
class DimTable {
public:
  void add(const Dim &d) {
    if (seen.insert(d.str()).second) dims.push_back(d);
  }
  void add(ArrayRef<Dim> all) {
    for (auto &d : all) add(d);
  }
  void addType(Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) add(graph::dimsOf(tensor));
  }
  Dims dims;

private:
  std::set<std::string> seen;
};

struct Buffer {
  std::string kind, name, packing = "raw";
  RankedTensorType type;
  Dim bytes;
  int64_t tensor = -1, first = 0, last = 0;
  graph::DimsAttr pitch;
  ElementsAttr value;
  Location loc;
};

class Planner {
public:
  Planner(ModuleOp module, func::FuncOp main) : module(module), main(main), kernels(module), context(module.getContext()) {}
  LogicalResult run();

private:
  int64_t addBuffer(Buffer buffer) {
    buffers.push_back(std::move(buffer));
    return buffers.size() - 1;
  }
  Buffer tensorBuffer(StringRef kind, StringRef name, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    Dim bytes = plan::storedBytes(type.getElementType(), elementCount(graph::dimsOf(type)));
    return {kind.str(), name.str(), "raw", type, bytes, -1, 0, 0, {}, {}, value.getLoc()};
  }
  Value throughViews(Value value) {
    while (auto view = value.getDefiningOp<graph::ReshapeOp>()) value = view.getX();
    return value;
  }
  LogicalResult checkMain();
  void addInputs();
  void addStates();
  int64_t weightBuffer(graph::ConstantOp constant, StringRef packing);
  void gatherSiblings();
  int64_t checkBuffer(graph::FidelityCheckOp check, Location loc, int64_t step);
  void addCheckWeights(graph::FidelityCheckOp check, ArrayRef<int64_t> operands);
  LogicalResult addGroup(graph::GroupOp group);
  void joinSteps();
  void emit();

  ModuleOp module;
  func::FuncOp main;
  plan::KernelTable kernels;
  MLIRContext *context;
  std::vector<Buffer> buffers;
  DenseMap<Value, int64_t> bufferOf;  // by value behind views, weights excluded
  std::map<std::tuple<uint64_t, std::string, std::string>, SmallVector<int64_t>> weights; // hash, type, packing
  struct Step { func::FuncOp kernel; SmallVector<int64_t> operands, results; int64_t scratch; Dims capacities; Dim flops, bytes; Location loc; Attribute scope; bool joined = false; };
  std::vector<Step> steps;
  SmallVector<Attribute> states, checks;
  std::vector<std::string> capacityNames;
};

LogicalResult Planner::checkMain() {
  for (Operation &op : main.front().without_terminator())
    if (!isa<graph::ConstantOp, graph::GroupOp, graph::ReshapeOp>(op)) {
      auto diagnostic = op.emitError() << "'" << op.getName() << "' outside of a group reached the planner";
      diagnostic.attachNote() << "the fused phase owes a group around it (docs/architecture.md, \"Fusion groups\")";
      return failure();
    }
  DenseSet<Value> returned;
  for (Value v : main.front().getTerminator()->getOperands()) {
    Value source = throughViews(v);
    if (!source.getDefiningOp<graph::GroupOp>() || !returned.insert(source).second) {
      auto diagnostic = main.emitError() << "a result of main has no memory of its own: it is an input, a constant or another result";
      diagnostic.attachNote() << "the fused phase owes a copy group for it";
      return failure();
    }
  }
  return success();
}

void Planner::addInputs() {
  for (BlockArgument argument : main.getArguments()) {
    auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), graph::kNameAttr);
    Buffer b = tensorBuffer("input", name ? name.getValue() : "", argument);
    b.tensor = argument.getArgNumber();
    bufferOf[argument] = addBuffer(std::move(b));
    auto value = main.getArgAttrOfType<ElementsAttr>(argument.getArgNumber(), graph::kDefaultValueAttr);
    if (!value) continue;
    Buffer own = tensorBuffer("weight", name ? name.getValue() : "", argument);
    own.tensor = argument.getArgNumber(), own.value = value;
    addBuffer(std::move(own));
  }
  for (auto [i, v] : llvm::enumerate(main.front().getTerminator()->getOperands())) {
    auto name = main.getResultAttrOfType<StringAttr>(i, graph::kNameAttr);
    Value source = throughViews(v);
    Buffer b = tensorBuffer("output", name ? name.getValue() : "", source);
    b.tensor = i;
    bufferOf[source] = addBuffer(std::move(b));
  }
}

/// An append group is a context-owned state when its result is addressed by nothing but groups (a view would need the logical layout).
void Planner::addStates() {
  for (auto group : main.front().getOps<graph::GroupOp>()) {
    if (group.getKind() != graph::GroupKind::Append) continue;
    auto concat = cast<graph::ConcatOp>(plan::rootOf(group.getBody().front(), "append"));
    auto old = dyn_cast<BlockArgument>(concat.getInputs().front());
    Value result = group.getResult(0);
    if (!old) continue;
    auto input = dyn_cast<BlockArgument>(group.getOperand(old.getArgNumber()));
    bool viewed = llvm::any_of(result.getUsers(), [](Operation *user) { return isa<graph::ReshapeOp>(user); });
    if (!input || input.getOwner() != &main.front() || !input.hasOneUse() || viewed) continue;
    Buffer &in = buffers[bufferOf[input]], &out = buffers[bufferOf[result]];
    if (out.kind != "output") continue;
    std::string number = std::to_string(states.size());
    auto setPitch = [&](Buffer &b, const std::string &symbol) {
      Dims physical = graph::dimsOf(b.type);
      physical[concat.getAxis()] = Dim::symbol(symbol);
      b.pitch = graph::DimsAttr::get(context, physical);
      b.bytes = plan::storedBytes(b.type.getElementType(), elementCount(physical));
      capacityNames.push_back(symbol);
    };
    setPitch(in, "capacity.input." + number);
    setPitch(out, "capacity.output." + number);
    Builder b(context);
    auto entry = [&](StringRef name, Attribute value) { return b.getNamedAttr(name, value); };
    states.push_back(b.getDictionaryAttr({entry("input", b.getI64IntegerAttr(in.tensor)), entry("output", b.getI64IntegerAttr(out.tensor)),
                                          entry("axis", b.getI64IntegerAttr(concat.getAxis())),
                                          entry("input_capacity", b.getStringAttr("capacity.input." + number)),
                                          entry("output_capacity", b.getStringAttr("capacity.output." + number))}));
  }
}

int64_t Planner::weightBuffer(graph::ConstantOp constant, StringRef packing) {
  ArrayRef<char> bytes = graph::rawBytes(constant.getValue());
  uint64_t hash = llvm::xxh3_64bits(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  std::string type;
  llvm::raw_string_ostream(type) << constant.getValue().getShapedType();
  SmallVector<int64_t> &candidates = weights[{hash, type, packing.str()}];
  for (int64_t index : candidates)
    if (buffers[index].value == constant.getValue() || graph::rawBytes(buffers[index].value) == bytes) return index;
  Buffer b = tensorBuffer("weight", constant.getName(), constant.getResult());
  b.packing = packing.str();
  b.value = constant.getValue();
  Dims dims = graph::dimsOf(b.type);
  auto panels = [](const Dim &columns) { return Dim::floorDiv(columns + 31, 32); };
  if (packing == "check_panel32") b.bytes = plan::storedBytes(b.type.getElementType(), dims[0] * panels(dims[1]) * dims[2] * 32);
  if (packing == "check_nibble32") b.bytes = dims[0] * panels(dims[1]) * dims[2] * 16;
  if (packing == "check_row32") b.bytes = plan::storedBytes(b.type.getElementType(), dims[0] * panels(dims[1]) * 32);
  if (packing == "panel32") {
    b.bytes = plan::storedBytes(b.type.getElementType(), panels(dims[1]) * dims[0] * 32);
  }
  candidates.push_back(addBuffer(std::move(b)));
  return candidates.back();
}

/// Every check has a buffer of its own: its carried bits are apart from all others.
int64_t Planner::checkBuffer(graph::FidelityCheckOp check, Location loc, int64_t step) {
  Builder b(context);
  Dims w = graph::dimsOf(check.getW());
  Dim perRow = (Dim(2) * w[2] + 3) * w[0] * w[1] + Dim(2) * w[0];
  auto entry = [&](StringRef name, Attribute value) { return b.getNamedAttr(name, value); };
  Buffer buffer{"check", graph::nodeName(loc), "raw", RankedTensorType::get({}, b.getI64Type()), Dim(48), static_cast<int64_t>(checks.size()), step, step, {}, {}, loc};
  checks.push_back(b.getDictionaryAttr({entry("heads", b.getI64IntegerAttr(w[0].constant().value_or(0))), entry("rank", b.getI64IntegerAttr(w[1].constant().value_or(0))),
                                        entry("precision", check.getPrecisionAttr()), entry("flops", b.getI64IntegerAttr(perRow.constant().value_or(0)))}));
  return addBuffer(std::move(buffer));
}

/// What the check of a step with these operands adds to the engine: W, p, tau, E, and W's integers and scales, as they lie there.
void Planner::addCheckWeights(graph::FidelityCheckOp check, ArrayRef<int64_t> operands) {
  int64_t bytes = 0;
  for (Value operand : check->getOperands()) {
    Buffer &b = buffers[operands[cast<BlockArgument>(operand).getArgNumber()]];
    if (b.kind == "weight") bytes += b.bytes.constant().value_or(0);
  }
  NamedAttrList entry(cast<DictionaryAttr>(checks.back()));
  entry.set("weights", Builder(context).getI64IntegerAttr(bytes));
  checks.back() = entry.getDictionary(context);
}

LogicalResult Planner::addGroup(graph::GroupOp group) {
  int64_t step = steps.size();
  Block &body = group.getBody().front();
  int gemmRhs = group.getKind() == graph::GroupKind::Gemm ? plan::gemmRhsArgument(body) : -1;
  if (group.getKind() == graph::GroupKind::Gemm &&
      (gemmRhs < 0 || !throughViews(group.getOperand(gemmRhs)).getDefiningOp<graph::ConstantOp>())) {
    auto diagnostic = group.emitError() << "a gemm group without a constant right-hand side";
    diagnostic.attachNote() << "the fused phase owes batch_matmul here (docs/architecture.md, \"Fusion groups\")";
    return failure();
  }
  Operation *root = plan::rootOf(body, graph::stringifyGroupKind(group.getKind()));
  // Names are the group's: the ops of its body lost theirs, so that equal bodies are equal.
  Location named = graph::nodeName(group.getLoc()).empty() ? root->getLoc() : group.getLoc();
  Step s{{}, {}, {}, -1, {}, flopsOf(group), bytesOf(group), named, group->getAttr(graph::kScopeAttr)};
  SmallVector<plan::Storage> storage;
  auto addStorage = [&](int64_t index) {
    Buffer &b = buffers[index];
    plan::Storage stored{b.packing, {}};
    if (b.pitch) { // the kernel is shared: it names the capacity by its position in the dispatch
      Dims physical = b.pitch.dims(), logical = graph::dimsOf(b.type);
      for (auto [p, l] : llvm::zip(physical, logical))
        if (!(p == l)) {
          s.capacities.push_back(p);
          p = Dim::symbol(plan::capacitySymbol(s.capacities.size() - 1));
        }
      stored.pitch = graph::DimsAttr::get(context, physical);
    }
    b.last = std::max(b.last, step);
    storage.push_back(std::move(stored));
  };
  for (auto [i, operand] : llvm::enumerate(group.getInputs())) {
    Value source = throughViews(operand);
    int64_t index;
    std::string packing = group.getKind() == graph::GroupKind::Gemm ? plan::gemmPacking(body, i) : "raw";
    if (packing == "check")
      index = checkBuffer(plan::checkOf(body), root->getLoc(), step);
    else if (auto constant = source.getDefiningOp<graph::ConstantOp>())
      index = weightBuffer(constant, packing);
    else
      index = bufferOf.lookup(source);
    s.operands.push_back(index);
    addStorage(index);
  }
  if (auto check = plan::checkOf(body)) addCheckWeights(check, s.operands);
  for (Value result : group.getResults()) {
    auto [slot, isNew] = bufferOf.try_emplace(result, -1);
    if (isNew) {
      int64_t fresh = addBuffer(tensorBuffer("arena", graph::nodeName(named), result));
      bufferOf[result] = fresh;
    }
    int64_t index = bufferOf[result];
    buffers[index].first = step;
    s.results.push_back(index);
    addStorage(index);
  }
  s.kernel = kernels.kernelFor(group, storage);
  if (Dim scratch = plan::scratchBytes(s.kernel); !scratch.isConstant(0)) {
    Buffer b{"per_thread", "", "raw", RankedTensorType::get({}, Builder(context).getF32Type()), scratch, -1, step, step, {}, {}, named};
    s.scratch = addBuffer(std::move(b));
  }
  steps.push_back(std::move(s));
  return success();
}

/// GEMMs that read the same rows (q, k and v; gate and up) follow one another where their other operands allow it, so that they can be joined.
void Planner::gatherSiblings() {
  auto rows = [&](graph::GroupOp group) { return group.getKind() == graph::GroupKind::Gemm ? throughViews(group.getOperand(0)) : Value(); };
  llvm::DenseMap<Value, graph::GroupOp> last; // of the siblings so far
  for (auto group : llvm::make_early_inc_range(main.front().getOps<graph::GroupOp>())) {
    Value shared = rows(group);
    if (!shared) continue;
    auto [at, isFirst] = last.try_emplace(shared, group);
    if (isFirst) continue;
    bool isReady = llvm::all_of(group.getOperands(), [&](Value operand) {
      Operation *definition = operand.getDefiningOp();
      return !definition || definition->isBeforeInBlock(at->second);
    });
    if (isReady) group->moveAfter(at->second);
    at->second = group;
  }
}

/// Marks steps that need no barrier in front of them, and lets all buffers of such a run of steps live through all of it: a thread may still be in the
/// first of them when another one is in the last.
void Planner::joinSteps() {
  constexpr int64_t kMostJoined = 8; // memory stays bounded
  std::vector<int64_t> begin(steps.size()), end(steps.size());
  llvm::DenseSet<int64_t> read, written;
  for (int64_t i = 0, first = 0; i < static_cast<int64_t>(steps.size()); ++i) {
    Step &step = steps[i];
    auto touches = [](ArrayRef<int64_t> buffers, const llvm::DenseSet<int64_t> &set) { return llvm::any_of(buffers, [&](int64_t b) { return set.contains(b); }); };
    step.joined = i > 0 && i - first < kMostJoined && !touches(step.operands, written) && !touches(step.results, written) && !touches(step.results, read);
    if (!step.joined) first = i, read.clear(), written.clear();
    read.insert(step.operands.begin(), step.operands.end()), written.insert(step.results.begin(), step.results.end());
    begin[i] = first;
    for (int64_t j = first; j <= i; ++j) end[j] = i;
  }
  for (Buffer &b : buffers) {
    if (b.kind != "arena" && b.kind != "per_thread") continue;
    b.first = begin[b.first], b.last = end[b.last];
  }
}

LogicalResult Planner::run() {
  if (failed(checkMain())) return failure();
  gatherSiblings();
  addInputs();
  addStates();
  for (auto group : main.front().getOps<graph::GroupOp>())
    if (failed(addGroup(group))) return failure();
  joinSteps();
  emit();
  return success();
}

void Planner::emit() {
  DimTable table;
  for (Type t : main.getArgumentTypes()) table.addType(t);
  for (Type t : main.getResultTypes()) table.addType(t);
  for (auto &b : buffers) {
    table.add(b.bytes);
    if (b.kind != "weight") table.addType(b.type);
    if (b.pitch) table.add(b.pitch.dims());
  }
  for (auto &s : steps) {
    table.add(s.flops);
    table.add(s.bytes);
  }
  for (auto constraint : module->getAttrOfType<ArrayAttr>(graph::kConstraintsAttr) ? module->getAttrOfType<ArrayAttr>(graph::kConstraintsAttr).getAsRange<DictionaryAttr>()
                                                                                   : ArrayAttr::get(context, {}).getAsRange<DictionaryAttr>())
    for (StringRef side : {"a", "b"})
      if (auto dims = constraint.getAs<graph::DimsAttr>(side)) table.add(dims.dims());
  auto checkInput = module->getAttrOfType<DictionaryAttr>("graph.check_input");
  for (StringRef dim : {"batch", "tokens", "past"})
    if (checkInput) table.add(checkInput.getAs<graph::DimsAttr>(dim).dims());
  llvm::SetVector<StringRef> symbols;
  std::vector<std::string> names;
  for (Dim &d : Dims(table.dims))
    for (auto &name : d.symbols()) names.push_back(name);
  for (auto kernel : module.getOps<func::FuncOp>())
    kernel.walk([&](Operation *op) {
      for (Type t : op->getResultTypes())
        if (auto tensor = dyn_cast<RankedTensorType>(t))
          for (Dim &d : graph::dimsOf(tensor))
            for (auto &name : d.symbols()) names.push_back(name);
      for (NamedAttribute attr : op->getAttrs())
        if (auto dims = dyn_cast<graph::DimsAttr>(attr.getValue()))
          for (Dim &d : dims.dims())
            for (auto &name : d.symbols()) names.push_back(name);
    });
  names.insert(names.end(), capacityNames.begin(), capacityNames.end());
  for (auto &name : names) symbols.insert(name);
  for (StringRef name : symbols) table.add(Dim::symbol(name)); // kernels derive any further expression from the symbols

  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto program = b.create<plan::ProgramOp>(main.getLoc(), b.getStrArrayAttr(symbols.getArrayRef()), graph::DimsAttr::get(context, table.dims));
  program->setAttr(plan::kStatesAttr, b.getArrayAttr(states));
  if (checkInput) {
    program->setAttr(plan::kChecksAttr, b.getArrayAttr(checks));
    program->setAttr(plan::kCheckInputAttr, checkInput);
  }
  b.setInsertionPointToStart(&program.getBody().emplaceBlock());
  for (auto &buffer : buffers)
    b.create<plan::BufferOp>(buffer.loc, buffer.kind, buffer.name, buffer.type, graph::DimsAttr::get(context, buffer.bytes), buffer.tensor, buffer.first, buffer.last,
                             buffer.packing, buffer.pitch, buffer.value);
  for (auto &s : steps) {
    auto kind = s.kernel->getAttrOfType<StringAttr>(plan::kKindAttr).getValue();
    auto dispatch = b.create<plan::DispatchOp>(s.loc, s.kernel.getSymName(), kind, s.operands, s.results, s.scratch,
                                               s.capacities.empty() ? graph::DimsAttr() : graph::DimsAttr::get(context, s.capacities), /*serial=*/false,
                                               graph::DimsAttr::get(context, s.flops), graph::DimsAttr::get(context, s.bytes));
    if (s.scope) dispatch->setAttr(graph::kScopeAttr, s.scope);
    if (s.joined) dispatch->setAttr(plan::kJoinedAttr, b.getUnitAttr());
  }
  main.eraseBody();
  main.setPrivate();
}

struct PlanBuffersPass : impl::PlanBuffersPassBase<PlanBuffersPass> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal()) {
      getOperation().emitError("no function 'main' to plan");
      return signalPassFailure();
    }
    if (failed(Planner(getOperation(), main).run())) signalPassFailure();
  }
};

} // namespace
} // namespace tare
