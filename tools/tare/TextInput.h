// A text as the inputs of a byte-level model (`tare run --text`; spec 6, 7). In: a file, an engine. Out: ids [1, tokens] and, where the engine takes them, the
// anchors that the scanner finds, as token positions [1, A].
#pragma once
#include "tools/tare/EngineHandle.h"

namespace tare::cli {

/// A byte-level model has one required input, ids of [batch, sequence], and a table of 256 to 511 rows: token = byte; with more than 256 rows token 256 comes first.
/// An anchor's position is the token of its first byte. Anything else is refused with what the engine has.
llvm::Expected<ArrayMap> textInputs(const EngineHandle &engine, const std::string &path);

} // namespace tare::cli
