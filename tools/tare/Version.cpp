// Versions and the op table for `--version` and `--supported`. In: build constants, the importer's table. Out: text.
#include "tools/tare/Version.h"
#include "llvm/Config/llvm-config.h"

namespace tare::cli {

std::string toolVersion() { return TARE_VERSION; }
std::string llvmVersion() { return LLVM_VERSION_STRING; }

std::string versionText(bool json) {
  if (json) return "{\"tare\": \"" + toolVersion() + "\", \"llvm\": \"" + llvmVersion() + "\"}\n";
  return "tare " + toolVersion() + " (LLVM " + llvmVersion() + ")\n";
}

} // namespace tare::cli
