// Opening and mapping of checkpoint files, digests, and recognition of formats that are often renamed to .onnx.
#include "compiler/import/ModelFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"
#include "llvm/Support/SHA256.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace llvm;

namespace tare {

static ExitCode codeOf(int error) {
  // A name that leads nowhere is the caller's input; descriptors, memory and devices are the environment's.
  return error == EMFILE || error == ENFILE || error == EIO || error == ENOMEM ? ExitCode::Io : ExitCode::Refused;
}

Expected<std::shared_ptr<MappedFile>> MappedFile::open(StringRef path) {
  if (path.contains('\0')) return refuse("the file name contains a NUL character");
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  int descriptor = ::open(path.str().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) {
    int error = errno;
    return fail(codeOf(error), "cannot open the file: " + std::string(std::strerror(error))).inFile(path.str());
  }
  return fromDescriptor(descriptor, path);
}

Expected<std::shared_ptr<MappedFile>> MappedFile::fromDescriptor(int descriptor, StringRef path) {
  std::shared_ptr<MappedFile> file(new MappedFile());
  file->descriptor = descriptor;
  file->name = path.str();
  if (::fstat(descriptor, &file->opened) != 0)
    return fail(ExitCode::Io, "cannot read the file's size: " + std::string(std::strerror(errno))).inFile(path.str());
  if (!S_ISREG(file->opened.st_mode))
    return refuse(S_ISDIR(file->opened.st_mode) ? "is a directory, not a regular file" : "is not a regular file").inFile(path.str());
  file->size = static_cast<size_t>(file->opened.st_size);
  if (file->size == 0) return file;
  void *map = ::mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (map == MAP_FAILED)
    return fail(ExitCode::Io, "cannot map the file: " + std::string(std::strerror(errno))).inFile(path.str());
  file->data = static_cast<const char *>(map);
  return file;
}

MappedFile::~MappedFile() {
  if (data) ::munmap(const_cast<char *>(data), size);
  if (descriptor >= 0) ::close(descriptor);
}

Error MappedFile::stillSame() const {
  struct stat now {};
  bool same = ::fstat(descriptor, &now) == 0 && now.st_size == opened.st_size && now.st_ino == opened.st_ino &&
              now.st_mtim.tv_sec == opened.st_mtim.tv_sec && now.st_mtim.tv_nsec == opened.st_mtim.tv_nsec;
  if (same) return Error::success();
  return refuse("the file changed while reading").inFile(name).withHint("wait until the file is complete, then run again");
}

std::string sha256Hex(ArrayRef<char> bytes) {
  auto digest = SHA256::hash(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return toHex(digest, /*LowerCase=*/true);
}

std::string sha1Hex(ArrayRef<char> bytes) {
  auto digest = SHA1::hash(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return toHex(digest, /*LowerCase=*/true);
}

StringRef foreignFormat(ArrayRef<char> bytes) {
  StringRef head(bytes.data(), std::min<size_t>(bytes.size(), 16));
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return "a zip archive (PyTorch checkpoints are such archives)";
  if (head.starts_with("\x1f\x8b")) return "a gzip file";
  if (head.starts_with("GGUF")) return "a GGUF file";
  if (head.starts_with("\x89HDF\r\n")) return "an HDF5 file";
  if (head.starts_with("\xfd""7zXZ")) return "an xz file";
  if (head.starts_with("\x28\xb5\x2f\xfd")) return "a zstd file";
  if (head.starts_with("TARE")) return "a Tare engine";
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return "a Python pickle (never loaded: it can run code)";
  // safetensors: a little-endian u64 header length, then JSON.
  if (head.size() >= 10 && head[8] == '{' && (head[9] == '"' || head[9] == '}' || head[9] == ' ') && head[6] == 0 && head[7] == 0)
    return "a safetensors file";
  if (head.size() >= 8 && head.substr(4, 4) == "TFL3") return "a TensorFlow Lite file";
  return "";
}

} // namespace tare
