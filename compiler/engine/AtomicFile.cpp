// The write recipe: temporary file in the same folder, fsync, checked close, verification by reading it back, renameat, fsync of the folder.
#include "compiler/engine/AtomicFile.h"
#include "compiler/graph/Failure.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tare {
namespace {
/// A write beyond `ulimit -f` raises SIGXFSZ, which would kill the process before the temporary file is gone: blocked around the write and taken away.
class WithoutSizeSignal {
public:
  WithoutSizeSignal() {
    sigemptyset(&size);
    sigaddset(&size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size, &before);
  }
  ~WithoutSizeSignal() {
    int saved = errno;
    timespec none{0, 0};
    if (!sigismember(&before, SIGXFSZ)) sigtimedwait(&size, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = saved;
  }

private:
  sigset_t size, before;
};
} // namespace

llvm::Error AtomicFile::failed(const char *what) const {
  return fail(ExitCode::Io, std::string(what) + ": " + strerror(errno)).inFile(target).withHint("the file that was there before, if any, is unchanged");
}

llvm::Expected<AtomicFile> AtomicFile::create(llvm::StringRef path) {
  AtomicFile out;
  out.target = path.str();
  out.name = llvm::sys::path::filename(path).str();
  std::string parent = llvm::sys::path::parent_path(path).str();
  if (parent.empty()) parent = ".";
  if (out.name.empty() || out.name == "." || out.name == ".." || path.ends_with("/")) return fail(ExitCode::Io, "not a file name").inFile(out.target);
  out.folder = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (out.folder < 0) return out.failed("cannot open the output folder");
  struct stat info;
  if (fstatat(out.folder, out.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(info.st_mode)) return fail(ExitCode::Io, "the output is a symbolic link, which is not followed").inFile(out.target).withHint("name the file it points to");
    if (!S_ISREG(info.st_mode)) return fail(ExitCode::Io, "the output exists and is not a regular file").inFile(out.target);
  } else if (errno != ENOENT) {
    return out.failed("cannot write the output");
  }
  std::random_device random;
  for (int attempt = 0; attempt < 16 && out.file < 0; ++attempt) {
    // A long name is cut, so that the temporary one stays within the file system's limit.
    out.temporary = "." + out.name.substr(0, 200) + "." + std::to_string(getpid()) + "." + std::to_string(random()) + ".tmp";
    out.file = openat(out.folder, out.temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (out.file < 0 && errno != EEXIST) break;
  }
  if (out.file < 0) {
    out.temporary.clear();
    return out.failed("cannot create a file in the output folder");
  }
  out.temporaryPath = parent + "/" + out.temporary;
  llvm::sys::RemoveFileOnSignal(out.temporaryPath);
  return out;
}

llvm::Error AtomicFile::writeAt(uint64_t offset, llvm::StringRef bytes) {
  WithoutSizeSignal guard;
  while (!bytes.empty()) {
    ssize_t n = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("cannot write");
    bytes = bytes.drop_front(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return llvm::Error::success();
}

llvm::Error AtomicFile::write(llvm::StringRef bytes) {
  if (auto error = writeAt(written, bytes)) return error;
  written += bytes.size();
  return llvm::Error::success();
}

llvm::Error AtomicFile::commit(llvm::function_ref<llvm::Error(const std::string &)> verify) {
  if (fsync(file) != 0) return failed("cannot write to disk");
  if (close(std::exchange(file, -1)) != 0) return failed("cannot close");
  if (verify)
    if (auto error = verify(temporaryPath)) return error;
  if (renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) return failed("cannot rename");
  llvm::sys::DontRemoveFileOnSignal(temporaryPath);
  temporary.clear();
  if (fsync(folder) != 0 && errno != EINVAL) return failed("the file is complete, but its folder could not be written to disk");
  return llvm::Error::success();
}

llvm::Error moveIntoPlace(const std::string &temporary, const std::string &target) {
  auto failed = [&](const char *what) { return fail(ExitCode::Io, std::string(what) + ": " + strerror(errno)).inFile(target); };
  std::string parent = llvm::sys::path::parent_path(target).str();
  int folder = open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failed("cannot open the output folder");
  if (rename(temporary.c_str(), target.c_str()) != 0) {
    auto error = failed("cannot rename");
    close(folder);
    return error;
  }
  bool durable = fsync(folder) == 0 || errno == EINVAL;
  int why = errno;
  close(folder);
  errno = why;
  if (!durable) return failed("the file is complete, but its folder could not be written to disk");
  return llvm::Error::success();
}

AtomicFile::AtomicFile(AtomicFile &&o) noexcept
    : target(std::move(o.target)), name(std::move(o.name)), temporary(std::exchange(o.temporary, {})), temporaryPath(std::move(o.temporaryPath)),
      folder(std::exchange(o.folder, -1)), file(std::exchange(o.file, -1)), written(o.written) {}

AtomicFile::~AtomicFile() {
  if (file >= 0) close(file);
  if (!temporary.empty()) {
    unlinkat(folder, temporary.c_str(), 0);
    llvm::sys::DontRemoveFileOnSignal(temporaryPath);
  }
  if (folder >= 0) close(folder);
}

} // namespace tare
