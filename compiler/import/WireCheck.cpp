// The walker over protobuf's wire format, with the part of onnx.proto's structure that it needs: which fields are messages and which are names.
#include "compiler/import/WireCheck.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ConvertUTF.h"

using namespace llvm;

namespace tare {

namespace {
enum Message : uint8_t { Model, Graph, Node, Attribute, Tensor, SparseTensor, ValueInfo, Type, TypeTensor, TypeElement, TypeMap, Shape, ShapeDim,
                         OpsetId, Entry, Function, Training, Quantization, Unknown };
enum class Field : uint8_t { Other, Name, Sub };
struct Rule { Message in; uint32_t number; Field kind; Message sub; };

// onnx.proto (IR 14). Names are strings that identify something; doc_string and raw bytes are "Other".
constexpr Rule kRules[] = {
    {Model, 7, Field::Sub, Graph}, {Model, 8, Field::Sub, OpsetId}, {Model, 14, Field::Sub, Entry}, {Model, 20, Field::Sub, Training}, {Model, 25, Field::Sub, Function},
    {Model, 2, Field::Name, Unknown}, {Model, 3, Field::Name, Unknown}, {Model, 4, Field::Name, Unknown},
    {Graph, 1, Field::Sub, Node}, {Graph, 2, Field::Name, Unknown}, {Graph, 5, Field::Sub, Tensor}, {Graph, 11, Field::Sub, ValueInfo}, {Graph, 12, Field::Sub, ValueInfo},
    {Graph, 13, Field::Sub, ValueInfo}, {Graph, 14, Field::Sub, Quantization}, {Graph, 15, Field::Sub, SparseTensor}, {Graph, 16, Field::Sub, Entry},
    {Node, 1, Field::Name, Unknown}, {Node, 2, Field::Name, Unknown}, {Node, 3, Field::Name, Unknown}, {Node, 4, Field::Name, Unknown}, {Node, 7, Field::Name, Unknown},
    {Node, 8, Field::Name, Unknown}, {Node, 5, Field::Sub, Attribute}, {Node, 9, Field::Sub, Entry},
    {Attribute, 1, Field::Name, Unknown}, {Attribute, 21, Field::Name, Unknown}, {Attribute, 5, Field::Sub, Tensor}, {Attribute, 6, Field::Sub, Graph},
    {Attribute, 10, Field::Sub, Tensor}, {Attribute, 11, Field::Sub, Graph}, {Attribute, 14, Field::Sub, Type}, {Attribute, 15, Field::Sub, Type},
    {Attribute, 22, Field::Sub, SparseTensor}, {Attribute, 23, Field::Sub, SparseTensor},
    {Tensor, 8, Field::Name, Unknown}, {Tensor, 13, Field::Sub, Entry}, {Tensor, 16, Field::Sub, Entry},
    {SparseTensor, 1, Field::Sub, Tensor}, {SparseTensor, 2, Field::Sub, Tensor},
    {ValueInfo, 1, Field::Name, Unknown}, {ValueInfo, 2, Field::Sub, Type}, {ValueInfo, 4, Field::Sub, Entry},
    {Type, 1, Field::Sub, TypeTensor}, {Type, 4, Field::Sub, TypeElement}, {Type, 5, Field::Sub, TypeMap}, {Type, 8, Field::Sub, TypeTensor}, {Type, 9, Field::Sub, TypeElement},
    {TypeTensor, 2, Field::Sub, Shape}, {TypeElement, 1, Field::Sub, Type}, {TypeMap, 2, Field::Sub, Type}, {Shape, 1, Field::Sub, ShapeDim},
    {ShapeDim, 2, Field::Name, Unknown}, {ShapeDim, 3, Field::Name, Unknown}, {OpsetId, 1, Field::Name, Unknown}, {Entry, 1, Field::Name, Unknown},
    {Function, 1, Field::Name, Unknown}, {Function, 4, Field::Name, Unknown}, {Function, 5, Field::Name, Unknown}, {Function, 6, Field::Name, Unknown},
    {Function, 7, Field::Sub, Node}, {Function, 9, Field::Sub, OpsetId}, {Function, 10, Field::Name, Unknown}, {Function, 11, Field::Sub, Attribute},
    {Function, 12, Field::Sub, ValueInfo}, {Function, 13, Field::Name, Unknown}, {Function, 14, Field::Sub, Entry},
    {Training, 1, Field::Sub, Graph}, {Training, 2, Field::Sub, Graph}, {Quantization, 1, Field::Name, Unknown}, {Quantization, 2, Field::Sub, Entry}};

/// kRules by message and field number, so that the walk does not search.
struct RuleIndex {
  Rule const *at[Unknown + 1][32] = {};
  constexpr RuleIndex() {
    for (auto &rule : kRules) at[rule.in][rule.number] = &rule;
  }
};
constexpr RuleIndex kIndex;

struct Frame { Message message; uint64_t end; bool group; };

struct Walker {
  ArrayRef<char> bytes;
  uint64_t at = 0;

