// What the writer and the verifier of a certificate share: data formats only.
// In: a module. Out: the hash over the name, type and bytes of every constant, in the order of the module.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace tare::checks {
/// Calibration samples of up to this many values travel inside the certificate.
inline constexpr size_t kStoredValues = 1 << 18;
std::string hashOfConstants(mlir::ModuleOp module);
} // namespace tare::checks
