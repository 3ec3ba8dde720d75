// ONNX to the graph dialect. In: a checked model file. Out: `func.func @main`, one walk over the nodes in topological order; each node goes
// through its row of the op table, functions are inlined (tare.FidelityCheck stays one op). Must hold: one location per node, its source
// name; ops in the file's order as far as it is topological; nothing is left that no output or input needs.
#include "compiler/import/GraphImport.h"
#include "compiler/import/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace tare {

llvm::Expected<ImportedModel> importOnnx(MLIRContext &context, const CompileOptions &options) {
  auto model = loadOnnx(options.model);
  if (!model) return model.takeError();
  context.getOrLoadDialect<func::FuncDialect>();
  context.getOrLoadDialect<graph::GraphDialect>();
  // Constants may point into the parsed protobuf (raw_data) and into external files: both live as long as the storage.
  struct Storage {
    std::shared_ptr<OnnxModel> model;
    std::unique_ptr<ExternalData> external;
    std::shared_ptr<void> made;
  };
  auto storage = std::make_shared<Storage>();
  storage->model = *model;
  storage->external = std::make_unique<ExternalData>(options.model);
  GraphImport import(context, **model, *storage->external);
  auto inFile = [&](llvm::Error error) -> llvm::Error {
    return handleErrors(std::move(error), [&](Failure &f) -> llvm::Error {
      if (f.file.empty()) f.inFile(options.model);
      return llvm::make_error<Failure>(f);
    });
  };
  if (auto error = import.run()) return inFile(std::move(error));
  storage->made = import.g.made;
  ImportedModel result;
  result.files.push_back(options.model);
  for (auto &file : storage->external->files()) {
    if (auto error = file->stillSame()) return std::move(error);
    result.files.push_back(file->path());
  }
  if (auto error = (*model)->file->stillSame()) return std::move(error);
  result.module = std::move(import.module);
  result.name = llvm::sys::path::filename(options.model).str();
  result.format = "onnx";
  result.sha256 = sha256Hex((*model)->file->bytes());
  result.parameters = import.g.parameters;
  result.warnings = std::move(import.g.warnings);
  result.storage = storage;
  return result;
}

} // namespace tare
