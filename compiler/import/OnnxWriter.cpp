// Copies of external data, atomic write (OnnxWriter.h).
#include "compiler/import/OnnxWriter.h"
#include "compiler/engine/AtomicFile.h"
#include "compiler/import/ExternalData.h"
#include <filesystem>

using namespace llvm;

namespace tare {

/// Every external location that the model still refers to, nested tensors included.
static StringMap<std::string> locations(const onnx::ModelProto &model) {
  StringMap<std::string> result;
  auto add = [&](const onnx::TensorProto &t) {
    if (t.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (auto &entry : t.external_data())
      if (entry.key() == "location") result[entry.value()] = t.name();
  };
  std::vector<const onnx::GraphProto *> work{&model.graph()};
  auto visit = [&](const onnx::NodeProto &node) {
    for (auto &a : node.attribute()) {
      add(a.t());
      for (auto &t : a.tensors()) add(t);
      if (a.has_g()) work.push_back(&a.g());
      for (auto &g : a.graphs()) work.push_back(&g);
    }
  };
  for (auto &function : model.functions())
    for (auto &node : function.node()) visit(node);
  while (!work.empty()) {
    auto *graph = work.back();
    work.pop_back();
    for (auto &t : graph->initializer()) add(t);
    for (auto &t : graph->sparse_initializer()) add(t.values()), add(t.indices());
    for (auto &node : graph->node()) visit(node);
  }
  return result;
}

static Error copyExternal(const onnx::ModelProto &model, StringRef source, StringRef target) {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path from = fs::path(source.str()).parent_path(), to = fs::path(target.str()).parent_path();
  if (fs::equivalent(from.empty() ? "." : from, to.empty() ? "." : to, code)) return Error::success();
  ExternalData external(source);
  for (auto &[location, tensor] : locations(model)) {
    auto file = external.open(location, tensor);
    if (!file) return file.takeError();
    StringRef bytes((*file)->bytes().data(), (*file)->bytes().size());
    fs::path copy = to / location.str();
    if (fs::exists(copy, code)) {
      auto existing = MappedFile::open(copy.string());
      if (!existing) return existing.takeError();
      if (StringRef((*existing)->bytes().data(), (*existing)->bytes().size()) == bytes) continue;
      return fail(ExitCode::Io, "external data: a different file of this name exists").inFile(copy.string()).withHint("choose another folder for the emitted ONNX file");
    }
    if (copy.has_parent_path()) fs::create_directories(copy.parent_path(), code);
    auto out = AtomicFile::create(copy.string());
    if (!out) return out.takeError();
    if (auto error = out->write(bytes)) return error;
    if (auto error = (*file)->stillSame()) return error;
    if (auto error = out->commit()) return error;
  }
  return Error::success();
}

Error writeOnnx(const onnx::ModelProto &model, StringRef source, StringRef target, function_ref<Error(const std::string &)> verify) {
  if (auto error = copyExternal(model, source, target)) return error;
  std::string bytes;
  if (!model.SerializePartialToString(&bytes)) return fail(ExitCode::Limit, "the emitted ONNX model is above protobuf's limit of 2 GiB").inFile(target.str());
  auto out = AtomicFile::create(target);
  if (!out) return out.takeError();
  if (auto error = out->write(bytes)) return error;
  return out->commit(verify);
}

} // namespace tare
