// Inputs for bench and verify: shapes from --shape, everything else derived. In: an engine, named shapes, a seed. Out: arrays: ids random below the vocabulary,
// masks 1, token types 0, positions counting up, floats normal. Holds: the same seed gives the same arrays everywhere.
#pragma once
#include "tools/tare/EngineHandle.h"
#include "tools/tare/Numbers.h"

namespace tare::cli {

/// Inputs that were not named get their shape from the symbols that the named ones bind ("past" is 0 when nobody says); optional inputs that were not named are
/// left out. With `defaults`, symbols that nobody binds are 1 (batch), 16 (past) or 64. Exit 2 when a shape does not fit the engine or a required input's shape is not decided.
llvm::Expected<ArrayMap> randomInputs(const EngineHandle &engine, const std::vector<NamedShape> &shapes, uint64_t seed, bool defaults = false);

} // namespace tare::cli
