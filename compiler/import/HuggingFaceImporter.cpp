// A Hugging Face folder becomes a module of the `graph` dialect. In: config.json and safetensors. Out: an ImportedModel with the signature that
// cli.md gives engines made from such folders. Holds: config and tensors agree (B46), the hash covers config.json and all weight files.
#include "compiler/import/HuggingFaceBuilder.h"
#include "compiler/import/Import.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;

namespace tare {
using namespace huggingface;

namespace {
/// The name under which the task class keeps its base model ("bert." in BertForMaskedLM), "" when the tensors are the base model's own.
std::string prefixOf(const Config &config, const Checkpoint &checkpoint) {
  if (config.family == Family::Llama) return "";
  StringRef prefix = config.family == Family::Bert ? "bert" : "distilbert";
  return checkpoint.tensors.count((prefix + ".embeddings.word_embeddings.weight").str()) ? prefix.str() : "";
}

/// Layers that the tensors have beyond those of config.json: a wrong config, not an unused tensor.
Error checkLayerCount(const Config &config, const Checkpoint &checkpoint) {
  StringRef marker = config.family == Family::Llama ? "layers." : "layer.";
  for (const auto &[name, view] : checkpoint.tensors) {
    size_t at = StringRef(name).find(marker);
    uint64_t index;
    StringRef rest = at == StringRef::npos ? StringRef() : StringRef(name).substr(at + marker.size());
    if (rest.consumeInteger(10, index) || !rest.starts_with(".")) continue;
    if (index >= uint64_t(config.layers))
      return refuse("config.json has " + std::to_string(config.layers) + " layers, but there is a tensor '" + name + "'").inFile(config.file).ofTensor(name);
  }
  return Error::success();
}

Expected<std::string> hashOf(StringRef config, const Checkpoint &checkpoint) {
  SHA256 hash;
  auto buffer = MemoryBuffer::getFile(config, false, false);
  if (!buffer) return fail(ExitCode::Io, "cannot read: " + buffer.getError().message()).inFile(config.str());
  hash.update((*buffer)->getBuffer());
  for (const auto &mapping : checkpoint.mappings) hash.update(mapping->bytes());
  return toHex(hash.final(), /*LowerCase=*/true);
}
} // namespace

Expected<ImportedModel> importHuggingFace(mlir::MLIRContext &context, const CompileOptions &options) {
  context.loadDialect<graph::GraphDialect, mlir::func::FuncDialect>();
  auto config = readConfig(options.model);
  if (!config) return config.takeError();
  auto read = readCheckpoint(options.model);
  if (!read) return read.takeError();
  auto checkpoint = std::make_shared<Checkpoint>(std::move(*read));
  if (Error error = checkLayerCount(*config, *checkpoint)) return error;

  ImportedModel model;
  SmallString<128> folder(options.model);
  sys::path::remove_dots(folder);
  model.name = sys::path::filename(StringRef(folder).rtrim('/')).str();
  model.format = "huggingface";
  model.warnings = checkpoint->warnings;
  Builder builder(context, *config, *checkpoint, prefixOf(*config, *checkpoint));
  switch (config->family) {
  case Family::Bert: buildBert(builder); break;
  case Family::DistilBert: buildDistilBert(builder); break;
  case Family::Llama: buildLlama(builder); break;
  }
  auto module = builder.finish(model.warnings, model.parameters);
  if (!module) return module.takeError();
  model.module = std::move(*module);
  auto hash = hashOf(config->file, *checkpoint);
  if (!hash) return hash.takeError();
  model.sha256 = std::move(*hash);
  for (const auto &mapping : checkpoint->mappings)
    if (Error error = mapping->unchanged()) return error;
  model.files.push_back(config->file);
  model.files.insert(model.files.end(), checkpoint->files.begin(), checkpoint->files.end());
  model.storage = checkpoint;
  return model;
}
} // namespace tare
