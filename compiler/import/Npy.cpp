// One .npy array. In: bytes of a header and data. Out: an Array, row-major and little-endian. The header is a Python dictionary literal; only the
// three keys that NumPy writes are accepted, each once. Data is compared with shape x dtype before anything is copied.
#include "compiler/graph/Checked.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/Npz.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <optional>

using namespace llvm;

namespace tare {
namespace {
struct Dtype {
  uint8_t onnx;
  unsigned size;
  const char *npy; // kind and size, without the byte order
  const char *name;
};
constexpr Dtype kDtypes[] = {{1, 4, "f4", "float32"}, {2, 1, "u1", "uint8"},    {3, 1, "i1", "int8"},   {4, 2, "u2", "uint16"}, {5, 2, "i2", "int16"},
                             {6, 4, "i4", "int32"},   {7, 8, "i8", "int64"},    {9, 1, "b1", "bool"},   {10, 2, "f2", "float16"}, {11, 8, "f8", "float64"},
                             {12, 4, "u4", "uint32"}, {13, 8, "u8", "uint64"},  {16, 2, "V2", "bfloat16"}};

const Dtype *find(uint8_t onnx) {
  auto it = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype &d) { return d.onnx == onnx; });
  return it == std::end(kDtypes) ? nullptr : &*it;
}

/// The header's dictionary: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

struct Parser {
  StringRef rest;
  std::string problem;

