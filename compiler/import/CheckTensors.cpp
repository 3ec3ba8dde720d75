// Reading and converting the tensors of attached checks (CheckTensors.h).
#include "compiler/import/CheckTensors.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/Npz.h"
#include "compiler/import/Safetensors.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace llvm;

namespace tare {

struct CheckTensors::File {
  ArrayMap arrays;       // of a .npz
  Checkpoint checkpoint; // of a .safetensors
  std::map<std::string, View> views;
};

CheckTensors::CheckTensors() = default;
CheckTensors::~CheckTensors() = default;

Expected<CheckTensors::View> CheckTensors::find(const std::string &path, const std::string &name) {
  auto &file = files[path];
  if (!file) {
    auto opened = std::make_unique<File>();
    if (StringRef(path).ends_with(".npz")) {
      auto arrays = readNpz(path);
      if (!arrays) return arrays.takeError();
      opened->arrays = std::move(*arrays);
      for (auto &[key, a] : opened->arrays) opened->views[key] = {a.dtype, a.shape, a.bytes};
    } else if (StringRef(path).ends_with(".safetensors")) {
      auto checkpoint = readSafetensors(path);
      if (!checkpoint) return checkpoint.takeError();
      opened->checkpoint = std::move(*checkpoint);
      for (auto &[key, t] : opened->checkpoint.tensors) opened->views[key] = {t.dtype, t.shape, t.bytes};
    } else {
      return refuse("weights of checks are read from .npz and .safetensors files").inFile(path);
    }
    file = std::move(opened);
  }
  auto at = file->views.find(name);
  if (at != file->views.end()) return at->second;
  SmallVector<std::string> some;
  for (auto &[key, view] : file->views)
    if (some.size() < 8) some.push_back(key);
  std::string hint = some.empty() ? "the file holds no tensor" : "it holds " + join(some, ", ") + (file->views.size() > some.size() ? ", ..." : "");
  return refuse("the weights have no tensor '" + name + "'").inFile(path).ofTensor(name).withHint(hint + "; 'tensors' in the checks file says the names");
}

static const fltSemantics *semanticsOf(int type) {
  switch (type) {
  case onnx::TensorProto::FLOAT: return &APFloat::IEEEsingle();
  case onnx::TensorProto::FLOAT16: return &APFloat::IEEEhalf();
  case onnx::TensorProto::BFLOAT16: return &APFloat::BFloat();
  case onnx::TensorProto::DOUBLE: return &APFloat::IEEEdouble();
  default: return nullptr;
  }
}

Expected<onnx::TensorProto> CheckTensors::initializer(const std::string &path, const std::string &name, const std::string &as, int element, bool notNegative) {
  auto view = find(path, name);
  if (!view) return view.takeError();
  auto wrong = [&](const std::string &what) { return refuse("'" + name + "' " + what).inFile(path).ofTensor(name); };
  const fltSemantics *from = semanticsOf(view->dtype), *to = semanticsOf(element);
  if (!from) return wrong("is " + dtypeName(view->dtype).str() + "; the tensors of a check are floats");
  if (!to) return refuse("the model computes in a type that no check can have").ofTensor(name);
  onnx::TensorProto tensor;
  tensor.set_name(as);
  tensor.set_data_type(element);
  for (int64_t d : view->shape) tensor.add_dims(d);
  unsigned in = APFloat::semanticsSizeInBits(*from) / 8, out = APFloat::semanticsSizeInBits(*to) / 8;
  std::string bytes(view->bytes.size() / in * out, '\0');
  for (size_t i = 0; i * in < view->bytes.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, view->bytes.data() + i * in, in); // little-endian, as the file and the machine
    APFloat value(*from, APInt(in * 8, bits));
    std::string where = " at index " + std::to_string(i);
    if (!value.isFinite()) return wrong(std::string("holds ") + (value.isNaN() ? "NaN" : "Inf") + where).withHint("every number of a check must be finite");
    if (notNegative && value.isNegative() && !value.isZero()) return wrong("is negative" + where).withHint("tau is compared with a distance, which is never negative");
    bool lost = false;
    value.convert(*to, APFloat::rmNearestTiesToEven, &lost);
    if (!value.isFinite()) return wrong("is too large for the model's element type" + where);
    uint64_t converted = value.bitcastToAPInt().getZExtValue();
    std::memcpy(&bytes[i * out], &converted, out);
  }
  tensor.set_raw_data(bytes);
  return tensor;
}

} // namespace tare
