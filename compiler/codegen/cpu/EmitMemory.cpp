// Elements between memory and registers: storage types, loads and stores. f16 and bf16 are widened to f32 exactly and rounded to nearest even, bool is one
// byte, 4-bit integers lie two to a byte, low half first (ONNX). bf16 is converted with integer ops: not every level has an instruction, and there is no libcall.
#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;

namespace tare::codegen {

Type Emitter::scalarType(Type element) {
  if (element.isF16() || element.isBF16()) return Float32Type::get(element.getContext());
  if (auto integer = dyn_cast<IntegerType>(element)) return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

Type Emitter::storageType(Type element) {
  if (element.isBF16()) return IntegerType::get(element.getContext(), 16);
  if (auto integer = dyn_cast<IntegerType>(element)) return IntegerType::get(element.getContext(), std::max(8u, integer.getWidth()));
  return element;
}

Value Emitter::address(const Memory &m, Value index) {
  return b.create<LLVM::GEPOp>(loc, m.pointer.getType(), storageType(m.element), m.pointer, ArrayRef<LLVM::GEPArg>{index}, /*inbounds=*/true);
}

static bool isNibble(Type element) { return element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 4; }

Value Emitter::loadLinear(const Memory &m, Value index) {
  Type f32 = b.getF32Type(), i32 = b.getI32Type(), i8 = b.getI8Type();
  if (isNibble(m.element)) {
    Value byte = b.create<LLVM::LoadOp>(loc, i8, address(m, div(index, integer(2))), /*alignment=*/1);
    Value odd = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, rem(index, integer(2)), integer(0));
    Value high = b.create<arith::ShRUIOp>(loc, byte, b.create<arith::ConstantOp>(loc, b.getI8IntegerAttr(4)));
    return b.create<arith::TruncIOp>(loc, scalarType(m.element), select(odd, high, byte));
  }
  Type stored = storageType(m.element);
  unsigned alignment = stored.getIntOrFloatBitWidth() / 8;
  Value v = b.create<LLVM::LoadOp>(loc, stored, address(m, index), alignment);
  if (m.element.isF16()) return b.create<arith::ExtFOp>(loc, f32, v);
  if (m.element.isBF16()) {
    Value wide = b.create<arith::ExtUIOp>(loc, i32, v);
    return b.create<arith::BitcastOp>(loc, f32, b.create<arith::ShLIOp>(loc, wide, b.create<arith::ConstantOp>(loc, b.getI32IntegerAttr(16))));
  }
  if (m.element.isInteger(1)) return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, v, b.create<arith::ConstantOp>(loc, b.getI8IntegerAttr(0)));
  return v;
}

/// The upper 16 bits of an f32 after rounding to nearest even; a NaN stays one.
static Value bf16Bits(Emitter &e, Value x) {
  OpBuilder &b = e.b;
  Type i32 = b.getI32Type();
  auto word = [&](int64_t v) { return b.create<arith::ConstantOp>(e.loc, b.getI32IntegerAttr(static_cast<int32_t>(v))); };
  Value bits = b.create<arith::BitcastOp>(e.loc, i32, x);
  Value lowest = b.create<arith::AndIOp>(e.loc, b.create<arith::ShRUIOp>(e.loc, bits, word(16)), word(1));
  Value rounded = b.create<arith::AddIOp>(e.loc, bits, b.create<arith::AddIOp>(e.loc, lowest, word(0x7fff)));
  Value nan = b.create<arith::CmpFOp>(e.loc, arith::CmpFPredicate::UNO, x, x);
  Value quiet = b.create<arith::OrIOp>(e.loc, bits, word(0x400000));
  return b.create<arith::ShRUIOp>(e.loc, b.create<arith::SelectOp>(e.loc, nan, quiet, rounded), word(16));
}

void Emitter::storeLinear(const Memory &m, Value index, Value v) {
  Type stored = storageType(m.element);
  if (m.element.isF16()) v = b.create<arith::TruncFOp>(loc, b.getF16Type(), v);
  if (m.element.isBF16()) v = b.create<arith::TruncIOp>(loc, b.getI16Type(), bf16Bits(*this, v));
  if (m.element.isInteger(1)) v = b.create<arith::ExtUIOp>(loc, b.getI8Type(), v);
  b.create<LLVM::StoreOp>(loc, v, address(m, index), stored.getIntOrFloatBitWidth() / 8);
}

/// What a round trip through storage does to a scalar (casts to f16 and bf16).
Value Emitter::roundToStorage(Value x, Type element) {
  if (element.isF16()) return b.create<arith::ExtFOp>(loc, b.getF32Type(), b.create<arith::TruncFOp>(loc, b.getF16Type(), x).getResult());
  if (!element.isBF16()) return x;
  Value bits = b.create<arith::ShLIOp>(loc, bf16Bits(*this, x), b.create<arith::ConstantOp>(loc, b.getI32IntegerAttr(16)));
  return b.create<arith::BitcastOp>(loc, b.getF32Type(), bits);
}

} // namespace tare::codegen
