// Chooses the importer for a path: a folder with config.json or .safetensors is a Hugging Face checkpoint, a file an ONNX model.
#include "compiler/import/Import.h"
#include "llvm/ADT/StringRef.h"
#include <filesystem>

namespace tare {

llvm::Expected<ImportedModel> importModel(mlir::MLIRContext &context, const CompileOptions &options) {
  if (options.model == "-")
    return refuse("a model cannot be read from standard input: external data is found beside the file").withHint("give the path of the .onnx file");
  std::error_code error;
  if (std::filesystem::is_directory(options.model, error)) return importHuggingFace(context, options);
  llvm::StringRef path(options.model);
  if (path.ends_with(".safetensors") || path.ends_with(".bin") || path.ends_with(".json"))
    return refuse("this is a part of a Hugging Face checkpoint").inFile(options.model).withHint("give the folder that holds config.json");
  return importOnnx(context, options);
}

} // namespace tare
