// Steps that need no barrier in front of them. On a plan.dispatch, the unit attribute `joined` says: it neither reads
// nor overwrites what the steps since the last one without `joined` write or read, so threads go on to it when they
// have done their part of those; all buffers of such a run of steps live through all of it.
#pragma once
#include "llvm/ADT/StringRef.h"

namespace tare::plan {

inline constexpr llvm::StringLiteral kJoinedAttr = "joined";

} // namespace tare::plan
