// tare verify --certificate: the engine's certificate against its source. In: an engine and the model it was made from. Out: what was compared; exit 4 with the first
// difference. The derivation is compiler/checks' independent checker.
#pragma once
#include "compiler/graph/Failure.h"
#include <string>

namespace tare::cli {
struct Console;
llvm::Expected<ExitCode> verifyCertificateOf(const std::string &engine, const std::string &model, Console &console);
} // namespace tare::cli
