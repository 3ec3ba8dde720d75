// A file that appears complete or not at all (bad-inputs.md, write recipe). In: bytes. Out: on commit() the target holds them; on any error, signal or
// destruction before, the target is as it was and the temporary file is gone. Must hold: no symlink is followed, no error of a system call is lost.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tare {

class AtomicFile {
public:
  /// Opens `.<name>.<pid>.<random>.tmp` in the target's folder (O_EXCL, O_NOFOLLOW; permissions as the umask says). Refused (exit 6): a folder that
  /// cannot be opened, a target that exists and is not a regular file (a symlink is not followed; give its target's name).
  static llvm::Expected<AtomicFile> create(llvm::StringRef path);
  llvm::Error write(llvm::StringRef bytes);                      ///< at the end
  llvm::Error writeAt(uint64_t offset, llvm::StringRef bytes);   ///< over bytes written before
  uint64_t size() const { return written; }
  /// fsync, close, `verify(path of the temporary file)`, rename, fsync of the folder.
  llvm::Error commit(llvm::function_ref<llvm::Error(const std::string &)> verify = {});

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

private:
  AtomicFile() = default;
  llvm::Error failed(const char *what) const;
  std::string target, name, temporary, temporaryPath;
  int folder = -1, file = -1;
  uint64_t written = 0;
};

/// Renames a complete file that lies beside its target over it and writes the folder to disk (exit 6 when one fails).
llvm::Error moveIntoPlace(const std::string &temporary, const std::string &target);

} // namespace tare
