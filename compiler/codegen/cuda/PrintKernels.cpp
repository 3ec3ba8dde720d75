// What all kinds of groups share, rows and loops (KernelPrinter.h). Group kinds without a tile of their own are one thread
// per element, or one warp where rows are summed up.
#include "compiler/codegen/IndexWalk.h"
#include "compiler/codegen/cuda/KernelPrinter.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;

namespace tare::cuda {

KernelPrinter::KernelPrinter(func::FuncOp function, std::string name, ArrayRef<std::string> nodes, ArrayRef<Type> stored,
                             Precision precision, int64_t splitChecksAbove)
    : function(function), block(function.front()),
      kind(function->getAttrOfType<StringAttr>(plan::kKindAttr).getValue()), nodes(nodes), precision(precision),
      splitChecksAbove(splitChecksAbove) {
  kernel.function = function, kernel.name = std::move(name), kernel.gathers = gathers(function);
  kernel.stored = stored;
  size_t position = 0; // of the next buffer in `stored`
  auto memoryOf = [&](Value value, const std::string &name, Attribute packing, Attribute pitch) {
    auto physical = dyn_cast_if_present<graph::DimsAttr>(pitch);
    auto packed = dyn_cast_if_present<StringAttr>(packing);
    if (physical)
      for (auto [p, l] : llvm::zip(physical.dims(), graph::dimsOf(value)))
        kernel.capacities += !(p == l);
    return Memory{name, stored[position++], physical ? physical.dims() : graph::dimsOf(value),
                  packed ? packed.str() : "raw"};
  };
  for (BlockArgument a : block.getArguments()) {
    unsigned i = a.getArgNumber();
    Attribute packing = kind == "gemm"
                            ? Attribute(StringAttr::get(function.getContext(), plan::gemmPacking(block, i)))
                            : function.getArgAttr(i, plan::kPackingAttr);
    operands.push_back(memoryOf(a, "x" + std::to_string(i), packing, function.getArgAttr(i, plan::kPitchAttr)));
  }
  for (auto [i, v] : llvm::enumerate(block.getTerminator()->getOperands()))
    results.push_back({v,
                       memoryOf(v, "y" + std::to_string(i), function.getResultAttr(i, plan::kPackingAttr),
                                function.getResultAttr(i, plan::kPitchAttr)),
                       {}});
}

llvm::Expected<std::vector<KernelText>> KernelPrinter::print() {
  if (auto error = refuseUnknown()) return std::move(error);
  Printer p = printer(1);
  bool tiled = kind == "gemm"           ? gemm(p)
               : kind == "row"          ? row(p)
               : kind == "attention"    ? attention(p)
               : kind == "batch_matmul" ? batchMatmul(p)
                                        : false;
  if (kind == "append")
    append(p);
  else if (!tiled) {
    for (auto check : block.getOps<graph::FidelityCheckOp>())
      return missing(*check);
    if (kind == "row" || kind == "attention") return missing(*plan::rootOf(block, kind));
    pointwise(p);
  }
  collectSymbols();
  std::vector<KernelText> texts;
  if (!evaluation.empty()) {
    KernelText first = kernel;
    first.name += "_evaluate", first.sharedBytes = evaluationBytes, first.evaluates = true;
    first.grid[0] = evaluationBlocks, first.grid[1] = 1;
    finish(first, evaluation, "TARE_WIDE_KERNEL");
    texts.push_back(std::move(first));
  }
  finish(kernel, withoutUnused(p.text), wide ? "TARE_WIDE_KERNEL" : roomy ? "TARE_ROOMY_KERNEL" : "TARE_KERNEL");
  auto larger = largeTiles();
  if (!larger) return larger.takeError();
  if (!*larger || !whenLarge.isConstant(1)) texts.push_back(std::move(kernel));
  if (*larger) texts.push_back(std::move(**larger));
  return texts;
}

Printer KernelPrinter::printer(unsigned depth) {
  Printer p(depth);
  for (auto [argument, m] : llvm::zip(block.getArguments(), operands))
    p.memory[argument] = m;
  return p;
}

void KernelPrinter::notesRounded(ValueRange values) {
  std::vector<unsigned> positions;
  for (Value v : values) {
    auto argument = cast<BlockArgument>(v);
    if (llvm::range_size(argument.getUses()) != llvm::count(values, v)) return;
    positions.push_back(argument.getArgNumber());
  }
  kernel.rounded = std::move(positions);
}

llvm::Error KernelPrinter::missing(Operation &op) {
  std::string form;
  llvm::raw_string_ostream(form) << op.getResult(0).getType();
  return refuse("no CUDA form of " + op.getName().stripDialect().str() + " giving " + form)
      .atNode(nodes.empty() ? kernel.name : nodes.front())
      .withHint("compile for the CPU, which has it (--target cpu), and please report it with the model's graph");
}

llvm::Error KernelPrinter::refuseUnknown() {
  for (Operation &op : block.without_terminator()) {
    bool known =
        isa<graph::ConstantOp, graph::FillOp, graph::UnaryOp, graph::BinaryOp, graph::SelectOp, graph::CastOp,
            graph::DequantizeOp, graph::ReduceOp, graph::CumSumOp, graph::MatmulOp, graph::ReshapeOp,
            graph::TransposeOp, graph::ExpandOp, graph::SliceOp, graph::ConcatOp, graph::PadOp, graph::TileOp,
            graph::GatherOp, graph::GatherElementsOp, graph::GatherNDOp, graph::TriluOp, graph::RangeOp,
            graph::DimsConstantOp, graph::SoftmaxOp, graph::LayerNormOp, graph::RmsNormOp, graph::AttentionOp>(op);
    if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
      known &= dense && (dense.isSplat() || dense.getNumElements() == 1);
    }
    known |= isa<graph::FidelityCheckOp>(op) && kind == "gemm";
    if (!known) return missing(op);
  }
  return llvm::Error::success();
}

