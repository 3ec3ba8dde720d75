// The bytes of a TensorProto after all checks: type known, dims sane, one storage form, sizes equal.
#pragma once
#include "compiler/import/ExternalData.h"

namespace tare {

struct TensorBytes {
  llvm::ArrayRef<char> bytes;   ///< row-major, little-endian, 4-bit elements packed low nibble first
  uint64_t elements = 0;
  std::shared_ptr<void> owner;  ///< set when the bytes were assembled from a typed field
};
/// Failure: unsupported element type, negative or overflowing dims, conflicting or wrong-sized storage, external data rules.
llvm::Expected<TensorBytes> tensorBytes(const onnx::TensorProto &tensor, ExternalData &external);

} // namespace tare
