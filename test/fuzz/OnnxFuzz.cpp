// libFuzzer target: bytes as an .onnx file through load, import and verification. In: any bytes. Must hold: imported or refused with a Failure; a module that was
// imported is valid MLIR.
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "test/fuzz/Bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tare::fuzz::MemoryFile file(data, size);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  tare::CompileOptions options;
  options.model = file.path();
  auto model = tare::importOnnx(context, options);
  if (!model) tare::fuzz::refused(model.takeError());
  else if (failed(mlir::verify(*model->module))) std::abort();
  return 0;
}