bool KernelPrinter::wantsWarps(ArrayRef<Target> targets) {
  auto reduce = dyn_cast<graph::ReduceOp>(plan::rootOf(block, kind));
  if (kind != "reduce" || !reduce || scalarType(elementType(reduce.getX())) != "float" ||
      llvm::is_contained({graph::ReduceKind::ArgMax, graph::ReduceKind::ArgMin}, reduce.getKind()))
    return false;
  Dims dims = graph::dimsOf(reduce.getX());
  int64_t last = static_cast<int64_t>(dims.size()) - 1; // the last axis of more than one element
  while (last >= 0 && dims[last].isConstant(1))
    --last;
  Dim count = 1;
  for (int64_t axis : reduce.getAxes())
    count = count * dims[axis];
  return llvm::is_contained(reduce.getAxes(), last) && !(count.constant() && *count.constant() < 16) &&
         llvm::all_of(targets, [&](auto &t) { return dependsOnRoot(t.value, reduce); });
}

void KernelPrinter::nest(Printer &p, ArrayRef<Target> targets) {
  Dims space = graph::dimsOf(targets.front().value);
  Dim count = elementCount(space);
  bool warps = wantsWarps(targets);
  cover(count, warps ? 4 : 128);
  p.open((warps ? "warp_each(" : "pointwise(") + dimText(count) + ", [=](i64 i) {");
  bool flat = p.flat = codegen::isFlat(targets, p.memory, [](const Memory &m) { return !m.panels(); });
  p.lanes = warps;
  SmallVector<Index> at = flat ? SmallVector<Index>{"i"} : p.delinearise("i", space);
  SmallVector<std::string> scalars;
  for (auto &t : targets)
    scalars.push_back(p.element(t.value, at));
  if (warps) p.line("if (lane_index() != 0) return;");
  for (auto [t, scalar] : llvm::zip(targets, scalars)) {
    SmallVector<Index> where(at);
    for (auto [i, offset] : llvm::enumerate(t.offset))
      where[i] = p.add(where[i], p.dim(offset));
    p.store(t.memory, where, scalar);
  }
  p.flat = p.lanes = false;
  p.close("});");
}

void KernelPrinter::cover(const Dim &count, int64_t perBlock) {
  Dim blocks = Dim::floorDiv(count + (perBlock - 1), perBlock);
  kernel.grid[0] = covered ? Dim::max(kernel.grid[0], blocks) : blocks;
  covered = true;
}

