// Attention groups (KernelPrinter.h): a template of kernels/cuda with the masks as a lambda. In: an attention body. Out:
// the call; false where no template takes the head sizes or types.
#include "compiler/codegen/cuda/KernelPrinter.h"

using namespace mlir;

namespace tare::cuda {

bool KernelPrinter::attention(Printer &p) {
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
  bool tensorCores = halfOperands() && *width == *valueWidth && *width % 16 == 0 && scale != 0 &&
                     all({q, k, v}, q->element) && (q->element.isF32() || isHalf(q->element)) &&
                     (out.element.isF32() || isHalf(out.element));
  if (!tensorCores && (!all({q, k, v}, Float32Type::get(root.getContext())) || !(out.element.isF32() || isHalf(out.element)))) return false;
  if (tensorCores) notesRounded({root.getQ(), root.getK(), root.getV()});
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

} // namespace tare::cuda
