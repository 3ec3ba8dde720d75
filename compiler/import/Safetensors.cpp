// One safetensors file: eight bytes of header length, a JSON header, the data. In: a path. Out: views into the mapped file.
// The order of checks is the order of trust: sizes of the file, the header's text, each entry alone, then all ranges together.
#include "compiler/import/Safetensors.h"
#include "compiler/graph/Checked.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/Npz.h"
#include "compiler/import/StrictJson.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using Json = nlohmann::json;

namespace tare {

Expected<std::shared_ptr<FileMapping>> FileMapping::open(StringRef path) {
  std::string name = path.str();
  int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(ExitCode::Io, "cannot open: " + std::string(std::strerror(errno))).inFile(name);
  struct stat status;
  std::shared_ptr<FileMapping> mapping(new FileMapping);
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return refuse("not a regular file").inFile(name);
  }
  mapping->path = name;
  mapping->size = size_t(status.st_size);
  mapping->inode = int64_t(status.st_ino);
  mapping->seconds = status.st_mtim.tv_sec;
  mapping->nanoseconds = status.st_mtim.tv_nsec;
  if (mapping->size) {
    void *base = ::mmap(nullptr, mapping->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (base == MAP_FAILED) {
      int error = errno;
      ::close(fd);
      return fail(error == ENOMEM ? ExitCode::Limit : ExitCode::Io, "cannot map " + std::to_string(mapping->size) + " bytes: " + std::strerror(error)).inFile(name);
    }
    mapping->base = base;
  }
  ::close(fd);
  return mapping;
}

FileMapping::~FileMapping() {
  if (base) ::munmap(base, size);
}

Error FileMapping::unchanged() const {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0 && size_t(status.st_size) == size && int64_t(status.st_ino) == inode && status.st_mtim.tv_sec == seconds &&
      status.st_mtim.tv_nsec == nanoseconds)
    return Error::success();
  return refuse("changed while it was read").inFile(path);
}

