// Reading of the checks file (ChecksFile.h). yaml-cpp throws; every call into it is inside yaml::parse.
#include "compiler/import/ChecksFile.h"
#include "compiler/graph/YamlFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include <algorithm>

namespace tare {
namespace {

using yaml::bad;

std::string text(const YAML::Node &node, const std::string &key) {
  if (!node.IsScalar() || node.Scalar().empty()) bad(node, "'" + key + "' must be a text that is not empty");
  return node.Scalar();
}

int64_t count(const YAML::Node &node, const std::string &key) {
  int64_t value = 0;
  if (!node.IsScalar() || !YAML::convert<int64_t>::decode(node, value) || value < 1 || value > (int64_t(1) << 31))
    bad(node, "'" + key + "' must be a whole number of at least 1");
  return value;
}

std::string beside(llvm::StringRef file, const std::string &path) {
  llvm::SmallString<256> full(llvm::sys::path::parent_path(file));
  if (full.empty() || llvm::sys::path::is_absolute(path)) return path;
  llvm::sys::path::append(full, path);
  return std::string(full);
}

CheckEntry entryOf(const YAML::Node &node, llvm::StringRef file, const std::string &weights) {
  if (!node.IsMap()) bad(node, "a check must be a mapping");
  CheckEntry e;
  e.line = node.Mark().line + 1, e.weights = weights, e.name = "{path}.check";
  for (size_t i = 0; i < kCheckTensors.size(); ++i) e.tensors[i] = "{name}." + kCheckTensors[i].str();
  for (const auto &pair : node) {
    std::string key = text(pair.first, "key");
    const YAML::Node &value = pair.second;
    if (key == "layer") {
      e.layer = text(value, key);
      if (e.layer.find_first_of("/[]?{}") != std::string::npos) bad(value, "'layer' is a path of segments joined by dots, in which * and ** are the only wildcards");
    } else if (key == "name") e.name = text(value, key);
    else if (key == "weights") e.weights = beside(file, text(value, key));
    else if (key == "heads") e.heads = count(value, key);
    else if (key == "rank") e.rank = count(value, key);
    else if (key == "tensors") {
      if (!value.IsMap()) bad(value, "'tensors' must be a mapping of W, p, tau, E to names");
      for (const auto &tensor : value) {
        std::string which = text(tensor.first, "key");
        auto at = std::find(kCheckTensors.begin(), kCheckTensors.end(), which);
        if (at == kCheckTensors.end()) bad(tensor.first, "unknown tensor '" + which + "' (W, p, tau, E)");
        e.tensors[at - kCheckTensors.begin()] = text(tensor.second, which);
      }
    } else bad(pair.first, "unknown key '" + key + "' (layer, name, weights, heads, rank, tensors)");
  }
  if (e.layer.empty()) bad(node, "a check needs 'layer', the path of the FFN's first linear layer");
  if (e.weights.empty()) bad(node, "a check needs 'weights', here or at the top of the file");
  return e;
}

std::vector<CheckEntry> document(const YAML::Node &root, llvm::StringRef file) {
  if (!root.IsMap()) bad(root, "the file must be a mapping with 'checks'");
  std::string weights;
  YAML::Node list;
  for (const auto &pair : root) {
    std::string key = text(pair.first, "key");
    if (key == "version") {
      if (!pair.second.IsScalar() || pair.second.Scalar() != "1") bad(pair.second, "'version' must be 1");
    } else if (key == "weights") weights = beside(file, text(pair.second, key));
    else if (key == "checks") list.reset(pair.second);
    else bad(pair.first, "unknown key '" + key + "' (version, weights, checks)");
  }
  if (!list.IsDefined() || !list.IsSequence() || list.size() == 0) bad(list.IsDefined() && !list.IsNull() ? list : root, "'checks' must be a list of at least one check");
  std::vector<CheckEntry> entries;
  for (const auto &item : list) entries.push_back(entryOf(item, file, weights));
  return entries;
}

} // namespace

llvm::Expected<std::vector<CheckEntry>> parseChecksFile(llvm::StringRef text, llvm::StringRef file) {
  return yaml::parse(text, file, "checks", [&](const YAML::Node &root) { return document(root, file); });
}

std::optional<std::vector<std::string>> matchLayer(llvm::StringRef glob, llvm::StringRef path) {
  std::string pattern = "^";
  for (size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] != '*') {
      pattern += llvm::Regex::escape(glob.substr(i, 1));
    } else if (i + 1 < glob.size() && glob[i + 1] == '*') {
      pattern += "(.*)", ++i;
    } else {
      pattern += "([^.]*)";
    }
  }
  llvm::SmallVector<llvm::StringRef> groups;
  if (!llvm::Regex(pattern + "$").match(path, &groups)) return std::nullopt;
  std::vector<std::string> wildcards;
  for (auto group : llvm::ArrayRef(groups).drop_front()) wildcards.push_back(group.str());
  return wildcards;
}

} // namespace tare
