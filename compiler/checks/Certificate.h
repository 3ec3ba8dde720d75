// The certificate of an engine (spec 3): what was removed or kept and why, with everything that is needed to derive it again. In: a module after
// `checked`. Out: JSON. verifyCertificate() derives all of it from the source with the independent checker (RecheckParts.h); it calls nothing that the
// compile path decides with. Calibration samples are stored inside when they are small, so that the engine and the model are enough.
#pragma once
#include "compiler/graph/Options.h"
#include "compiler/import/Import.h"
#include <nlohmann/json.hpp>

namespace tare::checks {

/// `sourceSha256`: ImportedModel::sha256. Deterministic: equal inputs give equal bytes of dump().
nlohmann::json makeCertificate(mlir::ModuleOp checked, const CompileOptions &options, llvm::StringRef sourceSha256);

/// What the fidelity checks became and on what evidence (spec 6); `module` is as phase `clean` leaves it. Stored as key `fidelity_checks`.
nlohmann::json certifyChecks(mlir::ModuleOp module, const CompileOptions &options);

/// What the engine's plan says about one sparse check.
struct PlannedCheck {
  std::string precision;
  int64_t heads = 0, rank = 0, window = 0;
};
/// The decisions about fidelity checks, derived again. `module`: the source with the certified removals done, as clean ops in front of
/// graph-measure-fidelity-checks (passes/Pipeline.h, bringToChecks). `planned`: in the order of the plan. Fails (exit 4) naming the check.
llvm::Error verifyFidelityChecks(const nlohmann::json &certificate, mlir::ModuleOp module, llvm::ArrayRef<PlannedCheck> planned, const std::string &calibration, unsigned threads);

/// `model`: imported and brought to the phase `marked` with the same rules file. `calibration`: file or folder, needed only when the certificate has no
/// samples inside. Fails (exit 4) naming the first thing that differs: layers, verdicts, bases, codes, counts, hashes, seeds, thresholds exactly,
/// measured values within 1e-6 relative. A certificate that is not well-formed is refused (exit 3).
llvm::Error verifyCertificate(const nlohmann::json &certificate, ImportedModel &model, const std::string &calibration = "");

} // namespace tare::checks
