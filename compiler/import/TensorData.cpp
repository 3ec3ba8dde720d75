// TensorProto to graph.constant. In: an initializer or attribute tensor. Out: a constant whose attribute holds or points to the bytes.
// Must hold: dims, element type and bytes agree before anything reads them (house rule 8); exactly one storage form is used.
#include "compiler/graph/Checked.h"
#include "compiler/import/GraphBuilder.h"
#include "compiler/import/TensorData.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

using namespace mlir;

namespace tare {

namespace {
struct ElementInfo { int32_t number; const char *name; unsigned bits; };
} // namespace
static constexpr ElementInfo kElements[] = {
    {1, "float", 32},   {2, "uint8", 8},    {3, "int8", 8},      {4, "uint16", 16},   {5, "int16", 16},      {6, "int32", 32},     {7, "int64", 64},
    {8, "string", 0},   {9, "bool", 8},     {10, "float16", 16}, {11, "double", 64},  {12, "uint32", 32},    {13, "uint64", 64},   {14, "complex64", 0},
    {15, "complex128", 0}, {16, "bfloat16", 16}, {17, "float8e4m3fn", 0}, {18, "float8e4m3fnuz", 0}, {19, "float8e5m2", 0}, {20, "float8e5m2fnuz", 0},
    {21, "uint4", 4},   {22, "int4", 4},    {23, "float4e2m1", 0}, {24, "float8e8m0", 0}, {25, "uint2", 0}, {26, "int2", 0}};

static const ElementInfo *infoOf(int32_t number) {
  for (auto &info : kElements)
    if (info.number == number) return &info;
  return nullptr;
}

std::string typeName(int32_t onnxType) {
  auto *info = infoOf(onnxType);
  return info ? info->name : "element type " + std::to_string(onnxType);
}

std::string typeName(Type type) {
  for (auto &info : kElements)
    if (info.bits && elementType(*type.getContext(), info.number) == type) return info.name;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

Type elementType(MLIRContext &context, int32_t onnxType) {
  auto integer = [&](unsigned bits, bool isUnsigned) {
    return IntegerType::get(&context, bits, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  switch (onnxType) {
  case 1: return Float32Type::get(&context);
  case 2: return integer(8, true);
  case 3: return integer(8, false);
  case 4: return integer(16, true);
  case 5: return integer(16, false);
  case 6: return integer(32, false);
  case 7: return integer(64, false);
  case 9: return integer(1, false);
  case 10: return Float16Type::get(&context);
  case 11: return Float64Type::get(&context);
  case 12: return integer(32, true);
  case 13: return integer(64, true);
  case 16: return BFloat16Type::get(&context);
  case 21: return integer(4, true);
  case 22: return integer(4, false);
  default: return {};
  }
}

/// Copies a typed field (int32_data and so on) into bytes of the element type; ONNX says which field each type uses.
static llvm::Error fromTypedField(const onnx::TensorProto &t, const ElementInfo &info, uint64_t elements, std::vector<char> &bytes) {
  auto append = [&](uint64_t value, unsigned size) { for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i))); };
  uint64_t have = 0, expected = elements;
  switch (info.number) {
  case 1: have = t.float_data_size(); for (float v : t.float_data()) append(llvm::bit_cast<uint32_t>(v), 4); break;
  case 11: have = t.double_data_size(); for (double v : t.double_data()) append(llvm::bit_cast<uint64_t>(v), 8); break;
  case 7: have = t.int64_data_size(); for (int64_t v : t.int64_data()) append(static_cast<uint64_t>(v), 8); break;
  case 12: case 13: have = t.uint64_data_size(); for (uint64_t v : t.uint64_data()) append(v, info.bits / 8); break;
  default: // 32-bit slots: small integers, bool, the bits of f16 and bf16, two 4-bit numbers per slot
    have = t.int32_data_size();
    if (info.bits == 4) expected = (elements + 1) / 2;
    for (int32_t v : t.int32_data()) append(static_cast<uint32_t>(v), info.bits == 4 ? 1 : info.bits / 8);
  }
  if (have != expected)
    return refuse("the tensor's data field holds " + std::to_string(have) + " values, its shape needs " + std::to_string(expected)).ofTensor(t.name());
  return llvm::Error::success();
}

static std::vector<std::string> storagesOf(const onnx::TensorProto &t) {
  std::vector<std::string> used;
  if (t.float_data_size()) used.push_back("float_data");
  if (t.int32_data_size()) used.push_back("int32_data");
  if (t.int64_data_size()) used.push_back("int64_data");
  if (t.uint64_data_size()) used.push_back("uint64_data");
  if (t.double_data_size()) used.push_back("double_data");
  if (t.string_data_size()) used.push_back("string_data");
  if (t.has_raw_data()) used.push_back("raw_data"); // also an empty one: proto2 keeps presence
  if (t.data_location() == onnx::TensorProto::EXTERNAL || t.external_data_size()) used.push_back("external_data");
  return used;
}

llvm::Expected<TensorBytes> tensorBytes(const onnx::TensorProto &t, ExternalData &external) {
  TensorBytes result;
  auto *info = infoOf(t.data_type());
  if (!info || !info->bits)
    return refuse("element type " + (info ? std::string(info->name) : std::to_string(t.data_type())) + " is not supported").ofTensor(t.name());
  if (t.has_segment()) return refuse("segmented tensors are not supported").ofTensor(t.name());
  if (t.dims_size() > 8) return refuse("rank " + std::to_string(t.dims_size()) + " is above the limit of 8").ofTensor(t.name());
  auto elements = checkedProduct(t.dims());
  auto bits = elements ? checkedMul(*elements, info->bits) : std::nullopt;
  if (!bits) {
    bool negative = llvm::any_of(t.dims(), [](int64_t d) { return d < 0; });
    std::string dims = "[" + llvm::join(llvm::map_range(t.dims(), [](int64_t d) { return std::to_string(d); }), ", ") + "]";
    return refuse("dims " + dims + (negative ? " contain a negative size" : ": their product overflows")).ofTensor(t.name());
  }
  result.elements = *elements;
  uint64_t needed = *bits / 8 + (*bits % 8 != 0);
  auto used = storagesOf(t);
  if (used.size() > 1)
    return refuse("conflicting storage: " + llvm::join(used, " and ") + " are both set").ofTensor(t.name());
  bool isExternal = !used.empty() && used[0] == "external_data";
  if (isExternal) {
    if (t.data_location() != onnx::TensorProto::EXTERNAL) return refuse("external_data entries without data_location EXTERNAL").ofTensor(t.name());
    auto bytes = external.bytesOf(t, needed);
    if (!bytes) return bytes.takeError();
    result.bytes = *bytes;
  } else if (t.has_raw_data()) {
    if (t.raw_data().size() != needed)
      return refuse("raw_data holds " + std::to_string(t.raw_data().size()) + " bytes, shape and type need " + std::to_string(needed)).ofTensor(t.name());
    result.bytes = ArrayRef<char>(t.raw_data().data(), t.raw_data().size());
  } else {
    auto owned = std::make_shared<std::vector<char>>();
    if (auto error = fromTypedField(t, *info, *elements, *owned)) return std::move(error);
    result.bytes = *owned;
    result.owner = owned;
  }
  return result;
}

static int64_t integerAt(ArrayRef<char> bytes, const ElementInfo &info, bool isSigned, int64_t i) {
  const char *p = bytes.data();
  using namespace llvm::support::endian;
  switch (info.bits) {
  case 4: { unsigned nibble = (static_cast<uint8_t>(p[i / 2]) >> (i % 2 ? 4 : 0)) & 15; return isSigned && nibble > 7 ? int64_t(nibble) - 16 : nibble; }
  case 8: return isSigned ? int64_t(static_cast<int8_t>(p[i])) : static_cast<uint8_t>(p[i]);
  case 16: return isSigned ? int64_t(static_cast<int16_t>(read16le(p + 2 * i))) : read16le(p + 2 * i);
  case 32: return isSigned ? int64_t(static_cast<int32_t>(read32le(p + 4 * i))) : read32le(p + 4 * i);
  default: return static_cast<int64_t>(read64le(p + 8 * i));
  }
}

llvm::Expected<Value> GraphBuilder::constant(const onnx::TensorProto &t, StringRef name, Location location, bool overridable) {
  auto data = tensorBytes(t, external);
  if (!data) return handleErrors(data.takeError(), [&](Failure &f) -> llvm::Error {
    if (f.tensor.empty()) f.ofTensor(name.str());
    return llvm::make_error<Failure>(f.inFile(file));
  });
  const ElementInfo &info = *infoOf(t.data_type());
  Type element = elementType(context, t.data_type());
  SmallVector<int64_t> shape(t.dims().begin(), t.dims().end());
  auto type = RankedTensorType::get(shape, element);
  auto count = static_cast<int64_t>(data->elements);
  bool isSigned = !element.isUnsignedInteger() && !element.isInteger(1);
  ElementsAttr value;
  Dims content;
  if (auto integerType = dyn_cast<IntegerType>(element); integerType && count <= kMaxContent) {
    SmallVector<APInt> elements;
    for (int64_t i = 0; i < count; ++i) {
      int64_t v = integerAt(data->bytes, info, isSigned, i);
      if (element.isInteger(1)) v = v != 0;
      elements.push_back(APInt(64, static_cast<uint64_t>(v)).trunc(integerType.getWidth()));
      content.push_back(v);
    }
    if (count <= 64) value = DenseElementsAttr::get(type, elements);
  } else if (count <= 64) {
    value = DenseElementsAttr::getFromRawBuffer(type, data->bytes);
  }
  if (!value) {
    // The blob keeps its buffer alive; maps and the parsed model are kept by ImportedModel::storage.
    auto owner = data->owner;
    auto blob = UnmanagedAsmResourceBlob::allocateWithAlign(data->bytes, 1, [owner](void *, size_t, size_t) {});
    value = DenseResourceElementsAttr::get(type, name.empty() ? "constant" : name, std::move(blob));
  }
  if (count == 0) value = DenseElementsAttr::get(type, ArrayRef<Attribute>());
  auto op = builder.create<graph::ConstantOp>(location, type, builder.getStringAttr(name), value, overridable ? builder.getUnitAttr() : UnitAttr());
  if (!overridable && isa<IntegerType>(element) && count <= kMaxContent) setContent(op, std::move(content));
  return op.getResult();
}

} // namespace tare
