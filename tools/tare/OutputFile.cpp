// Atomic writing and bounded reading of small files (OutputFile.h). In: paths from the command line. Out: bytes, or Failures with errno's text.
#include "tools/tare/OutputFile.h"
#include "compiler/engine/AtomicFile.h"
#include "compiler/graph/Failure.h"
#include "tools/tare/Interrupt.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tare::cli {

static FailureBuilder ioFailure(const char *what, const std::string &path) {
  return fail(ExitCode::Io, fmt::format("cannot {}: {}", what, std::strerror(errno))).inFile(path);
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

namespace {
struct Descriptor {
  int fd;
  ~Descriptor() { if (fd >= 0) ::close(fd); }
};
} // namespace

llvm::Error writeFile(const std::string &path, llvm::StringRef bytes) {
  // A device or pipe (/dev/stdout, /dev/null, a FIFO) cannot be replaced; it is written to.
  struct stat existing;
  if (::stat(path.c_str(), &existing) != 0 || S_ISREG(existing.st_mode)) {
    removeTemporariesOnInterrupt(path);
    auto file = AtomicFile::create(path);
    if (!file) return file.takeError();
    if (auto error = file->write(bytes)) return error;
    return file->commit();
  }
  Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (file.fd < 0) return ioFailure("open", path);
  while (!bytes.empty()) {
    ssize_t written = ::write(file.fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ioFailure("write", path);
    bytes = bytes.drop_front(static_cast<size_t>(written));
  }
  return llvm::Error::success();
}

llvm::Error checkWritable(llvm::StringRef flag, const std::string &path, const std::vector<std::string> &inputs) {
  if (path.empty()) return fail(ExitCode::Usage, fmt::format("{} needs a file name", flag.str()));
  if (path == "-") return fail(ExitCode::Usage, fmt::format("{} - : this output is a file", flag.str())).withHint("give a file name; ./- is a file that is called -");
  struct stat out, in;
  bool exists = ::stat(path.c_str(), &out) == 0;
  for (auto &input : inputs)
    if (path == input || (exists && ::stat(input.c_str(), &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino))
      return fail(ExitCode::Usage, fmt::format("{} would overwrite the input", flag.str())).inFile(path).withHint("give another output file");
  if (exists && S_ISDIR(out.st_mode)) return fail(ExitCode::Io, fmt::format("{} is a folder", flag.str())).inFile(path).withHint("give a file name inside it");
  std::string folder = folderOf(path);
  struct stat directory;
  if (::stat(folder.c_str(), &directory) != 0)
    return fail(errno == ENOENT ? ExitCode::Usage : ExitCode::Io, fmt::format("the folder for {} cannot be used: {}", flag.str(), std::strerror(errno))).inFile(folder).withHint("make it first: mkdir -p " + folder);
  if (!S_ISDIR(directory.st_mode)) return fail(ExitCode::Io, fmt::format("the folder for {} is no folder", flag.str())).inFile(folder);
  bool special = exists && !S_ISREG(out.st_mode);
  if (::access(special ? path.c_str() : folder.c_str(), special ? W_OK : W_OK | X_OK) != 0)
    return fail(ExitCode::Io, fmt::format("the folder for {} cannot be written: {}", flag.str(), std::strerror(errno))).inFile(folder);
  return llvm::Error::success();
}

/// Opens a regular file and reads at most `most` bytes; O_NONBLOCK: opening a FIFO must not hang.
static llvm::Expected<std::string> readSome(const std::string &path, uint64_t most, uint64_t &size) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return ioFailure("open", path);
  struct stat status;
  if (::fstat(file.fd, &status) != 0) return ioFailure("look at", path);
  if (!S_ISREG(status.st_mode)) return refuse("not a regular file").inFile(path);
  size = static_cast<uint64_t>(status.st_size);
  std::string bytes(std::min(size, most), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    ssize_t got = ::read(file.fd, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ioFailure("read", path);
    if (got == 0) return refuse("the file changed while it was read").inFile(path);
    have += static_cast<size_t>(got);
  }
  return bytes;
}

llvm::Expected<std::pair<std::string, uint64_t>> readPrefix(const std::string &path, size_t limit) {
  uint64_t size = 0;
  auto bytes = readSome(path, limit, size);
  if (!bytes) return bytes.takeError();
  return std::pair(std::move(*bytes), size);
}

llvm::Expected<std::string> readFile(const std::string &path, uint64_t limit) {
  uint64_t size = 0;
  auto bytes = readSome(path, limit, size);
  if (bytes && size > limit) return fail(ExitCode::Limit, fmt::format("{} bytes, the limit is {}", size, limit)).inFile(path);
  return bytes;
}

} // namespace tare::cli
