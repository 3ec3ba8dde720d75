// GEMM groups: a tile of kernels/cuda with the epilogue as a lambda, its fidelity check fused into it or split off, and
// products of two activations. In: a gemm or batch_matmul body. Out: the call (KernelPrinter.h).
#include "compiler/codegen/cuda/KernelPrinter.h"

using namespace mlir;

namespace tare::cuda {

/// Shared memory of quantised rows (kernels/cuda/check_fixed.cuh FixedShape::kBytes): 2560 bytes per warp for panels in
/// flight; 512 per step of 32 values and 160 per group of a chunk of up to 16 steps.
static int64_t fixedBytes(int64_t width, int64_t group) {
  if (group < 1 || group > 128) return 0;
  int64_t steps = (group + 31) / 32, groups = std::min((width + group - 1) / group, 16 / steps);
  return 4 * 2560 + groups * (512 * steps + 160);
}

/// What a sparse fidelity check adds to its gemm (kernels/cuda/check.cuh): the call's first line and the lambda's
/// last parameter. Operands of the op in order: h, w, p, tau, e, the run's rows (in the place of the anchors), and
/// with integers quantized, scale.
std::optional<std::string> KernelPrinter::checkedCall(Printer &p, graph::FidelityCheckOp check, const Memory &a, const Memory &w, const Memory &out, const Dim &rows,
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
  int64_t scales = integers && group ? std::max<int64_t>(group.getInt(), 1) : 0, fixed = fixedBytes(*width, scales);
  int64_t panels = (*rank + 31) / 32, scratch = fixed + 8 * *heads * panels * 4 + 2 * 65 * 4 + 16,
          tiles = std::min<int64_t>((*f + 63) / 64, 8);
  kernel.grid[0] = Dim((*f + 64 * tiles - 1) / (64 * tiles));
  kernel.sharedBytes = std::max(kernel.sharedBytes, scratch) + 256;
  runOf = m[5]->name;
  p.line("using Check = CheckShape<" + std::to_string(*heads) + ", " + std::to_string(*rank) + ", " +
         std::to_string(*width) + ", " + std::to_string(scales) + ", " + std::to_string(check.getWindow()) + ">;");
  p.line("static_assert(k" + gemmSizes() + "CheckedBytes<Check" + (halfOperands() ? "" : ", " + storageType(w.element)) +
         "> == " + std::to_string(kernel.sharedBytes) + ");");
  bool split = *heads * panels * 32 > splitChecksAbove;
  roomy = !split; // evaluating in f32, as dense runs do, takes 64 sums and 32 weights per thread
  std::string dense = "FloatPanels<Check, " + storageType(m[1]->element) + ">{" + m[1]->name + "}";
  std::string sparse = integers ? std::string(nibbles ? "Int4Panels" : "Int8Panels") + "<Check>{" + m[6]->name +
                                      ", " + m[7]->name + "}"
                                : dense;
  eOf = m[4]->name;
  std::string types = halfOperands() ? "<Check, " + operandType() + ">(" : "<Check>(";
  std::string call = gemmName() + (split ? "_carried" : "_checked") + types +
                     a.name + ", " + w.name + ", " + out.name + ", " + dimText(rows) + ", " + dimText(columns) + ", " +
                     std::to_string(tiles) + ", " + runOf + ", ";
  if (split) {
    // Four panels (one per warp) of four or eight rows are a block's unit; 1024 blocks fill any GPU and take what there is.
    evaluationBytes = fixed;
    kernel.scratch = rows * Dim(*heads * panels * 4);
    evaluationBlocks = Dim::min(Dim::floorDiv(rows + 3, 4) * Dim((*heads * panels + 3) / 4), 1024);
    evaluation = p.text + "  // the distance of every evaluated row to every panel of prototypes, once\n  check_distances<Check>(" +
                 a.name + ", " + dimText(rows) + ", " + runOf + ", " + sparse + ", " + dense + ", " + m[2]->name + ", " +
                 kScratch.str() + ");\n";
    call += kScratch.str() + ", ";
  } else {
    call += sparse + ", " + dense + ", " + m[2]->name + ", ";
  }
  return call + m[3]->name + ", [=](i64 row, i64 column, float product, u32 bits) -> float {";
}

/// From how many rows on tiles of 128 x 128 serve a GEMM on tensor cores: when there is a full one for every multiprocessor of
/// an A100. Fewer leave multiprocessors idle, while four times as many small tiles keep all of them busy at half of the
/// large ones' speed; and of few rows a large tile multiplies mostly zeros. Columns must fill three quarters of the tiles.
static std::optional<int64_t> rowsForLargeTiles(const Dim &columns) {
  constexpr int64_t tile = 128, multiprocessors = 108;
  auto width = columns.constant();
  int64_t across = width ? (*width + tile - 1) / tile : 0;
  if (across == 0 || 3 * tile * across > 4 * *width) return std::nullopt;
  return tile * ((multiprocessors + across - 1) / across);
}

llvm::Expected<std::optional<KernelText>> KernelPrinter::largeTiles() {
  if (large || whenLarge.isConstant(0)) return std::nullopt;
  KernelPrinter other(function, kernel.name + "_large", nodes, kernel.stored, precision, splitChecksAbove);
  other.large = true;
  auto texts = other.print();
  if (!texts) return texts.takeError();
  return std::move(texts->back());
}

void KernelPrinter::gemmShape(Printer &p, const Dim &rows, const Dim &columns, const Dim &depth, Type weights) {
  const bool isChecked = !block.getOps<graph::FidelityCheckOp>().empty();
  const int64_t tile = large ? 128 : 64, stages = precision == Precision::F32 ? 2 : 3, width = weights.getIntOrFloatBitWidth() / 8;
  std::optional<int64_t> largeFrom = halfOperands() && !isChecked ? rowsForLargeTiles(columns) : std::nullopt;
  if (largeFrom) whenLarge = Dim::min(Dim::floorDiv(rows, *largeFrom), 1);
  wide = large; // 128 sums
  kernel.grid[0] = Dim::floorDiv(columns + (tile - 1), tile), kernel.grid[1] = Dim::floorDiv(rows + (tile - 1), tile);
  kernel.grid[2] = large ? whenLarge : Dim(1) - whenLarge; // no blocks: the other text's launch
  kernel.sharedBytes = stages * (halfOperands() ? 2 * 32 * (tile + tile) : 64 * 16 * 4 + 16 * 64 * width);
  if (!isChecked) // a checked one has its own
    p.line("static_assert(" + gemmSizes() + "::kSharedBytes" + (halfOperands() ? "" : "<" + storageType(weights) + ">") +
           " == " + std::to_string(kernel.sharedBytes) + ");");
  if (precision != Precision::F32) p.line("// products of " + operandType() + " on tensor cores, sums in f32");
  p.line("// " + dimText(rows) + " rows, " + dimText(columns) + " columns, depth " + dimText(depth));
  if (largeFrom) p.line((large ? "// from " : "// less than ") + std::to_string(*largeFrom) + " rows" + (large ? " on" : ""));
}

bool KernelPrinter::gemm(Printer &p) {
  auto root = cast<graph::MatmulOp>(plan::rootOf(block, "gemm"));
  Memory w = operands[plan::gemmRhsArgument(block)], out = results[0].memory;
  auto lhsArgument = dyn_cast<BlockArgument>(root.getLhs());
  Dims dims = graph::dimsOf(root.getResult()), lhs = graph::dimsOf(root.getLhs());
  Type left = elementType(root.getLhs());
  bool takesLeft = left.isF32() || (halfOperands() && (left.isF16() || left.isBF16()));
  if (!lhsArgument || !w.panels() || !takesLeft || results.size() != 1 || out.element.isF64() ||
      !isa<FloatType>(out.element))
    return false;
  if (!(ArrayRef<Dim>(out.physical) == ArrayRef<Dim>(dims)) ||
      !(ArrayRef<Dim>(operands[lhsArgument.getArgNumber()].physical) == ArrayRef<Dim>(lhs)))
    return false;
  includes = {gemmName() + ".cuh", "scalar.cuh"};
  Dim rows = elementCount(ArrayRef<Dim>(lhs).drop_back()), columns = dims.back();
  gemmShape(p, rows, columns, lhs.back(), w.element);
  if (halfOperands()) notesRounded(root.getLhs());
  graph::FidelityCheckOp check;
  for (auto c : block.getOps<graph::FidelityCheckOp>())
    check = c;
  std::string call = gemmName() + (halfOperands() ? "<" + operandType() + (large ? ", " + gemmSizes() : "") + ">(" : "(");
  call += operands[lhsArgument.getArgNumber()].name + ", " + dimText(lhs.back()) + ", " + w.name + ", " + out.name + ", " +
          dimText(rows) + ", " + dimText(columns) + ", " + dimText(lhs.back()) + ", [=](i64 row, i64 column, float product) -> float {";
  if (check) {
    auto checked = checkedCall(p, check, operands[lhsArgument.getArgNumber()], w, out, rows, columns);
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

bool KernelPrinter::batchMatmul(Printer &p) {
  auto root = cast<graph::MatmulOp>(plan::rootOf(block, "batch_matmul"));
  Dims dims = graph::dimsOf(root.getResult()), left = graph::dimsOf(root.getLhs()), right = graph::dimsOf(root.getRhs());
  auto isFloat = [](Value v) { return scalarType(elementType(v)) == "float"; };
  auto alike = [&](const Target &t) { return ArrayRef<Dim>(graph::dimsOf(t.value)) == ArrayRef<Dim>(dims); };
  if (left.size() < 2 || right.size() < 2 || !isFloat(root.getResult()) || !isFloat(root.getLhs()) ||
      !isFloat(root.getRhs()) || !llvm::all_of(results, alike))
    return false;
  includes = {"matmul.cuh", "scalar.cuh"};
  roomy = true; // 32 sums beside two expressions of any length
  ArrayRef<Dim> lead = ArrayRef<Dim>(dims).drop_back(2);
  Dim rows = dims[dims.size() - 2], columns = dims.back(), depth = left.back();
  kernel.grid[0] = elementCount(lead) * Dim::floorDiv(rows + 63, 64) * Dim::floorDiv(columns + 63, 64);
  kernel.sharedBytes = 4 * (64 * 16 + 16 * 64);
  p.line("static_assert(MatmulF32::kSharedBytes == " + std::to_string(kernel.sharedBytes) + ");");
  p.line("// " + dimText(elementCount(lead)) + " products");
  p.line("matmul_f32(" + dimText(rows) + ", " + dimText(columns) + ", " + dimText(depth) + ",");
  auto operand = [&](Value value, const Index &first, const Index &second) {
    p.open("[=](i64 batch, i64 " + first + ", i64 " + second + ") -> float {");
    SmallVector<Index> at = p.delinearise("batch", lead);
    p.line("return " + p.element(value, p.operandIndices(root, value, at, first, second)) + ";");
    p.close("},");
  };
  operand(root.getLhs(), "row", "k"), operand(root.getRhs(), "k", "column");
  p.open("[=](i64 batch, i64 row, i64 column, float product) {");
  SmallVector<Index> at = p.delinearise("batch", lead);
  at.push_back(rows.isConstant(1) ? "0" : "row"), at.push_back(columns.isConstant(1) ? "0" : "column");
  p.bind(root.getResult(), at, "product");
  storeResults(p, at);
  p.close("});");
  return true;
}

} // namespace tare::cuda
