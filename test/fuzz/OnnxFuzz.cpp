// libFuzzer target: bytes as an .onnx file through load, import and verification. In: any bytes. Must hold: imported or refused with a Failure; no
// crash, leak or output. Build with -DTARE_FUZZ=ON; seeds are the small models of test/data.
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int descriptor = ::memfd_create("model", MFD_CLOEXEC);
  if (descriptor < 0 || ::write(descriptor, data, size) != static_cast<ssize_t>(size)) std::abort();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  tare::CompileOptions options;
  options.model = "/proc/self/fd/" + std::to_string(descriptor);
  auto model = tare::importOnnx(context, options);
  if (!model)
    handleAllErrors(model.takeError(), [](const tare::Failure &) {});
  else if (failed(mlir::verify(*model->module)))
    std::abort();
  ::close(descriptor);
  return 0;
}