  /// A base-128 number of at most 10 bytes and 64 bits.
  bool varint(uint64_t end, uint64_t &value) {
    value = 0, overlong = false;
    for (unsigned i = 0; i < 10; ++i) {
      if (at >= end) return false;
      auto byte = static_cast<uint8_t>(bytes[at++]);
      if (i == 9 && byte > 1) break;
      value |= uint64_t(byte & 127) << (7 * i);
      if (byte < 128) return true;
    }
    overlong = true;
    return false;
  }
  bool overlong = false; ///< why varint() failed: too many bytes, or the end of its message
  bool truncated() const { return !overlong && at >= bytes.size(); }
};
} // namespace

static std::string at(uint64_t offset) { return " at byte " + std::to_string(offset); }

static Error checkName(StringRef name, uint64_t offset) {
  if (name.size() > kMaxName) return refuse("a name of " + std::to_string(name.size()) + " bytes" + at(offset) + " is above the limit of " + std::to_string(kMaxName));
  if (name.contains('\0')) return refuse("a name" + at(offset) + " contains a NUL character");
  auto *begin = reinterpret_cast<const UTF8 *>(name.data());
  if (!isLegalUTF8String(&begin, begin + name.size())) return refuse("a name" + at(offset) + " is not valid UTF-8");
  return Error::success();
}

Error checkOnnxBytes(ArrayRef<char> bytes) {
  Walker w{bytes};
  SmallVector<Frame, kMaxNesting> stack{{Model, bytes.size(), false}};
  while (!stack.empty()) {
    Frame frame = stack.back();
    if (w.at == frame.end && !frame.group) {
      stack.pop_back();
      continue;
    }
    uint64_t start = w.at, key = 0, length = 0;
    if (w.at >= frame.end) return refuse("the file is truncated" + at(start) + " inside a group");
    if (!w.varint(frame.end, key))
      return refuse((w.truncated() ? "the file is truncated" : "not an ONNX protobuf: bad field key") + at(start));
    uint64_t number = key >> 3;
    unsigned wire = key & 7;
    if (number == 0 || number > 0x1fffffff) return refuse("not an ONNX protobuf: bad field number" + at(start));
    auto truncated = [&](const char *what) { return refuse("the file is truncated: " + std::string(what) + at(start) + " reaches past the end of the file"); };
    switch (wire) {
    case 0:
      if (!w.varint(frame.end, length)) return w.truncated() ? truncated("a number") : refuse("not an ONNX protobuf: bad number" + at(start));
      break;
    case 1: case 5:
      w.at += wire == 1 ? 8 : 4;
      if (w.at > frame.end) return frame.end == bytes.size() ? truncated("a number") : refuse("not an ONNX protobuf: bad length" + at(start));
      break;
    case 2: {
      if (!w.varint(frame.end, length)) return w.truncated() ? truncated("a length") : refuse("not an ONNX protobuf: bad length" + at(start));
      if (length > uint64_t(INT32_MAX)) return refuse("bad length " + std::to_string(length) + at(start) + ": protobuf's limit is 2 GiB");
      if (length > bytes.size() - w.at) return truncated(("a field of " + std::to_string(length) + " bytes").c_str());
      if (length > frame.end - w.at) return refuse("not an ONNX protobuf: bad length " + std::to_string(length) + at(start));
      const Rule *rule = number < 32 ? kIndex.at[frame.message][number] : nullptr;
      if (rule && rule->kind == Field::Sub) {
        if (stack.size() >= kMaxNesting) return refuse("messages are nested deeper than the nesting limit of " + std::to_string(kMaxNesting) + at(start));
        stack.push_back({rule->sub, w.at + length, false});
        break;
      }
      if (rule && rule->kind == Field::Name)
        if (auto error = checkName(StringRef(bytes.data() + w.at, length), w.at)) return error;
      w.at += length;
      break;
    }
    case 3:
      if (stack.size() >= kMaxNesting) return refuse("groups are nested deeper than the nesting limit of " + std::to_string(kMaxNesting) + at(start));
      stack.push_back({Unknown, frame.end, true});
      break;
    case 4:
      if (!frame.group) return refuse("not an ONNX protobuf: a group ends that never began" + at(start));
      stack.pop_back();
      break;
    default: return refuse("not an ONNX protobuf: bad wire type " + std::to_string(wire) + at(start));
    }
  }
  return Error::success();
}

} // namespace tare
