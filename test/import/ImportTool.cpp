// tare-import FILE.onnx: prints the imported module with large constants elided, warnings to stderr. A test tool, not installed; `tare compile
// --stop-after imported` does the same for users.
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  tare::CompileOptions options;
  options.model = argc > 1 ? argv[1] : "";
  auto model = tare::importModel(context, options);
  if (!model) {
    int code = 1;
    handleAllErrors(model.takeError(), [&](const tare::Failure &f) {
      llvm::errs() << "error: " << f.message << " [file " << f.file << "; node " << f.node << "; tensor " << f.tensor << "] " << f.hint << "\n";
      code = static_cast<int>(f.code);
    });
    return code;
  }
  for (auto &warning : model->warnings) llvm::errs() << "warning: " << warning << "\n";
  if (failed(mlir::verify(*model->module))) return 1;
  mlir::OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64).elideLargeResourceString(64);
  if (argc > 2) flags.enableDebugInfo();
  model->module->print(llvm::outs(), flags);
  llvm::outs() << "\n// parameters: " << model->parameters << "\n";
  return 0;
}
