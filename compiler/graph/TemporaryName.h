// Names of temporary files and folders: "tare-WHAT-PID", so that an interrupted command finds what it must remove
// (tools/tare/Interrupt). In: what it is for. Out: a prefix for LLVM's unique names.
#pragma once
#include <string>
#include <unistd.h>

namespace tare {

inline std::string temporaryName(const char *what) {
  return std::string("tare-") + what + "-" + std::to_string(::getpid());
}

} // namespace tare
