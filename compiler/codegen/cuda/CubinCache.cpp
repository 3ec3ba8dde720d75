// DIR/KEY.cubin: a line "tare cubin 2 SHA256" over KEY and the rest, a line of resources (or "-"), the image.
#include "compiler/codegen/cuda/CubinCache.h"
#include "compiler/engine/AtomicFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

namespace tare::cuda {
namespace {
constexpr llvm::StringLiteral magic = "tare cubin 2 ";

std::string digest(llvm::StringRef bytes) {
  llvm::SHA256 hash;
  hash.update(bytes);
  return llvm::toHex(hash.final(), true);
}
} // namespace

std::string CubinCache::key(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::SHA256 hash;
  for (auto part : parts) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  }
  return llvm::toHex(hash.final(), true);
}

std::optional<CachedImage> CubinCache::find(const std::string &key) const {
  if (folder.empty()) return std::nullopt;
  auto file =
      llvm::MemoryBuffer::getFile(folder + "/" + key + ".cubin", /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) return std::nullopt;
  llvm::StringRef text = (*file)->getBuffer();
  if (!text.consume_front(magic)) return std::nullopt;
  auto [hash, rest] = text.split('\n');
  if (hash != digest(key + rest.str())) return std::nullopt; // damaged, or the entry of another key
  auto [line, bytes] = rest.split('\n');
  CachedImage image;
  image.bytes = bytes.str();
  if (line != "-") {
    KernelResources r;
    llvm::SmallVector<llvm::StringRef> numbers;
    line.split(numbers, ' ');
    if (numbers.size() != 5) return std::nullopt;
    int64_t *const to[] = {&r.registers, &r.sharedBytes, &r.stackBytes, &r.spillStores, &r.spillLoads};
    for (size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i].getAsInteger(10, *to[i])) return std::nullopt;
    image.resources = r;
  }
  return image;
}

void CubinCache::keep(const std::string &key, const CachedImage &image) {
  if (folder.empty()) return;
  std::string rest = "-";
  if (auto &r = image.resources)
    rest = llvm::join(std::vector<std::string>{std::to_string(r->registers), std::to_string(r->sharedBytes),
                                               std::to_string(r->stackBytes), std::to_string(r->spillStores),
                                               std::to_string(r->spillLoads)},
                      " ");
  rest += "\n" + image.bytes;
  auto write = [&]() -> llvm::Error {
    if (std::error_code error = llvm::sys::fs::create_directories(folder)) return llvm::errorCodeToError(error);
    auto file = AtomicFile::create(folder + "/" + key + ".cubin");
    if (!file) return file.takeError();
    if (auto error = file->write((magic + digest(key + rest) + "\n").str())) return error;
    if (auto error = file->write(rest)) return error;
    return file->commit();
  };
  llvm::Error error = write();
  if (!error) return;
  std::string why = llvm::toString(std::move(error));
  std::lock_guard lock(mutex);
  if (trouble.empty()) trouble = why;
}

} // namespace tare::cuda