  void blanks() { rest = rest.ltrim(" \n"); }
  bool take(char c) {
    blanks();
    if (!rest.starts_with(StringRef(&c, 1))) return false;
    rest = rest.drop_front();
    return true;
  }
  bool refuse(std::string what) {
    if (problem.empty()) problem = std::move(what);
    return false;
  }
  bool quoted(std::string &out) {
    blanks();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"')) return refuse("a quoted string is expected");
    size_t end = rest.find(rest[0], 1);
    if (end == StringRef::npos) return refuse("a quote is not closed");
    out = rest.slice(1, end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }
  bool boolean(bool &out) {
    blanks();
    if (rest.consume_front("True")) return out = true;
    out = false;
    return rest.consume_front("False") || refuse("fortran_order is neither True nor False");
  }
  bool tuple(std::vector<int64_t> &out) {
    if (!take('(')) return refuse("shape is not a tuple");
    while (!take(')')) {
      blanks();
      StringRef digits = rest.take_while(isDigit);
      int64_t value;
      if (digits.empty() || digits.getAsInteger(10, value)) return refuse("shape has an entry that is not an integer >= 0 below 2^63");
      rest = rest.drop_front(digits.size());
      out.push_back(value);
      if (out.size() > 32) return refuse("shape has more than 32 dimensions");
      if (!take(',')) {
        if (!take(')')) return refuse("shape is not closed");
        break;
      }
    }
    return true;
  }
  bool header(Header &out) {
    bool descr = false, order = false, shape = false;
    if (!take('{')) return refuse("the header is not a dictionary");
    while (!take('}')) {
      std::string key;
      if (!quoted(key)) return false;
      if (!take(':')) return refuse("':' is expected after '" + key + "'");
      bool *seen = key == "descr" ? &descr : key == "fortran_order" ? &order : key == "shape" ? &shape : nullptr;
      if (!seen) return refuse("unknown key '" + key + "'");
      if (std::exchange(*seen, true)) return refuse("key '" + key + "' is given twice");
      blanks();
      if (seen == &descr && rest.starts_with("[")) return refuse("structured dtypes are not supported");
      if (!(seen == &descr ? quoted(out.descr) : seen == &order ? boolean(out.fortran) : tuple(out.shape))) return false;
      if (!take(',') && !rest.starts_with("}")) return refuse("',' or '}' is expected");
    }
    blanks();
    if (!rest.empty()) return refuse("bytes after the dictionary");
    return (descr && order && shape) || refuse("descr, fortran_order or shape is missing");
  }
};

/// Column-major to row-major.
std::string toRowMajor(StringRef data, ArrayRef<int64_t> shape, unsigned size) {
  std::string out(data.size(), '\0');
  std::vector<uint64_t> stride(shape.size());
  uint64_t step = size;
  for (size_t d = 0; d < shape.size(); ++d) stride[d] = step, step *= shape[d];
  std::vector<int64_t> index(shape.size(), 0);
  uint64_t from = 0;
  for (size_t to = 0; to < out.size(); to += size) {
    std::copy_n(data.data() + from, size, out.data() + to);
    for (size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
  return out;
}
} // namespace

unsigned dtypeSize(uint8_t dtype) {
  const Dtype *found = find(dtype);
  return found ? found->size : 0;
}
StringRef dtypeName(uint8_t dtype) {
  const Dtype *found = find(dtype);
  return found ? found->name : "unknown";
}
std::string npyHeader(const Array &array) {
  std::string shape;
  for (int64_t d : array.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(d);
  if (array.shape.size() == 1) shape += ",";
  const Dtype *dtype = find(array.dtype);
  std::string dict = std::string("{'descr': '") + (dtype->size == 1 ? "|" : "<") + dtype->npy + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - 10 - dict.size() - 1, ' ');
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += char(dict.size() & 0xff);
  out += char(dict.size() >> 8);
  return out + dict;
}

Expected<Array> parseNpy(StringRef bytes, StringRef file, StringRef entry) {
  auto bad = [&](const Twine &what) { return refuse(("array '" + entry + "': " + what).str()).inFile(file.str()).ofTensor(entry.str()); };
  if (bytes.size() < 10 || !bytes.starts_with("\x93NUMPY")) return bad("not a .npy array (its first six bytes are not \\x93NUMPY, or it is cut short)");
  unsigned major = uint8_t(bytes[6]);
  if (major < 1 || major > 3) return bad(".npy version " + Twine(major) + ", known are 1, 2 and 3");
  size_t fixed = major == 1 ? 10 : 12;
  if (bytes.size() < fixed) return bad("truncated in the header");
  uint64_t length = 0;
  for (size_t i = 8; i < fixed; ++i) length |= uint64_t(uint8_t(bytes[i])) << (8 * (i - 8));
  if (length > bytes.size() - fixed) return bad("header length " + Twine(length) + " reaches past the end (" + Twine(bytes.size()) + " bytes)");
  if (length > 65536) return bad("header length " + Twine(length) + " is above the limit of 65536");
  Header header;
  Parser parser{bytes.substr(fixed, length), ""};
  if (!parser.header(header)) return bad("malformed .npy header: " + parser.problem);

  StringRef descr = header.descr;
  char order = '|';
  if (!descr.empty() && StringRef("<>|=").contains(descr[0])) order = descr[0], descr = descr.drop_front();
  if (descr.starts_with("O")) return refuse(("array '" + entry + "' holds Python objects (pickle), which are never loaded").str()).inFile(file.str()).ofTensor(entry.str()).withHint("save plain number arrays: numpy.asarray(x, dtype=...)");
  auto dtype = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype &d) { return descr == d.npy; });
  if (dtype == std::end(kDtypes)) return bad("dtype '" + header.descr + "' is not supported (floats, ints and bool are)");
  std::optional<uint64_t> count = checkedProduct(header.shape);
  std::optional<uint64_t> need = count ? checkedMul(*count, dtype->size) : std::nullopt;
  if (!need) return bad("the product of its shape overflows");
  StringRef data = bytes.drop_front(fixed + length);
  if (data.size() != *need) return bad("shape x dtype needs " + Twine(*need) + " bytes of data, the file has " + Twine(data.size()));

  Array out;
  out.dtype = dtype->onnx;
  out.shape = header.shape;
  out.bytes = header.fortran && header.shape.size() > 1 ? toRowMajor(data, header.shape, dtype->size) : data.str();
  if (order == '>' && dtype->size > 1)
    for (size_t i = 0; i < out.bytes.size(); i += dtype->size) std::reverse(out.bytes.begin() + i, out.bytes.begin() + i + dtype->size);
  if (dtype->onnx == 9)
    for (char &b : out.bytes)
      if (uint8_t(b) > 1) return bad("bool element with the byte " + Twine(unsigned(uint8_t(b))));
  return out;
}
} // namespace tare
