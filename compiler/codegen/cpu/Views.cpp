// Strides through transposes, expands and reshapes of buffers; words for the microkernels' argument structs.
#include "compiler/codegen/cpu/Views.h"

using namespace mlir;

namespace tare::codegen {

static SmallVector<Value> contiguous(Emitter &e, ArrayRef<Dim> dims) {
  SmallVector<Value> strides;
  for (size_t i = 0; i < dims.size(); ++i) strides.push_back(e.dim(elementCount(dims.drop_front(i + 1))));
  return strides;
}

std::optional<View> viewOf(Emitter &e, Value value) {
  if (auto it = e.memory.find(value); it != e.memory.end()) return View{it->second, contiguous(e, it->second.physical)};
  Dims dims = graph::dimsOf(value);
  if (auto transpose = value.getDefiningOp<graph::TransposeOp>()) {
    auto inner = viewOf(e, transpose.getX());
    if (!inner) return std::nullopt;
    View view{inner->memory, {}};
    for (int64_t p : transpose.getPerm()) view.strides.push_back(inner->strides[p]);
    return view;
  }
  if (auto expand = value.getDefiningOp<graph::ExpandOp>()) {
    auto inner = viewOf(e, expand.getX());
    Dims own = graph::dimsOf(expand.getX());
    if (!inner) return std::nullopt;
    View view{inner->memory, SmallVector<Value>(dims.size(), e.integer(0))};
    size_t shift = dims.size() - own.size();
    for (auto [i, d] : llvm::enumerate(own)) {
      if (d.isConstant(1)) continue;
      if (!(d == dims[i + shift])) return std::nullopt;
      view.strides[i + shift] = inner->strides[i];
    }
    return view;
  }
  if (auto reshape = value.getDefiningOp<graph::ReshapeOp>()) {
    auto it = e.memory.find(reshape.getX());
    if (it == e.memory.end() || !(ArrayRef<Dim>(it->second.physical) == ArrayRef<Dim>(graph::dimsOf(reshape.getX())))) return std::nullopt;
    return View{it->second, contiguous(e, dims)};
  }
  return std::nullopt;
}

Value packWords(Emitter &e, ArrayRef<Value> words) {
  auto pointer = LLVM::LLVMPointerType::get(e.b.getContext());
  Value block = e.b.create<LLVM::AllocaOp>(e.loc, pointer, LLVM::LLVMArrayType::get(e.i64(), words.size()), e.integer(1), 8);
  for (auto [i, word] : llvm::enumerate(words)) {
    Value slot = e.b.create<LLVM::GEPOp>(e.loc, pointer, e.i64(), block, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    e.b.create<LLVM::StoreOp>(e.loc, word, slot);
  }
  return block;
}

void callDriver(Emitter &e, Kernel &k, StringRef name, ArrayRef<Value> arguments) {
  SmallVector<Type> types(ValueRange(arguments).getTypes());
  auto driver = declare(k.function->getParentOfType<ModuleOp>(), name, LLVM::LLVMVoidType::get(e.b.getContext()), types);
  e.b.create<LLVM::CallOp>(e.loc, driver, ValueRange(arguments));
}

} // namespace tare::codegen
