// JSON from files that nobody vouches for (safetensors headers, config.json, index.json). In: text. Out: a document, or a refusal with the position.
// Holds: valid UTF-8, one value and nothing after it, no key twice, bounded depth and key count; checked before a document is built.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <nlohmann/json.hpp>

namespace tare {

struct JsonLimits {
  unsigned depth = 64;
  uint64_t keys = 1000000; ///< over all objects together
  std::string keysAre = "keys";
};

/// `file` and `what` ("safetensors header", "config.json") go into the error: "malformed JSON in <what> at byte N: ...".
llvm::Expected<nlohmann::json> parseStrictJson(llvm::StringRef text, llvm::StringRef file, llvm::StringRef what, const JsonLimits &limits = {});

} // namespace tare
