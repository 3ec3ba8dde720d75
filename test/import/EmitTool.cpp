// tare-emit SOURCE.onnx TARGET.onnx [INPUT OUTPUT]...: removes the parts between pairs of tensors. A test tool for --emit-onnx without the checks.
#include "compiler/graph/Failure.h"
#include "compiler/import/EmitOnnx.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  std::vector<tare::LayerRemoval> removals;
  for (int i = 3; i + 1 < argc; i += 2) removals.push_back({argv[i + 1], argv[i], argv[i + 1]});
  if (auto error = tare::emitPrunedOnnx(argv[1], argv[2], removals)) {
    llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
    return 3;
  }
  return 0;
}
