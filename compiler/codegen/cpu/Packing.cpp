// Lays weights out for the kernels: raw bytes, or panels of 32 columns. In: dense<>, splats and dense_resource<>; out: bytes. Must hold: a resource's blob
// is used only when its size is what its type asks for (files lie), and sizes go through checked arithmetic.
#include "compiler/codegen/cpu/Packing.h"
#include "compiler/graph/Checked.h"
#include "compiler/graph/Failure.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace tare {
namespace {

constexpr uint64_t panelColumns = 32;

/// Bits one element takes in the engine file.
unsigned storedBits(Type element) {
  const unsigned width = element.getIntOrFloatBitWidth();
  return width == 1 ? 8 : width;
}

/// Elements of a dense<> attribute in file order, one element wide: booleans become bytes, 4-bit elements stay one per byte here.
std::string denseBytes(DenseElementsAttr dense, uint64_t count) {
  std::string bytes;
  if (dense.getElementType().isInteger(1)) {
    bytes.reserve(count);
    for (bool b : dense.getValues<bool>()) bytes.push_back(b ? 1 : 0);
    return bytes;
  }
  const llvm::ArrayRef<char> raw = dense.getRawData();
  if (!dense.isSplat()) return std::string(raw.begin(), raw.end());
  bytes.reserve(count * raw.size());
  for (uint64_t i = 0; i < count; ++i) bytes.append(raw.data(), raw.size());
  return bytes;
}

std::string packNibbles(llvm::StringRef elements) {
  std::string bytes((elements.size() + 1) / 2, '\0');
  for (size_t i = 0; i < elements.size(); ++i) bytes[i / 2] |= static_cast<char>((elements[i] & 15) << (i % 2 * 4));
  return bytes;
}

llvm::Expected<std::string> rawBytes(ElementsAttr value) {
  const auto type = cast<ShapedType>(value.getShapedType());
  const std::optional<uint64_t> count = checkedProduct(type.getShape());
  const std::optional<uint64_t> bits = count ? checkedMul(*count, storedBits(type.getElementType())) : std::nullopt;
  if (!bits) return fail(ExitCode::Limit, "a weight is larger than memory can address");
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    std::string bytes = denseBytes(dense, *count);
    return storedBits(type.getElementType()) == 4 ? packNibbles(bytes) : bytes;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob) return fail(ExitCode::Internal, "a weight has no data attached");
  if (blob->getData().size() != (*bits + 7) / 8)
    return refuse("a weight of " + std::to_string((*bits + 7) / 8) + " bytes has " + std::to_string(blob->getData().size()) + " bytes of data");
  return std::string(blob->getData().begin(), blob->getData().end());
}

/// [K][R][X] elements of `width` bytes as [K][ceil(R/32)][X][32], zero padded.
std::string panelsOf(llvm::StringRef raw, uint64_t heads, uint64_t rank, uint64_t depth, uint64_t width) {
  const uint64_t panels = (rank + panelColumns - 1) / panelColumns;
  std::string packed(heads * panels * depth * panelColumns * width, '\0');
  for (uint64_t k = 0; k < heads; ++k)
    for (uint64_t r = 0; r < rank; ++r)
      for (uint64_t x = 0; x < depth; ++x)
        memcpy(packed.data() + (((k * panels + r / panelColumns) * depth + x) * panelColumns + r % panelColumns) * width, raw.data() + ((k * rank + r) * depth + x) * width, width);
  return packed;
}

/// What a fidelity check's kernel reads (Plan.td, `packing`).
llvm::Expected<std::string> packCheck(llvm::StringRef raw, ShapedType type, llvm::StringRef packing) {
  const llvm::ArrayRef<int64_t> shape = type.getShape();
  const bool isRow = packing == "check_row32";
  if (shape.size() != (isRow ? 2 : 3)) return fail(ExitCode::Internal, "a check's weight has another rank");
  const uint64_t heads = shape[0], rank = shape[1], depth = isRow ? 1 : shape[2], width = storedBits(type.getElementType()) / 8;
  if (!checkedProduct(std::array<uint64_t, 4>{heads, rank + panelColumns, depth, width})) return fail(ExitCode::Limit, "a packed weight is larger than memory can address");
  if (packing != "check_nibble32") return panelsOf(raw, heads, rank, depth, width);
  std::string bytes = panelsOf(raw, heads, rank, depth, 1), packed(bytes.size() / 2, '\0');
  for (size_t i = 0; i < packed.size(); ++i) {
    const char *step = bytes.data() + i / 16 * 32 + i % 16;
    packed[i] = static_cast<char>((step[0] + 8) | (step[16] + 8) << 4);
  }
  return packed;
}

} // namespace

llvm::Expected<std::string> packWeight(ElementsAttr value, llvm::StringRef packing) {
  const bool isCheck = packing == "check_panel32" || packing == "check_nibble32" || packing == "check_row32";
  if (packing != "raw" && packing != "panel32" && !isCheck) return fail(ExitCode::Internal, ("unknown weight packing '" + packing + "'").str());
  llvm::Expected<std::string> raw = rawBytes(value);
  if (!raw || packing == "raw") return raw;
  if (isCheck) return packCheck(*raw, cast<ShapedType>(value.getShapedType()), packing);

  const auto type = cast<ShapedType>(value.getShapedType());
  const Type element = type.getElementType();
  const llvm::ArrayRef<int64_t> shape = type.getShape();
  if (!element.isF32() && !element.isF16() && !element.isBF16()) return fail(ExitCode::Internal, "panel32 holds f32, f16 or bf16 only");
  if (shape.size() < 2 || !llvm::all_of(shape.drop_back(2), [](int64_t d) { return d == 1; })) return fail(ExitCode::Internal, "panel32 holds matrices only");
  const uint64_t depth = shape[shape.size() - 2], columns = shape.back(), width = storedBits(element) / 8;
  const uint64_t panels = (columns + panelColumns - 1) / panelColumns;
  const std::optional<uint64_t> bytes = checkedProduct(std::array<uint64_t, 4>{panels, depth, panelColumns, width});
  if (!bytes) return fail(ExitCode::Limit, "a packed weight is larger than memory can address");
  std::string packed(*bytes, '\0');
  for (uint64_t panel = 0; panel < panels; ++panel) {
    const uint64_t column = panel * panelColumns, run = std::min(panelColumns, columns - column) * width;
    for (uint64_t k = 0; k < depth; ++k)
      memcpy(packed.data() + (panel * depth + k) * panelColumns * width, raw->data() + (k * columns + column) * width, run);
  }
  return packed;
}

} // namespace tare
