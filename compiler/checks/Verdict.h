// From evidence to a verdict (spec 3): the rows in the table's order, the three policies, the flags that overrule. In: Evidence and options. Out: verdict,
// basis, code and the line to print. Nothing is measured here and nothing is rewritten. The independent checker (Recheck.h) has its own table.
#pragma once
#include "compiler/checks/Evidence.h"
#include "compiler/graph/Options.h"

namespace tare::checks {

struct Verdict {
  bool pruned = false;
  std::string basis; ///< proved | evidence, empty when rejected
  std::string code;  ///< empty when pruned
  std::string line;  ///< "[PRUNING_REJECTED: CODE] name: what; what to do", empty when pruned
};

/// `needsFinite`: the removal rests on the assumption of finite activations (--strict-nans refuses it then).
Verdict decide(const Evidence &evidence, llvm::StringRef name, const CompileOptions &options, bool needsFinite);

/// True when the verdict can depend on the gradient: nothing before it in the table failed.
bool needsGradient(const Evidence &evidence, const CompileOptions &options);

/// True when --keep names the layer or --only does not.
bool keptByUser(llvm::StringRef name, const CompileOptions &options);

} // namespace tare::checks
