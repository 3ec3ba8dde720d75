// What the readers of our YAML files share: a refusal at a line, and the guard around yaml-cpp, which throws and recurses. In: the text of a file. Out: what the reader
// makes of it, or exit 3 with file, line and the page that describes the file. Holds: no exception leaves parse(); Bad is thrown inside of it only.
#pragma once
#include "compiler/graph/Failure.h"
#include <algorithm>
#include <string>
#include <yaml-cpp/yaml.h>

namespace tare::yaml {

struct Bad {
  YAML::Mark at;
  std::string what;
};
[[noreturn]] inline void bad(const YAML::Node &node, const std::string &what) { throw Bad{node.Mark(), what}; }

inline std::string text(const YAML::Node &node, const std::string &key) {
  if (!node.IsScalar()) bad(node, "'" + key + "' must be a text");
  return node.Scalar();
}

/// `kind`: "rules" or "checks"; docs/KIND.md describes the file. `read` takes the document's root and may throw Bad.
template <typename Read> auto parse(llvm::StringRef text, llvm::StringRef file, const std::string &kind, Read read) -> llvm::Expected<decltype(read(YAML::Node()))> {
  auto refused = [&](const YAML::Mark &at, const std::string &what) {
    std::string line = at.is_null() ? "" : "line " + std::to_string(at.line + 1) + ": ";
    return refuse("the " + kind + " file is not valid: " + line + what).inFile(file.str()).withHint("docs/" + kind + ".md describes the " + kind + " file");
  };
  if (text.size() > (1u << 20)) return refuse("the " + kind + " file is larger than 1 MiB").inFile(file.str());
  // A flow of opening brackets would recurse inside yaml-cpp.
  int depth = 0, deepest = 0;
  for (char c : text) depth += (c == '[' || c == '{') - (c == ']' || c == '}'), deepest = std::max(deepest, depth);
  if (deepest > 64) return refuse("the " + kind + " file nests deeper than 64 levels").inFile(file.str());
  try {
    return read(YAML::Load(text.str()));
  } catch (const Bad &b) {
    return refused(b.at, b.what);
  } catch (const YAML::Exception &e) {
    return refused(e.mark, e.msg);
  }
}

} // namespace tare::yaml
