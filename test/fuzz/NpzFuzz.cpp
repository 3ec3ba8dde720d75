// libFuzzer target: bytes as a .npz file, as one .npy array and as an ONNX tensor (.pb). In: any bytes. Must hold: refused with a Failure, or arrays whose bytes are what
// shape and dtype say; what a file merely claims is never allocated (limit 64 MiB).
#include "compiler/import/TensorFiles.h"
#include "test/fuzz/Bytes.h"

static void check(const tare::Array &array) {
  uint64_t bytes = tare::dtypeSize(array.dtype);
  for (int64_t d : array.shape) bytes *= static_cast<uint64_t>(d);
  if (bytes != array.bytes.size()) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tare::fuzz::MemoryFile file(data, size);
  if (auto arrays = tare::readNpz(file.path(), uint64_t(64) << 20)) {
    for (auto &[name, array] : *arrays) check(array);
  } else {
    tare::fuzz::refused(arrays.takeError());
  }
  if (auto array = tare::parseNpy({reinterpret_cast<const char *>(data), size}, "x.npy", "x")) check(*array);
  else tare::fuzz::refused(array.takeError());
  if (auto tensor = tare::readTensorProto(file.path())) check(tensor->second);
  else tare::fuzz::refused(tensor.takeError());
  return 0;
}
