// NumPy's .npy and .npz, read and written. In: a file or bytes that nobody vouches for. Out: arrays, row-major, little-endian, with ONNX dtype numbers.
// Holds: every number of the file is checked before it is used; no pickle is ever loaded; written files depend on their contents only.
// No MLIR here: tare-run links this too.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tare {

/// A dense array: `bytes` holds the elements row-major, little-endian, product(shape) * dtypeSize(dtype) bytes.
/// `dtype` is the ONNX TensorProto number: 1 f32, 2 u8, 3 i8, 4 u16, 5 i16, 6 i32, 7 i64, 9 bool, 10 f16, 11 f64, 12 u32, 13 u64, 16 bf16.
struct Array {
  uint8_t dtype = 0;
  std::vector<int64_t> shape;
  std::string bytes;
};
using ArrayMap = std::map<std::string, Array>;

/// Bytes of one element; 0 for a number that Array does not have.
unsigned dtypeSize(uint8_t dtype);
/// "float32", "int64", ...; "unknown" for others.
llvm::StringRef dtypeName(uint8_t dtype);

/// All arrays of a .npz (zip of .npy, stored or deflated), by name without ".npy". Errors name the file and the entry: exit 3, or 7 above `limit`
/// bytes of unpacked data, or 6 when the file cannot be read.
llvm::Expected<ArrayMap> readNpz(llvm::StringRef path, uint64_t limit = uint64_t(4) << 30);
/// One .npy file's bytes (versions 1 to 3; Fortran order and big-endian are converted). bfloat16 is NumPy's two-byte void (`V2`), as ml_dtypes writes it.
llvm::Expected<Array> parseNpy(llvm::StringRef bytes, llvm::StringRef file, llvm::StringRef entry);
llvm::Expected<Array> readNpy(llvm::StringRef path, uint64_t limit = uint64_t(4) << 30);
/// Writes a .npz with stored entries in the map's order and a fixed date; replaces the file at once or not at all.
llvm::Error writeNpz(llvm::StringRef path, const ArrayMap &arrays);

} // namespace tare
