// The look at all ops before anything is built. In: a loaded model. Out: one Failure that lists every op that cannot be imported.
#pragma once
#include "compiler/import/ExternalData.h"
#include "compiler/import/OnnxModel.h"

namespace tare {

/// Also checks the locations of external tensors inside attributes and subgraphs, wherever they are.
llvm::Error checkSupport(const OnnxModel &model, ExternalData &external);

} // namespace tare
