// Reads .npz, .npy, .pb and folders of them. In: a path. Out: arrays by name. Holds: nothing is guessed from contents, every file that cannot be
// read is an error that names it, two arrays of one name in one sample are refused.
#include "compiler/import/TensorFiles.h"
#include "compiler/graph/Checked.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <onnx/onnx_pb.h>

using namespace llvm;

namespace tare {
namespace {
/// Typed fields of a TensorProto hold one element per entry, whatever its width.
template <typename T, typename Field> std::string narrow(const Field &field) {
  std::string out(size_t(field.size()) * sizeof(T), '\0');
  for (int i = 0; i < field.size(); ++i) {
    T value = static_cast<T>(field.Get(i));
    std::memcpy(out.data() + size_t(i) * sizeof(T), &value, sizeof(T));
  }
  return out;
}

std::string typedBytes(const onnx::TensorProto &proto) {
  switch (proto.data_type()) {
  case 1: return narrow<float>(proto.float_data());
  case 2: return narrow<uint8_t>(proto.int32_data());
  case 3: return narrow<int8_t>(proto.int32_data());
  case 4: case 10: case 16: return narrow<uint16_t>(proto.int32_data());
  case 5: return narrow<int16_t>(proto.int32_data());
  case 6: return narrow<int32_t>(proto.int32_data());
  case 7: return narrow<int64_t>(proto.int64_data());
  case 9: return narrow<uint8_t>(proto.int32_data());
  case 11: return narrow<double>(proto.double_data());
  case 12: return narrow<uint32_t>(proto.uint64_data());
  case 13: return narrow<uint64_t>(proto.uint64_data());
  default: return "";
  }
}

Error merge(ArrayMap &into, ArrayMap from, StringRef file) {
  for (auto &[name, array] : from)
    if (!into.emplace(name, std::move(array)).second) return refuse("array '" + name + "' is there twice").inFile(file.str()).ofTensor(name);
  return Error::success();
}

/// Entries of a folder, sorted, so that the order does not depend on the file system.
Expected<std::vector<std::string>> listFolder(StringRef path) {
  std::vector<std::string> names;
  std::error_code error;
  for (sys::fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) names.push_back(it->path());
  if (error) return fail(ExitCode::Io, "cannot list: " + error.message()).inFile(path.str());
  std::sort(names.begin(), names.end());
  return names;
}

bool isTensorFile(StringRef path) { return path.ends_with(".npz") || path.ends_with(".npy") || path.ends_with(".pb"); }

Expected<ArrayMap> readFile(StringRef path) {
  ArrayMap out;
  if (path.ends_with(".npz")) return readNpz(path);
  if (path.ends_with(".npy")) {
    Expected<Array> array = readNpy(path);
    if (!array) return array.takeError();
    out.emplace(sys::path::stem(path).str(), std::move(*array));
    return out;
  }
  if (path.ends_with(".pb")) {
    auto tensor = readTensorProto(path);
    if (!tensor) return tensor.takeError();
    out.insert(std::move(*tensor));
    return out;
  }
  return refuse("neither .npz, .npy nor .pb").inFile(path.str()).withHint("save arrays with numpy.savez, named as the graph's inputs");
}

/// Splits `sample_N.name` keys; keys without such a prefix all belong to one sample.
Error splitSamples(ArrayMap arrays, StringRef label, std::vector<Sample> &out) {
  std::map<uint64_t, ArrayMap> numbered;
  ArrayMap plain;
  for (auto &[key, array] : arrays) {
    StringRef rest = key;
    uint64_t number;
    if (rest.consume_front("sample_") && !rest.consumeInteger(10, number) && rest.consume_front(".") && !rest.empty()) numbered[number].emplace(rest.str(), std::move(array));
    else plain.emplace(key, std::move(array));
  }
  if (!numbered.empty() && !plain.empty())
    return refuse("key '" + plain.begin()->first + "' has no sample_N. prefix while others have").inFile(label.str()).ofTensor(plain.begin()->first);
  for (auto &[number, sample] : numbered) out.push_back({"sample_" + std::to_string(number), std::move(sample)});
  if (!plain.empty()) out.push_back({label.str(), std::move(plain)});
  return Error::success();
}
} // namespace

Expected<std::pair<std::string, Array>> readTensorProto(StringRef path) {
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status)) return fail(ExitCode::Io, "cannot open: " + error.message()).inFile(path.str());
  if (!sys::fs::is_regular_file(status)) return refuse("not a regular file").inFile(path.str());
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return fail(ExitCode::Io, "cannot read: " + buffer.getError().message()).inFile(path.str());
  onnx::TensorProto proto;
  if ((*buffer)->getBufferSize() > INT32_MAX || !proto.ParseFromArray((*buffer)->getBufferStart(), int((*buffer)->getBufferSize())))
    return refuse("not an ONNX TensorProto").inFile(path.str());
  auto bad = [&](const Twine &what) { return refuse(what.str()).inFile(path.str()).ofTensor(proto.name()); };
  Array array;
  array.dtype = proto.data_type() > 0 && proto.data_type() < 255 ? uint8_t(proto.data_type()) : 0;
  unsigned size = dtypeSize(array.dtype);
  if (!size) return bad("dtype " + Twine(proto.data_type()) + " is not supported");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) return bad("external data is not supported in tensor files");
  array.shape.assign(proto.dims().begin(), proto.dims().end());
  std::optional<uint64_t> count = checkedProduct(array.shape), bytes = count ? checkedMul(*count, size) : std::nullopt;
  if (!bytes) return bad("negative or overflowing shape");
  array.bytes = proto.has_raw_data() ? proto.raw_data() : typedBytes(proto);
  if (array.bytes.size() != *bytes) return bad("shape x dtype needs " + Twine(*bytes) + " bytes, the file has " + Twine(array.bytes.size()));
  return std::make_pair(proto.name().empty() ? sys::path::stem(path).str() : proto.name(), std::move(array));
}

