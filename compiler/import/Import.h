// A checkpoint becomes a module of the `graph` dialect. In: a path (an .onnx file or a Hugging Face folder). Out: `func.func @main` whose
// types carry symbolic dims, constants that point into the mapped files, and what a report says about the source. Nothing is rewritten here
// beyond what docs/architecture.md lists; every refusal is a tare::Failure.
#pragma once
#include "compiler/graph/Failure.h"
#include "compiler/graph/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tare {

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string name;                  ///< file or folder name without its directory
  std::string format;                ///< "onnx" or "huggingface"
  std::string sha256;                ///< hex digest of the model file's bytes (of config.json and all shards for a folder)
  uint64_t parameters = 0;           ///< elements of all floating-point weights (quantised ones included), each storage counted once
  std::vector<std::string> warnings; ///< one line each, in the order they were found
  std::vector<std::string> files;    ///< every file that was read (depfile, cache key)
  std::shared_ptr<void> storage;     ///< keeps maps and buffers alive that constants point to
};

/// Imports `options.model`; the kind of checkpoint is seen from what the path is. Refusals have exit code 3, I/O errors 6, limits 7.
llvm::Expected<ImportedModel> importModel(mlir::MLIRContext &context, const CompileOptions &options);
llvm::Expected<ImportedModel> importOnnx(mlir::MLIRContext &context, const CompileOptions &options);
llvm::Expected<ImportedModel> importHuggingFace(mlir::MLIRContext &context, const CompileOptions &options);

/// One line of the coverage table (`tare compile --dry-run`): an op of the model and whether the table has it at the model's opset.
struct OpCoverage {
  std::string domain, name;
  int64_t version = 0; ///< the since_version that the model's opset selects; 0 when the domain is not imported
  uint64_t nodes = 0;  ///< how many nodes (function bodies and subgraphs included)
  bool supported = false;
  std::string why;     ///< empty when supported
};
/// All ops of an ONNX file, sorted by domain and name. Only the file itself is read, no external data.
llvm::Expected<std::vector<OpCoverage>> importCoverage(llvm::StringRef path);

} // namespace tare
