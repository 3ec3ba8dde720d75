// Folders for what other programs read and write during a compile. In: what one is for. Out: files in it; all of it goes
// with the object unless it is kept. Must hold: names are "tare-WHAT-PID-...", by which an interrupted command finds what
// it must remove (tools/tare/Interrupt).
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <unistd.h>
#include <utility>

namespace tare {

/// The prefix of temporary names.
inline std::string temporaryName(const char *what) {
  return std::string("tare-") + what + "-" + std::to_string(::getpid());
}

class TemporaryFolder {
public:
  /// In TMPDIR. Exit 6 when it cannot be made.
  static llvm::Expected<TemporaryFolder> create(const char *what);
  TemporaryFolder(TemporaryFolder &&other) noexcept : folder(std::exchange(other.folder, "")) {}
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder();

  const std::string &path() const { return folder; }
  std::string path(llvm::StringRef name) const { return folder + "/" + name.str(); }
  /// Writes a file and returns its path. Exit 6.
  llvm::Expected<std::string> write(llvm::StringRef name, llvm::StringRef bytes) const;
  /// Leaves the folder there and returns its path.
  std::string keep() && { return std::exchange(folder, ""); }

private:
  TemporaryFolder() = default;
  std::string folder; // empty: nothing to remove
};

} // namespace tare