Expected<ArrayMap> readTensors(StringRef path) {
  if (!sys::fs::is_directory(path)) return readFile(path);
  auto names = listFolder(path);
  if (!names) return names.takeError();
  ArrayMap out;
  for (const std::string &name : *names) {
    if (!isTensorFile(name) || sys::fs::is_directory(name)) continue;
    auto arrays = readFile(name);
    if (!arrays) return arrays.takeError();
    if (Error error = merge(out, std::move(*arrays), name)) return error;
  }
  if (out.empty()) return refuse("no .npz, .npy or .pb file in this folder").inFile(path.str());
  return out;
}

Expected<std::vector<Sample>> readSamples(StringRef path, std::vector<std::string> *files) {
  std::vector<Sample> samples;
  auto note = [&](StringRef file) {
    if (files) files->push_back(file.str());
  };
  if (!sys::fs::is_directory(path)) {
    auto arrays = readFile(path);
    if (!arrays) return arrays.takeError();
    note(path);
    if (Error error = splitSamples(std::move(*arrays), path, samples)) return error;
  } else {
    auto names = listFolder(path);
    if (!names) return names.takeError();
    ArrayMap loose;
    for (const std::string &name : *names) {
      if (sys::fs::is_directory(name)) {
        auto inner = listFolder(name);
        if (!inner) return inner.takeError();
        if (none_of(*inner, [](const std::string &file) { return isTensorFile(file); })) continue; // not a case
        auto arrays = readTensors(name);
        if (!arrays) return arrays.takeError();
        for (const std::string &file : *inner)
          if (isTensorFile(file)) note(file);
        samples.push_back({name, std::move(*arrays)});
        continue;
      }
      if (!isTensorFile(name)) continue;
      auto arrays = readFile(name);
      if (!arrays) return arrays.takeError();
      note(name);
      if (StringRef(name).ends_with(".npz")) {
        if (Error error = splitSamples(std::move(*arrays), name, samples)) return error;
      } else if (Error error = merge(loose, std::move(*arrays), name)) return error;
    }
    if (!loose.empty()) samples.push_back({path.str(), std::move(loose)});
  }
  if (samples.empty()) return refuse("no arrays found").inFile(path.str());
  return samples;
}
} // namespace tare
