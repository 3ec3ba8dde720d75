// The YAML of `tare attach-checks` (docs/checks.md has the schema): which layers get a fidelity check, and where its tensors lie. In: text. Out: entries, or
// a refusal with file and line. Holds: unknown keys, wrong kinds and bad patterns are refused; nothing of the model is looked at here.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tare {

/// W [K,R,D], p [K,R], tau [K], E [K,F], in this order everywhere.
inline constexpr std::array<llvm::StringLiteral, 4> kCheckTensors = {"W", "p", "tau", "E"};

struct CheckEntry {
  int line = 0;                       ///< of the entry, from 1
  std::string layer;                  ///< glob over module paths of linear layers; `*` stays inside one segment, `**` does not
  std::string name;                   ///< "{1}" is what the first `*` stood for, "{path}" the whole path
  std::string weights;                ///< .npz or .safetensors, resolved against the folder of the YAML
  std::optional<int64_t> heads, rank; ///< what the tensors must have, when said
  std::array<std::string, 4> tensors; ///< names with the same holes, "{name}" included
};

/// `file`: the path of the YAML, for messages and for relative weight files.
llvm::Expected<std::vector<CheckEntry>> parseChecksFile(llvm::StringRef text, llvm::StringRef file);

/// What the wildcards of a layer's glob stand for in `path`; nothing when it does not match.
std::optional<std::vector<std::string>> matchLayer(llvm::StringRef glob, llvm::StringRef path);

} // namespace tare
