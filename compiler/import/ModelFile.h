// Files of a checkpoint as read-only maps. In: a path or an open descriptor. Out: bytes that stay valid as long as the MappedFile lives.
// Must hold: only regular files are mapped (a FIFO or a device never blocks us), and stillSame() tells whether the file changed meanwhile.
#pragma once
#include "compiler/graph/Failure.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>
#include <sys/stat.h>

namespace tare {

class MappedFile {
public:
  /// Maps the file at `path`, following symbolic links. Failure: errno's text, or "not a regular file".
  static llvm::Expected<std::shared_ptr<MappedFile>> open(llvm::StringRef path);
  /// Maps what an open descriptor refers to and closes the descriptor in any case. `path` is for messages.
  static llvm::Expected<std::shared_ptr<MappedFile>> fromDescriptor(int descriptor, llvm::StringRef path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;

  llvm::ArrayRef<char> bytes() const { return {data, size}; }
  const std::string &path() const { return name; }
  /// A Failure "changed while reading" when size, modification time or inode of the file differ from when it was opened.
  llvm::Error stillSame() const;

private:
  MappedFile() = default;
  std::string name;
  const char *data = nullptr;
  size_t size = 0;
  int descriptor = -1;
  struct stat opened {};
};

/// SHA-256 and SHA-1 as lower-case hex.
std::string sha256Hex(llvm::ArrayRef<char> bytes);
std::string sha1Hex(llvm::ArrayRef<char> bytes);

/// "a zip archive", "a GGUF file", ... when the bytes start like another known format; empty otherwise.
llvm::StringRef foreignFormat(llvm::ArrayRef<char> bytes);

} // namespace tare
