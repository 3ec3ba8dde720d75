// What `--version` and `--supported` print. In: nothing, or whether JSON is asked for. Out: text for stdout.
#pragma once
#include <string>

namespace tare::cli {

/// "tare 0.1.0 (LLVM 19.1.7)".
std::string versionText(bool json);
/// The op table: domain, op, versions, what is there for each.
std::string supportedText(bool json);
std::string toolVersion();
std::string llvmVersion();

} // namespace tare::cli
