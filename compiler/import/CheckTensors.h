// The tensors of attached checks. In: .npz and .safetensors files. Out: numbers, converted to the model's element type. Holds: every file is read once; a
// tensor that is not there, has another shape or holds what no check may hold is refused with the file and its name.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>
#include <onnx/onnx_pb.h>
#include <string>
#include <vector>

namespace tare {

class CheckTensors {
public:
  CheckTensors();
  ~CheckTensors();

  struct View {
    uint8_t dtype = 0; ///< ONNX number
    std::vector<int64_t> shape;
    llvm::StringRef bytes;
  };
  /// The tensor `name` of `file` (by its ending .npz or .safetensors).
  llvm::Expected<View> find(const std::string &file, const std::string &name);

  /// As an initializer called `as` of ONNX type `element` (float, float16, bfloat16, double), rounded to nearest even. Refused: integers, values that are not
  /// finite before or after the conversion, with `notNegative` a value below 0.
  llvm::Expected<onnx::TensorProto> initializer(const std::string &file, const std::string &name, const std::string &as, int element, bool notNegative);

private:
  struct File;
  std::map<std::string, std::unique_ptr<File>> files;
};

} // namespace tare
