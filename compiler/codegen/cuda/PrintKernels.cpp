// One printer per group kind (docs/architecture.md "Fusion groups"): a template call of kernels/cuda with the pulled
// expressions as lambdas, put into kernel.cu.in. Group kinds without a tile of their own (reduce, products of two
// activations) are one thread per element.
#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Printer.h"
#include "compiler/graph/Failure.h"
#include "compiler/plan/Kernels.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;

namespace tare::cuda {
namespace {

Type elementType(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

struct Target {
  Value value;
  Memory memory;
  SmallVector<Dim> offset; // empty: 0
};

class KernelPrinter {
public:
  KernelPrinter(func::FuncOp function, ArrayRef<std::string> nodes, Precision precision, int64_t splitChecksAbove)
      : function(function), block(function.front()),
        kind(function->getAttrOfType<StringAttr>(plan::kKindAttr).getValue()), nodes(nodes), precision(precision),
        splitChecksAbove(splitChecksAbove) {
    kernel.function = function, kernel.name = function.getSymName().str(), kernel.gathers = gathers(function);
    auto memoryOf = [&](Value value, const std::string &name, Attribute packing, Attribute pitch) {
      auto physical = dyn_cast_if_present<graph::DimsAttr>(pitch);
      auto packed = dyn_cast_if_present<StringAttr>(packing);
      if (physical)
        for (auto [p, l] : llvm::zip(physical.dims(), graph::dimsOf(value)))
          kernel.capacities += !(p == l);
      return Memory{name, elementType(value), physical ? physical.dims() : graph::dimsOf(value),
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

  llvm::Expected<std::vector<KernelText>> print() {
    if (auto error = refuseUnknown()) return std::move(error);
    Printer p = printer(1);
    bool tiled = kind == "gemm" ? gemm(p) : kind == "row" ? row(p) : kind == "attention" ? attention(p) : false;
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
      first.name += "_evaluate", first.sharedBytes = 0;
      first.grid[0] = evaluationBlocks, first.grid[1] = 1;
      finish(first, evaluation, "TARE_ROOMY_KERNEL");
      texts.push_back(std::move(first));
    }
    finish(kernel, withoutUnused(p.text), wide ? "TARE_WIDE_KERNEL" : roomy ? "TARE_ROOMY_KERNEL" : "TARE_KERNEL");
    texts.push_back(std::move(kernel));
    return texts;
  }

private:
  Printer printer(unsigned depth) {
    Printer p(depth);
    for (auto [argument, m] : llvm::zip(block.getArguments(), operands))
      p.memory[argument] = m;
    return p;
  }
  llvm::Error missing(Operation &op) {
    std::string form;
    llvm::raw_string_ostream(form) << op.getResult(0).getType();
    return refuse("no CUDA form of " + op.getName().stripDialect().str() + " giving " + form)
        .atNode(nodes.empty() ? kernel.name : nodes.front())
        .withHint("compile for the CPU, which has it (--target cpu), and please report it with the model's graph");
  }
  llvm::Error refuseUnknown() {
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

  /// All values that `value` is computed from, itself included.
  static void collect(Value value, SmallVectorImpl<Value> &all, DenseSet<Value> &seen) {
    if (!seen.insert(value).second) return;
    all.push_back(value);
    if (Operation *op = value.getDefiningOp())
      for (Value operand : op->getOperands())
        collect(operand, all, seen);
  }
  /// True when element i of every result depends on element i (or the only one) of everything it is computed from.
  bool isFlat(Printer &p, ArrayRef<Target> targets) {
    SmallVector<Value> all;
    DenseSet<Value> seen;
    Dim count = elementCount(graph::dimsOf(targets.front().value));
    for (auto &t : targets) {
      collect(t.value, all, seen);
      if (!t.offset.empty() || !(elementCount(t.memory.physical) == count)) return false;
    }
    return llvm::all_of(all, [&](Value v) {
      Dim own = elementCount(graph::dimsOf(v));
      Operation *op = v.getDefiningOp();
      bool plain = !op || isa<graph::UnaryOp, graph::BinaryOp, graph::SelectOp, graph::CastOp, graph::ConstantOp,
                              graph::FillOp, graph::ReshapeOp>(op);
      auto stored = p.memory.find(v);
      if (stored != p.memory.end() && (stored->second.panels() || !(elementCount(stored->second.physical) == own)))
        return false;
      return plain && (own.isConstant(1) || own == count);
    });
  }

  /// A loop over the targets' common space, one thread per element.
  void nest(Printer &p, ArrayRef<Target> targets) {
    Dims space = graph::dimsOf(targets.front().value);
    Dim count = elementCount(space);
    cover(count);
    p.open("pointwise(" + dimText(count) + ", [=](i64 i) {");
    bool flat = p.flat = isFlat(p, targets);
    SmallVector<Index> at = flat ? SmallVector<Index>{"i"} : p.delinearise("i", space);
    SmallVector<std::string> scalars;
    for (auto &t : targets)
      scalars.push_back(p.element(t.value, at));
    for (auto [t, scalar] : llvm::zip(targets, scalars)) {
      SmallVector<Index> where(at);
      for (auto [i, offset] : llvm::enumerate(t.offset))
        where[i] = p.add(where[i], p.dim(offset));
      p.store(t.memory, where, scalar);
    }
    p.flat = false;
    p.close("});");
  }
  /// Enough blocks for `count` elements.
  void cover(const Dim &count) {
    Dim blocks = Dim::floorDiv(count + 127, 128);
    kernel.grid[0] = covered ? Dim::max(kernel.grid[0], blocks) : blocks;
    covered = true;
  }

  void pointwise(Printer &p) {
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

  /// A cache and new rows; in place when both have one address.
  void append(Printer &p) {
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

  /// What a sparse fidelity check adds to its gemm (kernels/cuda/check.cuh): the call's first line and the lambda's
  /// last parameter. Operands of the op in order: h, w, p, tau, e, the run's rows (in the place of the anchors), and
  /// with integers quantized, scale.
  std::optional<std::string> checkedCall(Printer &p, graph::MatmulOp root, graph::FidelityCheckOp check,
                                         const Memory &a, const Memory &w, const Memory &out, const Dim &rows,
                                         const Dim &columns) {
    SmallVector<const Memory *> m;
    for (Value operand : check->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument) return std::nullopt;
      m.push_back(&operands[argument.getArgNumber()]);
    }
    Dims shape = graph::dimsOf(check.getW());
    auto heads = shape[0].constant(), rank = shape[1].constant(), width = shape[2].constant(), f = columns.constant();
    if (m.size() < 6 || m[5]->packing != "check" || !heads || !rank || !width || !f || *heads > 32) return std::nullopt;
    auto stored = check->getAttrOfType<StringAttr>("precision");
    auto group = check->getAttrOfType<IntegerAttr>("group");
    bool integers = m.size() == 8, nibbles = integers && stored && stored.getValue() == "int4";
    includes = {"check.cuh", "scalar.cuh"};
    int64_t panels = (*rank + 31) / 32, scratch = 8 * *heads * panels * 4 + 2 * 65 * 4 + 16,
            tiles = std::min<int64_t>((*f + 63) / 64, 8);
    kernel.grid[0] = Dim((*f + 64 * tiles - 1) / (64 * tiles));
    kernel.sharedBytes = std::max(kernel.sharedBytes, scratch) + 256;
    runOf = m[5]->name;
    bool tensorCores = precision != Precision::F32;
    p.line("using Check = CheckShape<" + std::to_string(*heads) + ", " + std::to_string(*rank) + ", " +
           std::to_string(*width) + ", " +
           std::to_string(integers && group ? std::max<int64_t>(group.getInt(), 1) : 32) + ">;");
    p.line("static_assert(" +
           (tensorCores ? "kGemmMmaCheckedBytes<Check>" : "kGemmF32CheckedBytes<Check, " + storageType(w.element) + ">") +
           " == " + std::to_string(kernel.sharedBytes) + ");");
    bool split = *heads * panels * 32 > splitChecksAbove;
    roomy = !split; // evaluating takes 64 sums and 32 weights per thread
    std::string dense = "FloatPanels<Check, " + storageType(m[1]->element) + ">{" + m[1]->name + "}";
    std::string sparse = integers ? std::string(nibbles ? "Int4Panels" : "Int8Panels") + "<Check>{" + m[6]->name +
                                        ", " + m[7]->name + "}"
                                  : dense;
    eOf = m[4]->name;
    std::string types = tensorCores ? "<Check, " + operandType() + ">(" : "<Check>(";
    std::string call = (tensorCores ? "gemm_mma_" : "gemm_f32_") + std::string(split ? "carried" : "checked") + types +
                       a.name + ", " + w.name + ", " + out.name + ", " + dimText(rows) + ", " + dimText(columns) + ", " +
                       std::to_string(tiles) + ", " + runOf + ", ";
    if (split) {
      // Four panels (one per warp) of eight rows are a block's unit; 512 blocks fill any GPU and take what there is.
      kernel.scratch = rows * Dim(*heads * panels * 4);
      evaluationBlocks = Dim::min(Dim::floorDiv(rows + 7, 8) * Dim((*heads * panels + 3) / 4), 512);
      evaluation = p.text + "  // the distance of every evaluated row to every panel of prototypes, once\n  check_distances<Check>(" +
                   a.name + ", " + dimText(rows) + ", " + runOf + ", " + sparse + ", " + dense + ", " + m[2]->name + ", " +
                   kScratch.str() + ");\n";
      call += kScratch.str() + ", ";
    } else {
      call += sparse + ", " + dense + ", " + m[2]->name + ", ";
    }
    return call + m[3]->name + ", [=](i64 row, i64 column, float product, u32 bits) -> float {";
  }

  /// The type of a tensor core's operands.
  std::string operandType() const { return precision == Precision::F16 ? "f16" : "bf16"; }

  bool gemm(Printer &p) {
    bool tensorCores = precision != Precision::F32;
    auto root = cast<graph::MatmulOp>(plan::rootOf(block, "gemm"));
    Memory w = operands[plan::gemmRhsArgument(block)], out = results[0].memory;
    auto lhsArgument = dyn_cast<BlockArgument>(root.getLhs());
    Dims dims = graph::dimsOf(root.getResult()), lhs = graph::dimsOf(root.getLhs());
    Type left = elementType(root.getLhs());
    bool takesLeft = left.isF32() || (tensorCores && (left.isF16() || left.isBF16()));
    if (!lhsArgument || !w.panels() || !takesLeft || results.size() != 1 || out.element.isF64() ||
        !isa<FloatType>(out.element))
      return false;
    if (!(ArrayRef<Dim>(out.physical) == ArrayRef<Dim>(dims)) ||
        !(ArrayRef<Dim>(operands[lhsArgument.getArgNumber()].physical) == ArrayRef<Dim>(lhs)))
      return false;
    includes = {tensorCores ? "gemm_mma.cuh" : "gemm_f32.cuh", "scalar.cuh"};
    Dim rows = elementCount(ArrayRef<Dim>(lhs).drop_back()), columns = dims.back();
    kernel.grid[0] = Dim::floorDiv(columns + 63, 64), kernel.grid[1] = Dim::floorDiv(rows + 63, 64);
    int64_t width = w.element.getIntOrFloatBitWidth() / 8;
    kernel.sharedBytes = tensorCores ? 2 * 2 * (64 * 32 + 32 * 72) : 2 * (64 * 16 * 4 + 16 * 64 * width);
    if (block.getOps<graph::FidelityCheckOp>().empty()) // a checked one has its own
      p.line("static_assert(" + (tensorCores ? "GemmMma::kSharedBytes"
                                             : "GemmF32::kSharedBytes<" + storageType(w.element) + ">") +
             " == " + std::to_string(kernel.sharedBytes) + ");");
    if (tensorCores) p.line("// products of " + operandType() + " on tensor cores, sums in f32");
    p.line("// " + dimText(rows) + " rows, " + dimText(columns) + " columns, depth " + dimText(lhs.back()));
    graph::FidelityCheckOp check;
    for (auto c : block.getOps<graph::FidelityCheckOp>())
      check = c;
    std::string call = (tensorCores ? "gemm_mma<" + operandType() + ">(" : "gemm_f32(") + operands[lhsArgument.getArgNumber()].name + ", " + dimText(lhs.back()) + ", " +
                       w.name + ", " + out.name + ", " + dimText(rows) + ", " + dimText(columns) + ", " +
                       dimText(lhs.back()) + ", [=](i64 row, i64 column, float product) -> float {";
    if (check) {
      auto checked = checkedCall(p, root, check, operands[lhsArgument.getArgNumber()], w, out, rows, columns);
      if (!checked) return false;
      call = *checked;
    }
    p.open(call);
    SmallVector<Index> at = p.delinearise("row", ArrayRef<Dim>(dims).drop_back());
    at.push_back(dims.back().isConstant(1) ? "0" : "column");
    p.bind(root.getResult(), at, "product");
    if (check)
      p.bind(check->getResult(0), at, "check_bias<Check>(bits, " + eOf + ", " + dimText(columns) + ", column)");
    p.line("return " + p.element(results[0].value, at) + ";");
    p.close("});");
    return true;
  }

  bool dependsOnRoot(Value v, Operation *root) {
    if (v.getDefiningOp() == root) return true;
    Operation *op = v.getDefiningOp();
    return op && llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnRoot(operand, root); });
  }

  bool row(Printer &p) {
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
    SmallVector<std::string> scalars;
    for (auto &t : results)
      scalars.push_back(p.element(t.value, at));
    for (auto [t, scalar] : llvm::zip(results, scalars))
      p.store(t.memory, at, scalar);
    p.close("});");
    return true;
  }

  bool attention(Printer &p) {
    auto root = cast<graph::AttentionOp>(plan::rootOf(block, "attention"));
    StringRef layout = root.getLayout();
    auto argument = [&](Value v) -> const Memory * {
      auto a = dyn_cast<BlockArgument>(v);
      return a ? &operands[a.getArgNumber()] : nullptr;
    };
    const Memory *q = argument(root.getQ()), *k = argument(root.getK()), *v = argument(root.getV()),
                 &out = results[0].memory;
    Dims qDims = graph::dimsOf(root.getQ()), kDims = graph::dimsOf(root.getK()), vDims = graph::dimsOf(root.getV());
    auto width = qDims[3].constant(), valueWidth = vDims[3].constant();
    bool fits = q && k && v && width && valueWidth && *width % 4 == 0 && *valueWidth % 4 == 0 && *width > 0 &&
                *valueWidth > 0 && *width <= 128 && *valueWidth <= 128 && results.size() == 1;
    if (!fits) return false;
    auto isHalf = [](Type t) { return t.isF16() || t.isBF16(); };
    auto all = [&](ArrayRef<const Memory *> of, Type type) {
      return llvm::all_of(of, [&](const Memory *m) { return m->element == type; });
    };
    double scale = root.getScale().convertToDouble();
    // What no tensor-core form takes is computed in f32: wider than asked for is always allowed.
    bool tensorCores = precision != Precision::F32 && *width == *valueWidth && *width % 16 == 0 && scale != 0 &&
                       all({q, k, v}, q->element) && (q->element.isF32() || isHalf(q->element)) &&
                       (out.element.isF32() || isHalf(out.element));
    if (!tensorCores && !all({q, k, v, &out}, Float32Type::get(root.getContext()))) return false;
    includes = {tensorCores ? "attention_mma.cuh" : "attention_f32.cuh", "scalar.cuh"};
    wide = *width > 80 || *valueWidth > (tensorCores ? 80 : 64) || (!tensorCores && *width > 64);
    roomy = !wide && (tensorCores || *width > 32 || *valueWidth > 32);
    auto head = [](ArrayRef<Dim> dims, char l) { return l == 's' ? dims[2] : dims[1]; };
    auto position = [](ArrayRef<Dim> dims, char l) { return l == 's' ? dims[1] : dims[2]; };
    auto strides = [&](const Memory &m, char l) {
      ArrayRef<Dim> d = m.physical;
      std::string batch = dimText(elementCount(d.drop_front(1))), second = dimText(elementCount(d.drop_front(2))),
                  third = dimText(elementCount(d.drop_front(3)));
      return "{" + batch + ", " + (l == 's' ? third : second) + ", " + (l == 's' ? second : third) + "}";
    };
    Dim heads = head(qDims, layout[0]), queries = position(qDims, layout[0]), keys = position(kDims, layout[1]);
    int64_t queryTile = tensorCores ? 64 : 32;
    kernel.grid[0] = Dim::floorDiv(queries + queryTile - 1, queryTile), kernel.grid[1] = heads, kernel.grid[2] = qDims[0];
    bool copied = tensorCores && storageType(q->element) == operandType();
    int64_t keyTile = *width > 64 ? 32 : 64, pitch = *width + 8;
    kernel.sharedBytes = tensorCores ? 2 * (64 * pitch + 2 * (copied ? 2 : 1) * keyTile * pitch)
                                     : 4 * (2 * 32 * (*width + 4) + 32 * (*valueWidth + 4) + 32 * 36);
    std::string columns = std::to_string(*width);
    std::string tile = tensorCores ? columns + ", " + operandType() : columns + ", " + std::to_string(*valueWidth);
    p.line("static_assert(" +
           (tensorCores ? "AttentionMma<" + tile + ", " + storageType(q->element) + ">" : "AttentionF32<" + tile + ">") +
           "::kSharedBytes == " + std::to_string(kernel.sharedBytes) + ");");
    if (tensorCores) p.line("// products of " + operandType() + " on tensor cores, sums and softmax in f32");
    p.line("const Attention a{" + dimText(heads) + ", " + dimText(head(kDims, layout[1])) + ", " + dimText(queries) +
           ", " + dimText(keys) + ", // heads, of keys and values, queries, keys");
    p.line("                  " + strides(*q, layout[0]) + ", " + strides(*k, layout[1]) + ", " +
           strides(*v, layout[2]) + ", " + strides(out, layout[3]) + ", // batch, head, row of q k v out");
    p.line("                  " + number(Float32Type::get(root.getContext()), scale) + ", " + (root.getNanGuard() ? "true" : "false") + "};");
    p.open((tensorCores ? "attention_mma<" : "attention_f32<") + tile + ">(" + q->name + ", " + k->name + ", " +
           v->name + ", " + out.name + ", a, " + (tensorCores ? "false, " : "") + "[=](i64 batch, i64 head, i64 query, i64 key) -> float {");
    if (root.getBias()) {
      SmallVector<Dim> space{qDims[0], heads, queries, keys};
      Index at[] = {"batch", "head", "query", "key"};
      p.line("return " + p.element(root.getBias(), p.broadcast(root.getBias(), at, space)) + ";");
    } else {
      p.line("return 0.0f;");
    }
    p.close("});");
    return true;
  }

  /// Symbols that the text uses, in the plan's spelling.
  void collectSymbols() {
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

  /// The whole .cu of one launch.
  void finish(KernelText &text, const std::string &body, StringRef qualifier) {
    SmallVector<std::string> parameters;
    for (auto &m : operands)
      parameters.push_back(
          (m.packing == "check"
               ? "ListedRun "
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
    text.text = kernelSource("kernels/cuda/kernel.cu.in").str();
    auto fill = [&](StringRef hole, const std::string &value) {
      for (size_t at; (at = text.text.find(hole.str())) != std::string::npos;)
        text.text.replace(at, hole.size(), value);
    };
    fill("@GEOMETRY@", geometry), fill("@NODES@", where), fill("@INCLUDES@", lines),
        fill("@QUALIFIER@", qualifier.str());
    fill("@PARAMETERS@", llvm::join(parameters, ", ")), fill("@NAME@", text.name), fill("@KIND@", kind.str()),
        fill("@BODY@", body);
  }

  func::FuncOp function;
  Block &block;
  StringRef kind;
  ArrayRef<std::string> nodes;
  Precision precision;
  int64_t splitChecksAbove;
  KernelText kernel;
  std::string evaluation; // the body of the launch before the kernel's, when there is one
  Dim evaluationBlocks = 1;
  SmallVector<Memory> operands;
  SmallVector<Target> results;
  SmallVector<std::string> includes;
  std::string runOf, eOf; // of a fused check: the parameter that says which rows are evaluated, and E
  bool covered = false, wide = false, roomy = false;
};

} // namespace

std::optional<Precision> precisionOf(StringRef name) {
  if (name == "f32") return Precision::F32;
  if (name == "f16") return Precision::F16;
  if (name == "bf16") return Precision::BF16;
  return std::nullopt;
}

/// Gives every dispatch of the kernel a scratch buffer, unless it has one.
static void addScratch(ModuleOp planned, KernelText &text) {
  plan::ProgramOp program = *planned.getOps<plan::ProgramOp>().begin();
  OpBuilder b(planned.getContext());
  int64_t number = 0;
  for (auto step : program.getBody().getOps<plan::DispatchOp>()) {
    int64_t own = number++;
    if (step.getKernel() != text.function.getSymName() || step->hasAttr(plan::kCudaScratchAttr)) continue;
    SmallVector<plan::BufferOp> buffers(program.getBody().getOps<plan::BufferOp>());
    b.setInsertionPointAfter(buffers.back());
    auto type = RankedTensorType::get({ShapedType::kDynamic}, b.getF32Type());
    b.create<plan::BufferOp>(step.getLoc(), "arena", "check distances", type,
                             graph::DimsAttr::get(planned.getContext(), text.scratch), -1, own, own, "raw",
                             graph::DimsAttr(), ElementsAttr());
    step->setAttr(plan::kCudaScratchAttr, b.getI64IntegerAttr(static_cast<int64_t>(buffers.size())));
  }
}

llvm::Expected<std::vector<KernelText>> printKernels(ModuleOp planned, Precision precision,
                                                     int64_t splitChecksAbove) {
  llvm::MapVector<StringRef, std::vector<std::string>> uses;
  for (auto program : planned.getOps<plan::ProgramOp>())
    for (auto step : program.getBody().getOps<plan::DispatchOp>()) {
      // A node's name is the model's: no line may end in it what the comment began.
      std::string name = graph::nodeName(step.getLoc());
      for (char &c : name)
        if (static_cast<unsigned char>(c) < 32 || c == '\\') c = '?';
      uses[step.getKernel()].push_back(name);
    }
  std::vector<KernelText> kernels;
  for (auto &[name, nodes] : uses) {
    auto function = planned.lookupSymbol<func::FuncOp>(name);
    if (!function) return fail(ExitCode::Internal, ("the plan calls a kernel that is not there: " + name).str());
    auto text = KernelPrinter(function, nodes, precision, splitChecksAbove).print();
    if (!text) return text.takeError();
    for (auto &one : *text) {
      if (&one == &text->back() && !one.scratch.isConstant(0)) addScratch(planned, one);
      kernels.push_back(std::move(one));
    }
  }
  return kernels;
}

} // namespace tare::cuda
