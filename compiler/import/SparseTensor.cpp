// sparse_initializer: checked and made dense. Indices are linear [n] or coordinates [n, rank], strictly ascending (ONNX: SparseTensorProto).
#include "compiler/graph/Checked.h"
#include "compiler/import/GraphImport.h"
#include "compiler/import/TensorData.h"
#include "llvm/Support/Endian.h"
#include <cstring>

using namespace mlir;

namespace tare {

llvm::Error GraphImport::sparse(const onnx::SparseTensorProto &t) {
  const std::string &name = t.values().name();
  auto bad = [&](std::string why) { return refuse("sparse initializer: " + why).ofTensor(name); };
  if (name.empty()) return bad("it has no name");
  if (top.values.count(name)) return refuse("two initializers are named '" + name + "'").ofTensor(name);
  auto values = tensorBytes(t.values(), g.external), indices = tensorBytes(t.indices(), g.external);
  if (!values || !indices) return llvm::joinErrors(values.takeError(), indices.takeError());
  if (t.indices().data_type() != onnx::TensorProto::INT64) return bad("indices must be int64");
  if (t.values().dims_size() != 1) return bad("values must have rank 1");
  auto total = checkedProduct(t.dims());
  uint64_t count = values->elements, rank = t.dims_size();
  if (!total || t.dims_size() > 8) return bad("dims are negative, overflow, or more than 8");
  if (*total > (uint64_t(1) << 31)) return fail(ExitCode::Limit, "sparse initializer: more than 2^31 elements when made dense").ofTensor(name);
  bool linear = t.indices().dims_size() == 1;
  if (!linear && (t.indices().dims_size() != 2 || static_cast<uint64_t>(t.indices().dims(1)) != rank)) return bad("indices must have shape [n] or [n, rank]");
  if (indices->elements != count * (linear ? 1 : rank)) return bad("the number of indices does not match the number of values");
  uint64_t width = count ? values->bytes.size() / count : 0;
  if (count && width * count != values->bytes.size()) return bad("element types below a byte are not supported");
  auto dense = std::make_unique<onnx::TensorProto>();
  dense->set_name(name);
  dense->set_data_type(t.values().data_type());
  *dense->mutable_dims() = t.dims();
  std::string &raw = *dense->mutable_raw_data();
  raw.assign(*total * (width ? width : 1), '\0');
  int64_t previous = -1;
  auto indexAt = [&](uint64_t i) { return static_cast<int64_t>(llvm::support::endian::read64le(indices->bytes.data() + 8 * i)); };
  for (uint64_t i = 0; i < count; ++i) {
    int64_t flat = linear ? indexAt(i) : 0;
    for (uint64_t k = 0; !linear && k < rank; ++k) {
      int64_t at = indexAt(i * rank + k);
      if (at < 0 || at >= t.dims(k)) return bad("index " + std::to_string(at) + " is out of range for dimension " + std::to_string(k));
      flat = flat * t.dims(k) + at;
    }
    if (flat < 0 || static_cast<uint64_t>(flat) >= *total) return bad("index " + std::to_string(flat) + " is out of range for " + std::to_string(*total) + " elements");
    if (flat <= previous) return bad(flat == previous ? "duplicate index " + std::to_string(flat) : "indices are not in ascending order at " + std::to_string(flat));
    previous = flat;
    std::memcpy(raw.data() + flat * width, values->bytes.data() + i * width, width);
  }
  auto value = g.constant(*dense, name, NameLoc::get(g.builder.getStringAttr(name)));
  g.made->push_back(std::move(dense));
  if (!value) return value.takeError();
  top.values[name] = *value;
  return llvm::Error::success();
}

} // namespace tare