void KernelPrinter::pointwise(Printer &p) {
  includes = {"rows.cuh", "scalar.cuh"};
  SmallVector<SmallVector<Target>> nests;
  for (auto &t : results) {
    Dims dims = graph::dimsOf(t.value);
    auto it = llvm::find_if(
        nests, [&](auto &n) { return ArrayRef<Dim>(graph::dimsOf(n.front().value)) == ArrayRef<Dim>(dims); });
    if (it == nests.end())
      nests.push_back({t});
    else
      it->push_back(t);
  }
  for (auto &targets : nests)
    nest(p, targets);
}

void KernelPrinter::append(Printer &p) {
  includes = {"rows.cuh", "scalar.cuh"};
  auto root = cast<graph::ConcatOp>(plan::rootOf(block, "append"));
  Value old = root.getInputs()[0], fresh = root.getInputs()[1];
  p.line("// the cache, unless it is extended in place");
  p.open("if (" + p.memory[old].name + ".pointer != " + results[0].memory.name + ".pointer) {");
  nest(p, Target{old, results[0].memory, {}});
  p.close();
  p.line("// the new rows");
  SmallVector<Dim> offset(graph::dimsOf(fresh).size(), Dim(0));
  offset[root.getAxis()] = graph::dimsOf(old)[root.getAxis()];
  nest(p, Target{fresh, results[0].memory, offset});
}

bool KernelPrinter::dependsOnRoot(Value v, Operation *root) {
  if (v.getDefiningOp() == root) return true;
  Operation *op = v.getDefiningOp();
  return op && llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnRoot(operand, root); });
}

bool KernelPrinter::row(Printer &p) {
  Operation *root = plan::rootOf(block, "row");
  Value x = root->getOperand(0);
  Dims dims = graph::dimsOf(x);
  if (!elementType(x).isF32()) return false;
  includes = {"rows.cuh", "scalar.cuh"};
  Dim rows = elementCount(ArrayRef<Dim>(dims).drop_back()), columns = dims.back();
  kernel.grid[0] = Dim::floorDiv(rows + 3, 4);
  int64_t kept = columns.constant() && *columns.constant() <= 2048 ? *columns.constant() : 0;
  kernel.sharedBytes = 4 * kept * 4;
  std::string call, parameter;
  if (auto norm = dyn_cast<graph::LayerNormOp>(root))
    call = "layer_norm_rows", parameter = number(elementType(x), norm.getEpsilon().convertToDouble());
  if (auto norm = dyn_cast<graph::RmsNormOp>(root))
    call = "rms_norm_rows", parameter = number(elementType(x), norm.getEpsilon().convertToDouble());
  if (auto softmax = dyn_cast<graph::SoftmaxOp>(root))
    call = "softmax_rows", parameter = softmax.getLog() ? "true" : "false";
  p.line(call + "<" + std::to_string(kept) + ">(" + dimText(rows) + ", " + dimText(columns) + ", " + parameter + ",");
  auto indices = [&](Printer &q) {
    SmallVector<Index> at = q.delinearise("row", ArrayRef<Dim>(dims).drop_back());
    at.push_back(columns.isConstant(1) ? "0" : "column");
    return at;
  };
  p.open("[=](i64 row, i64 column) -> float {");
  p.line("return " + p.element(x, indices(p)) + ";");
  p.close("},");
  p.open("[=](i64 row, i64 column, float x, float y) {");
  SmallVector<Index> at = indices(p);
  p.bind(x, at, "x");
  std::string y = "y";
  auto scaled = [&](Value scale, Value bias) {
    y = p.binary(graph::BinaryKind::Mul, y, p.element(scale, p.broadcast(scale, at, dims)), elementType(x));
    if (bias) y = p.binary(graph::BinaryKind::Add, y, p.element(bias, p.broadcast(bias, at, dims)), elementType(x));
  };
  if (auto norm = dyn_cast<graph::LayerNormOp>(root)) scaled(norm.getScale(), norm.getBias());
  if (auto norm = dyn_cast<graph::RmsNormOp>(root)) scaled(norm.getScale(), Value());
  p.bind(root->getResult(0), at, y);
  storeResults(p, at);
  p.close("});");
  return true;
}

