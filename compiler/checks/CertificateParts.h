// What the writer and the verifier of a certificate share: data formats only.
// In: a module, a certificate. Out: the hash over the name, type and bytes of every constant, in the order of the module; the samples to measure on.
#pragma once
#include "compiler/checks/Calibration.h"
#include "mlir/IR/BuiltinOps.h"
#include <nlohmann/json.hpp>
#include <string>

namespace tare::checks {
/// Calibration samples of up to this many values travel inside the certificate.
inline constexpr size_t kStoredValues = 1 << 18;
std::string hashOfConstants(mlir::ModuleOp module);
/// The calibration that the certificate speaks of: stored inside, or read from `path`, or random by its seed. Exit 4 when the file is another one; what is
/// not well-formed is thrown (std::exception) and caught by the two verifiers.
llvm::Expected<Calibration> calibrationOf(const nlohmann::json &certificate, mlir::func::FuncOp main, const std::string &path);
} // namespace tare::checks
