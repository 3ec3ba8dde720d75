// Path-safe external data: a walk with O_NOFOLLOW from the model's directory; a symbolic link is followed only when its target lies in the
// directory of the model file as given or as resolved (the Hugging Face cache layout), and then by a second walk without links.
#include "compiler/import/ExternalData.h"
#include "compiler/graph/Checked.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

namespace tare {

static std::string realPath(const std::string &path) {
  char *resolved = ::realpath(path.c_str(), nullptr);
  std::string result = resolved ? resolved : "";
  std::free(resolved);
  return result;
}

static std::string directoryOf(StringRef path) {
  StringRef parent = sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

ExternalData::ExternalData(StringRef modelPath) : directory(directoryOf(modelPath)), resolvedDirectory(directoryOf(realPath(modelPath.str()))) {}

static Expected<uint64_t> decimal(StringRef text, StringRef key, StringRef tensor) {
  uint64_t value = 0;
  if (text.empty() || !all_of(text, isDigit) || text.getAsInteger(10, value))
    return refuse("external data: " + key.str() + " \"" + text.str() + "\" is not a decimal number below 2^64").ofTensor(tensor.str());
  return value;
}

Expected<ExternalEntry> readExternalEntry(const onnx::TensorProto &tensor) {
  ExternalEntry entry;
  StringSet<> seen;
  bool located = false;
  for (const auto &pair : tensor.external_data()) {
    if (!seen.insert(pair.key()).second) return refuse("external data: duplicate key \"" + pair.key() + "\"").ofTensor(tensor.name());
    if (pair.key() == "location") {
      entry.location = pair.value(), located = true;
    } else if (pair.key() == "checksum") {
      entry.checksum = StringRef(pair.value()).lower();
    } else if (pair.key() == "offset" || pair.key() == "length") {
      auto value = decimal(pair.value(), pair.key(), tensor.name());
      if (!value) return value.takeError();
      if (pair.key() == "offset") entry.offset = *value;
      else entry.length = *value;
    } else {
      return refuse("external data: unknown key \"" + pair.key() + "\" (known: location, offset, length, checksum)").ofTensor(tensor.name());
    }
  }
  if (!located) return refuse("external data without a location").ofTensor(tensor.name());
  return entry;
}

/// Why a location can never be valid, whatever lies on the disk; empty when it may be.
static std::string badLocation(StringRef location) {
  if (location.empty()) return "is empty";
  if (location.contains('\0')) return "contains a NUL character";
  if (location.starts_with("/")) return "is an absolute path";
  if (location.contains('\\')) return "is a foreign path (backslash)";
  if (location.size() > 1 && location[1] == ':' && isAlpha(location[0])) return "is a foreign path (drive letter)";
  SmallVector<StringRef> parts;
  location.split(parts, '/');
  for (StringRef part : parts)
    if (part == "..") return "escapes the model's directory";
  if (parts.back().empty() || parts.back() == ".") return "names a directory";
  return "";
}

/// Opens root/relative without following any link. -1 and errno on failure; ELOOP (or ENOTDIR) when a component is a link.
static int openBeneath(const std::string &root, StringRef relative) {
  int directory = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  SmallVector<StringRef> parts;
  relative.split(parts, '/', -1, /*KeepEmpty=*/false);
  for (size_t i = 0; directory >= 0 && i < parts.size(); ++i) {
    bool last = i + 1 == parts.size();
    // O_NONBLOCK: a FIFO must not hang; fromDescriptor() refuses it afterwards.
    int flags = last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
    int next = ::openat(directory, parts[i].str().c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    ::close(directory);
    directory = next;
    errno = error;
  }
  return directory;
}

/// `path` relative to `root` when it lies beneath it, both resolved; nothing otherwise.
static std::optional<StringRef> beneath(StringRef path, StringRef root) {
  if (root.empty() || !path.consume_front(root)) return std::nullopt;
  if (root.ends_with("/")) return path;
  return path.consume_front("/") ? std::optional<StringRef>(path) : std::nullopt;
}

Expected<std::shared_ptr<MappedFile>> ExternalData::open(StringRef location, StringRef tensor) {
  if (auto it = opened.find(location); it != opened.end()) return it->second;
  auto refusal = [&](std::string why) {
    return refuse("external data: location \"" + location.str() + "\" " + why).ofTensor(tensor.str());
  };
  if (std::string why = badLocation(location); !why.empty()) return refusal(why);
  int descriptor = openBeneath(directory, location);
  if (descriptor < 0 && (errno == ELOOP || errno == ENOTDIR)) {
    // A link on the way (or a file where a directory should be): resolve it and look where it leads.
    std::string target = realPath(directory + "/" + location.str());
    if (target.empty()) return refusal("cannot be resolved: " + std::string(std::strerror(errno)));
    errno = 0;
    std::string given = realPath(directory);
    auto relative = beneath(target, given);
    std::string root = given;
    if (!relative) relative = beneath(target, resolvedDirectory), root = resolvedDirectory;
    if (!relative) return refusal("is a symbolic link that leaves the model's directory");
    descriptor = openBeneath(root, *relative);
  }
  if (descriptor < 0) {
    int error = errno;
    ExitCode code = error == EMFILE || error == ENFILE || error == EIO ? ExitCode::Io : ExitCode::Refused;
    return fail(code, "external data: cannot open \"" + location.str() + "\": " + std::strerror(error))
        .ofTensor(tensor.str())
        .withHint("external data lies beside the .onnx file: copy both together");
  }
  auto file = MappedFile::fromDescriptor(descriptor, directory == "." ? location.str() : directory + "/" + location.str());
  if (!file)
    return handleErrors(file.takeError(), [&](const Failure &f) -> Error {
      return fail(f.code, "external data: location \"" + location.str() + "\" " + f.message).ofTensor(tensor.str());
    });
  opened[location] = *file;
  return *file;
}

Expected<ArrayRef<char>> ExternalData::bytesOf(const onnx::TensorProto &tensor, uint64_t needed) {
  auto entry = readExternalEntry(tensor);
  if (!entry) return entry.takeError();
  auto file = open(entry->location, tensor.name());
  if (!file) return file.takeError();
  uint64_t length = entry->length.value_or(needed), size = (*file)->bytes().size();
  if (length != needed)
    return refuse("external data: length " + std::to_string(length) + ", but shape and type need " + std::to_string(needed) + " bytes").ofTensor(tensor.name());
  auto end = checkedAdd(entry->offset, length);
  if (!end || *end > size)
    return refuse("external data: bytes " + std::to_string(entry->offset) + " + " + std::to_string(length) + " lie past the end of \"" +
                  entry->location + "\" (" + std::to_string(size) + " bytes)").ofTensor(tensor.name());
  if (!entry->checksum.empty()) {
    auto &digest = digests[entry->location];
    if (digest.empty()) digest = sha1Hex((*file)->bytes());
    if (digest != entry->checksum)
      return refuse("external data: checksum mismatch: \"" + entry->location + "\" has SHA-1 " + digest + ", the model says " + entry->checksum).ofTensor(tensor.name());
  }
  return (*file)->bytes().slice(entry->offset, length);
}

std::vector<std::shared_ptr<MappedFile>> ExternalData::files() const {
  std::vector<std::shared_ptr<MappedFile>> result;
  for (auto &entry : opened) result.push_back(entry.second);
  std::sort(result.begin(), result.end(), [](auto &a, auto &b) { return a->path() < b->path(); });
  return result;
}

} // namespace tare
