// graph-check-layers for a caller who shows progress.
#pragma once
#include "passes/Passes.h"
#include <functional>

namespace tare {

/// `working` is told which layer is being measured, from any thread; empty: nobody wants to know.
std::unique_ptr<mlir::Pass> createCheckLayersPass(CheckLayersPassOptions options,
                                                  std::function<void(const std::string &)> working);

} // namespace tare