void KernelPrinter::storeResults(Printer &p, Indices at) {
  SmallVector<std::string> scalars; // every element is computed before any is stored, as in `nest`
  for (auto &t : results)
    scalars.push_back(p.element(t.value, at));
  for (auto [t, scalar] : llvm::zip(results, scalars))
    p.store(t.memory, at, scalar);
}

void KernelPrinter::collectSymbols() {
  std::set<std::string> names;
  auto add = [&](ArrayRef<Dim> dims) {
    for (const Dim &d : dims)
      for (auto &name : d.symbols())
        names.insert(name);
  };
  for (auto &m : operands)
    if (m.packing != "check") add(m.physical);
  for (auto &t : results)
    add(t.memory.physical);
  for (BlockArgument a : block.getArguments())
    if (operands[a.getArgNumber()].packing != "check")
      add(graph::dimsOf(a)); // the number of anchors is no size of the plan
  block.walk([&](Operation *op) {
    for (Value v : op->getResults())
      add(graph::dimsOf(v));
    for (NamedAttribute attr : op->getAttrs())
      if (auto dims = dyn_cast<graph::DimsAttr>(attr.getValue())) add(dims.dims());
  });
  for (unsigned i = 0; i < kernel.capacities; ++i)
    names.erase(plan::capacitySymbol(i));
  kernel.symbols.assign(names.begin(), names.end());
}

/// The frame with its holes filled, in one pass: what a value holds (a node may be called "@BODY@") is no hole.
static std::string filled(StringRef frame, ArrayRef<std::pair<StringRef, std::string>> values) {
  std::string text;
  while (!frame.empty()) {
    auto hole = llvm::find_if(values, [&](auto &v) { return frame.starts_with(v.first); });
    text += hole == values.end() ? frame.take_front().str() : hole->second;
    frame = frame.drop_front(hole == values.end() ? 1 : hole->first.size());
  }
  return text;
}

void KernelPrinter::finish(KernelText &text, const std::string &body, StringRef qualifier) {
  SmallVector<std::string> parameters;
  for (auto &m : operands)
    parameters.push_back(
        (m.packing == "check"
             ? text.scratch.isConstant(0) ? "CheckRun " : "ListedRun "
             : "global<const " + (m.packing == "check_nibble32" ? "u8" : storageType(m.element)) + "> ") +
        m.name);
  for (auto &t : results)
    parameters.push_back("global<" + storageType(t.memory.element) + "> " + t.memory.name);
  if (!text.scratch.isConstant(0))
    parameters.push_back(std::string(&text == &kernel ? "global<const float> " : "global<float> ") + kScratch.str());
  for (auto &s : text.symbols)
    parameters.push_back("i64 " + symbolName(s));
  for (unsigned i = 0; i < text.capacities; ++i)
    parameters.push_back("i64 " + symbolName(plan::capacitySymbol(i)));
  if (text.gathers) parameters.push_back("global<i64> " + kFault.str()), parameters.push_back("i64 " + kStep.str());
  std::string where, lines;
  for (auto &n : nodes)
    where += "// runs as " + n + "\n";
  for (auto &i : includes)
    lines += "#include \"kernels/cuda/" + i + "\"\n";
  std::string geometry = "blocks (" + dimText(text.grid[0]) + ", " + dimText(text.grid[1]) + ", " +
                         dimText(text.grid[2]) + ") of 128 threads, " + std::to_string(text.sharedBytes) +
                         " bytes of shared memory";
  text.text = filled(kernelSource("kernels/cuda/kernel.cu.in"),
                     {{"@GEOMETRY@", geometry},
                      {"@NODES@", where},
                      {"@INCLUDES@", lines},
                      {"@QUALIFIER@", qualifier.str()},
                      {"@PARAMETERS@", llvm::join(parameters, ", ")},
                      {"@NAME@", text.name},
                      {"@KIND@", kind.str()},
                      {"@BODY@", body}});
}

} // namespace tare::cuda
