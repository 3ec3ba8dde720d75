// The cache of engines by key (--cache-dir). In: a key (CacheKey.cpp). Out: an engine found there, or a new one kept. Holds: a cached engine is verified before it is
// used; a broken or unusable cache never fails a compile, it only says so.
#pragma once
#include "tools/tare/Driver.h"
#include <optional>

namespace tare::cli {

/// The file of a usable cached engine; nothing with --emit-onnx, --verify, --sign, --stop-after, check, or no --cache-dir.
std::optional<std::string> cached(const CompileRequest &request, const std::string &key);
/// Copies the cached engine to the output and writes the other outputs from its report.
llvm::Expected<ExitCode> reuse(const CompileRequest &request, const std::string &engine, const std::vector<std::string> &filesRead, Console &console);
/// Puts the engine just written into the cache.
void keep(const CompileRequest &request, const std::string &key, Console &console);

} // namespace tare::cli
