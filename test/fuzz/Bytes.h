// What the fuzz targets share. In: the fuzzer's bytes. Out: a file of memory with them, for readers that take a path; an error that was looked at.
// Must hold: an error that is no tare::Failure aborts, because a user would see it as an internal error.
#pragma once
#include "compiler/graph/Failure.h"
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace tare::fuzz {

class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size) : handle(::memfd_create("input", MFD_CLOEXEC)) {
    if (handle < 0 || ::write(handle, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(handle); }
  MemoryFile(const MemoryFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(handle); }

private:
  int handle;
};

/// A refusal must say what and have one of the codes of a bad input.
inline void refused(llvm::Error error) {
  llvm::handleAllErrors(
      std::move(error),
      [](const Failure &f) {
        if (f.message.empty() || (f.code != ExitCode::Refused && f.code != ExitCode::Limit && f.code != ExitCode::Io)) std::abort();
      },
      [](const llvm::ErrorInfoBase &) { std::abort(); });
}
template <typename T> void finished(llvm::Expected<T> result) {
  if (!result) refused(result.takeError());
}

} // namespace tare::fuzz
