// tare verify --certificate: the engine's certificate against its source. In: an engine and the model it was made from. Out: what was compared; exit 4 with the first
// difference. The derivation is compiler/checks' independent checker.
#pragma once
#include "compiler/graph/Failure.h"
#include <string>

namespace tare::cli {
struct Console;
struct CertificateRequest {
  std::string engine, model, rules, calibration; ///< the last two as the compile had them; calibration only when the certificate has no samples inside
  std::string publicKey;                      ///< a key file: the engine must be signed with it
  bool paranoid = false;
};
llvm::Expected<ExitCode> verifyCertificateOf(const CertificateRequest &request, Console &console);
} // namespace tare::cli
