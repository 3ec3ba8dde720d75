// Compiled kernels by what they were made of (--cache-dir). In: a key. Out: an image found there, or a new one kept,
// atomically. Must hold: an entry that is damaged or cannot be read is as good as none; a cache that cannot be written
// never fails a compile, it says so once.
#pragma once
#include "compiler/codegen/cuda/Images.h"
#include <mutex>

namespace tare::cuda {

struct CachedImage {
  std::string bytes;
  std::optional<KernelResources> resources;
};

class CubinCache {
public:
  /// Empty: no cache.
  explicit CubinCache(std::string folder) : folder(std::move(folder)) {}
  /// SHA-256 over the parts, each with its length.
  static std::string key(llvm::ArrayRef<llvm::StringRef> parts);
  std::optional<CachedImage> find(const std::string &key) const;
  void keep(const std::string &key, const CachedImage &image);
  /// Why the first image that could not be kept was not; empty: all were.
  std::string complaint() const { return trouble; }

private:
  std::string folder, trouble;
  std::mutex mutex;
};

} // namespace tare::cuda