namespace {
/// ONNX number of a safetensors dtype; 0 when Tare does not have it.
uint8_t dtypeOf(StringRef word) {
  return StringSwitch<uint8_t>(word).Case("F32", 1).Case("U8", 2).Case("I8", 3).Case("U16", 4).Case("I16", 5).Case("I32", 6).Case("I64", 7)
      .Case("BOOL", 9).Case("F16", 10).Case("F64", 11).Case("U32", 12).Case("U64", 13).Case("BF16", 16).Default(0);
}

/// A JSON value as it stands in the file, short enough for a message.
std::string shown(const Json &value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

struct Range {
  uint64_t begin, end;
  StringRef name;
};

struct Reader {
  std::string file;
  uint64_t dataSize;

  FailureBuilder bad(StringRef tensor, const Twine &why) const { return refuse(("tensor '" + tensor + "': " + why).str()).inFile(file).ofTensor(tensor.str()); }

  Error entry(StringRef name, const Json &value, TensorView &view, Range &range) const {
    if (name.size() > 4096 || name.empty() || name.contains('\0')) return bad(name.substr(0, 64), "its name is empty, longer than 4096 bytes or has a NUL");
    if (!value.is_object()) return bad(name, "its entry is not an object but " + shown(value));
    for (auto &[key, field] : value.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets") return bad(name, "unknown field \"" + key + "\"");
    for (const char *key : {"dtype", "shape", "data_offsets"})
      if (!value.contains(key)) return bad(name, Twine("field \"") + key + "\" is missing");
    const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    if (!dtype.is_string()) return bad(name, "dtype " + shown(dtype) + " is not a string");
    view.stored = dtype.get<std::string>();
    view.dtype = dtypeOf(view.stored);
    if (!view.dtype) return bad(name, "unknown or unsupported dtype " + shown(dtype));
    if (!shape.is_array()) return bad(name, "shape " + shown(shape) + " is not an array");
    if (shape.size() > 8) return bad(name, "shape has " + Twine(shape.size()) + " dimensions, the limit is 8");
    for (const Json &d : shape) {
      if (!d.is_number_unsigned() || d.get<uint64_t>() > uint64_t(INT64_MAX)) return bad(name, "shape has the entry " + shown(d) + "; integers >= 0 are expected");
      view.shape.push_back(int64_t(d.get<uint64_t>()));
    }
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
      return bad(name, "data_offsets " + shown(offsets) + " are not two integers >= 0");
    range = {offsets[0].get<uint64_t>(), offsets[1].get<uint64_t>(), name};
    if (range.begin > range.end) return bad(name, "its range begins at " + Twine(range.begin) + " and ends at " + Twine(range.end));
    if (range.end > dataSize) return bad(name, "its range ends at " + Twine(range.end) + ", the file has " + Twine(dataSize) + " bytes of data");
    std::optional<uint64_t> count = checkedProduct(view.shape);
    std::optional<uint64_t> bytes = count ? checkedMul(*count, dtypeSize(view.dtype)) : std::nullopt;
    if (!bytes) return bad(name, "the product of its shape overflows");
    if (*bytes != range.end - range.begin)
      return bad(name, "shape x dtype needs " + Twine(*bytes) + " bytes, its range has " + Twine(range.end - range.begin));
    return Error::success();
  }

  /// Sorted by begin, the ranges must tile the data. An empty tensor may sit on a boundary only.
  Error tile(std::vector<Range> ranges) const {
    std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
    uint64_t at = 0;
    StringRef before;
    for (const Range &r : ranges) {
      if (r.begin < at) {
        if (r.begin == r.end) return bad(r.name, "is empty and lies inside tensor '" + before + "'; only a boundary is allowed");
        return bad(r.name, "overlaps tensor '" + before + "'");
      }
      if (r.begin > at) return bad(r.name, Twine(r.begin - at) + " unreferenced bytes before it (offset " + Twine(at) + ")");
      at = r.end;
      before = r.name;
    }
    if (at != dataSize) return refuse(std::to_string(dataSize - at) + " unreferenced bytes after the last tensor").inFile(file);
    return Error::success();
  }
};
} // namespace

Expected<Checkpoint> readSafetensors(StringRef path) {
  auto mapping = FileMapping::open(path);
  if (!mapping) return mapping.takeError();
  StringRef bytes = (*mapping)->bytes();
  auto bad = [&](const Twine &why) { return refuse(why.str()).inFile(path.str()); };
  if (bytes.size() < 8) return bad("not a safetensors file: " + Twine(bytes.size()) + " bytes, the header length alone takes 8");
  uint64_t length = support::endian::read64le(bytes.data());
  if (length == 0) return bad("safetensors header length is 0");
  if (length > kMaxHeader) return bad("safetensors header length " + Twine(length) + " is above the limit of 100 MB");
  if (length > bytes.size() - 8) return bad("safetensors header length " + Twine(length) + " reaches past the end of the file (" + Twine(bytes.size()) + " bytes)");
  StringRef text = bytes.substr(8, length);
  if (text[0] != '{') return bad("safetensors header does not begin with '{' (at byte 8)");
  // Three fields per tensor beside its own key; __metadata__ is bounded by the header's size.
  auto header = parseStrictJson(text, path, "safetensors header", {4, 4 * kMaxTensors, "keys (the limit is 262144 tensors)"});
  if (!header) return header.takeError();

  Checkpoint out;
  Reader reader{path.str(), bytes.size() - 8 - length};
  std::vector<Range> ranges;
  for (auto &[name, value] : header->items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return bad("__metadata__ is not an object");
      for (auto &[key, field] : value.items())
        if (!field.is_string()) return bad("__metadata__ \"" + key + "\" is not a string");
      continue;
    }
    TensorView view;
    Range range;
    if (Error error = reader.entry(name, value, view, range)) return error;
    view.bytes = bytes.substr(8 + length + range.begin, range.end - range.begin);
    view.file = path.str();
    auto [it, added] = out.tensors.emplace(name, std::move(view));
    range.name = it->first;
    ranges.push_back(range);
  }
  if (Error error = reader.tile(std::move(ranges))) return error;
  if (Error error = (*mapping)->unchanged()) return error;
  out.files.push_back(path.str());
  out.mappings.push_back(std::move(*mapping));
  return out;
}
} // namespace tare
