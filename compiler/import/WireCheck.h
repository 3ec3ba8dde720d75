// A first pass over the bytes of an .onnx file before protobuf parses them. In: the mapped file. Out: success, or a Failure that says at
// which byte the file stops being an ONNX protobuf. Must hold: iterative, linear, no allocation that grows with the input's nesting.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace tare {

/// Messages (and groups) nested deeper than this are refused.
inline constexpr unsigned kMaxNesting = 64;
/// Longest name of a node, tensor, op, domain or dimension, in bytes.
inline constexpr unsigned kMaxName = 4096;

/// Checks wire types, lengths, nesting, and that every name is valid UTF-8 without NUL and at most kMaxName bytes.
llvm::Error checkOnnxBytes(llvm::ArrayRef<char> bytes);

} // namespace tare
