// Module paths of ONNX nodes (ModulePath.h). Text only: quotes and escapes of a Python list, slashes of a node name.
#include "compiler/import/ModulePath.h"
#include "compiler/import/OnnxModel.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tare {

std::string innermostScope(StringRef list) {
  SmallVector<std::string> entries;
  for (size_t i = 0; i < list.size(); ++i) {
    char quote = list[i];
    if (quote != '\'' && quote != '"') continue;
    std::string entry;
    for (++i; i < list.size() && list[i] != quote; ++i) {
      if (list[i] == '\\' && i + 1 < list.size()) ++i;
      entry += list[i];
    }
    entries.push_back(std::move(entry));
  }
  return entries.size() < 2 ? "" : entries[entries.size() - 2];
}

std::string modulePathOf(const onnx::NodeProto &node) {
  Metadata metadata = metadataOf(node);
  if (auto scopes = metadata.find("pkg.torch.onnx.name_scopes"); scopes != metadata.end()) return innermostScope(scopes->second);
  auto [path, own] = StringRef(node.name()).rsplit('/');
  SmallVector<StringRef> parts;
  if (!own.empty()) path.split(parts, '/', -1, false);
  return join(parts, ".");
}

} // namespace tare
