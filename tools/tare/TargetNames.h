// What somebody meant who wrote a target's name wrongly. In: a word of --target. Out: a hint for the error. Holds: what is suggested is accepted.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tare::cli {

/// For an architecture that is not known to a compile ("sm90", "90", "sm_75", "sm_90a"): what to write instead and why; empty when nothing is near.
std::string architectureHint(llvm::StringRef word);
/// For a word that begins no target ("CUDA:sm_90", "cuda-emulator", "gpu", "sm_90", "x86-64-v3"): the target that is meant; empty when nothing is near.
std::string meantTarget(llvm::StringRef word);

} // namespace tare::cli
