// libFuzzer target: bytes as a .safetensors file. In: any bytes. Must hold: refused with a Failure, or every tensor lies inside of the file.
#include "compiler/import/Safetensors.h"
#include "test/fuzz/Bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tare::fuzz::MemoryFile file(data, size);
  auto checkpoint = tare::readSafetensors(file.path());
  if (!checkpoint) return tare::fuzz::refused(checkpoint.takeError()), 0;
  uint64_t sum = 0;
  for (auto &[name, tensor] : checkpoint->tensors)
    for (char byte : tensor.bytes) sum += static_cast<unsigned char>(byte); // AddressSanitizer sees a range that is wrong
  return sum == UINT64_MAX;
}
