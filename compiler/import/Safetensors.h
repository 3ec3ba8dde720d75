// safetensors files and sharded checkpoints. In: a path. Out: named tensors whose bytes lie in a read-only mapping (nothing is copied).
// Holds: every rule of the format and bad-inputs B32 to B45: header, dtypes, shapes and ranges agree, no overlap, no hole, no byte left over,
// the index and its shards agree both ways, shards stay in the folder (or, through links, in the folder of the resolved config.json).
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tare {

/// A read-only mapping of a regular file; lives as long as the tensors that point into it.
class FileMapping {
public:
  static llvm::Expected<std::shared_ptr<FileMapping>> open(llvm::StringRef path);
  ~FileMapping();
  FileMapping(const FileMapping &) = delete;
  FileMapping &operator=(const FileMapping &) = delete;
  llvm::StringRef bytes() const { return {static_cast<const char *>(base), size}; }
  /// Refuses when the file on disk is no longer the one that was mapped ("changed while it was read").
  llvm::Error unchanged() const;

private:
  FileMapping() = default;
  std::string path;
  void *base = nullptr;
  size_t size = 0;
  int64_t inode = 0, seconds = 0, nanoseconds = 0;
};

/// One tensor: row-major, little-endian. `dtype` is the ONNX number (Npz.h), `stored` the file's word ("BF16").
struct TensorView {
  uint8_t dtype = 0;
  std::string stored;
  std::vector<int64_t> shape;
  llvm::StringRef bytes;
  std::string file;
};

struct Checkpoint {
  std::map<std::string, TensorView> tensors;
  std::vector<std::string> files;    ///< every file that was read, in order
  std::vector<std::string> warnings; ///< e.g. a file beside the index that it does not list
  std::vector<std::shared_ptr<FileMapping>> mappings;
};

/// The most tensors that one header may hold, the largest header in bytes.
inline constexpr uint64_t kMaxTensors = 262144, kMaxHeader = 100'000'000;

/// One .safetensors file.
llvm::Expected<Checkpoint> readSafetensors(llvm::StringRef path);

/// The weights of a Hugging Face folder: model.safetensors.index.json and its shards, else model.safetensors, else every *.safetensors there.
/// A folder with pickles only is refused: pickle is never loaded.
llvm::Expected<Checkpoint> readCheckpoint(llvm::StringRef folder);

} // namespace tare
