// Bytes of tensors that lie outside of the .onnx file. In: the external_data entries of a TensorProto. Out: bytes in a mapped file.
// Must hold: a location never leads out of the model's directory (as given or as resolved), every range lies inside its file.
#pragma once
#include "compiler/import/ModelFile.h"
#include "llvm/ADT/StringMap.h"
#include <onnx/onnx_pb.h>
#include <vector>

namespace tare {

class ExternalData {
public:
  explicit ExternalData(llvm::StringRef modelPath);
  /// The `needed` bytes of `tensor`. Failures name the tensor, the location and what is wrong with it.
  llvm::Expected<llvm::ArrayRef<char>> bytesOf(const onnx::TensorProto &tensor, uint64_t needed);
  /// Opens one location by the path rules (spec 2); used by EmitOnnx too.
  llvm::Expected<std::shared_ptr<MappedFile>> open(llvm::StringRef location, llvm::StringRef tensor);
  /// Every file opened so far.
  std::vector<std::shared_ptr<MappedFile>> files() const;

private:
  std::string directory, resolvedDirectory; // of the model file as given, and after following its links
  llvm::StringMap<std::shared_ptr<MappedFile>> opened;
  llvm::StringMap<std::string> digests; // SHA-1 by location, for `checksum`
};

/// The entries of `tensor.external_data` after a check: known keys, each once, decimal numbers.
struct ExternalEntry {
  std::string location, checksum;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};
llvm::Expected<ExternalEntry> readExternalEntry(const onnx::TensorProto &tensor);

} // namespace tare
