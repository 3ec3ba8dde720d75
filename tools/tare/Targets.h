// Which of an engine's codes a command takes, and the comparison of several with one another. In: --target, an engine, cases. Out: the runtime's name of a target;
// text and JSON of a comparison. Holds: what cannot run on this machine is said, never skipped in silence.
#pragma once
#include "compiler/import/TensorFiles.h"
#include "tools/tare/EngineHandle.h"
#include <nlohmann/json.hpp>

namespace tare::cli {

/// `cpu`, `cpu:LEVEL`, `cuda`, `cuda:sm_90`, `cuda:compute_90`, `cuda-emu`; empty stays empty (the runtime's own choice). Exit 2 for anything else.
llvm::Expected<std::string> parseRunTarget(const std::string &text);

/// --device: the number of a GPU, 0 when it is left out. Exit 2 for what is no number, or beside a target that runs on the CPU.
llvm::Expected<int> parseDevice(const std::string &text, const std::string &target);
/// Exit 2 when --device was given and no GPU is used: the engine was opened for the CPU, or, where `all` its targets are run, it has no code for GPUs.
llvm::Error usesDevice(const EngineHandle &engine, const std::string &device, bool all = false);

/// What the code that the engine was opened with computes products in: f32, or tf32, f16 or bf16 of a CUDA target (--tf32, --precision of the compile).
std::string precisionOf(const EngineHandle &engine);

struct TargetComparison {
  std::string text;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  double worst = 0; ///< largest violation rate of any target against the first
};
/// Runs every case on every target that the engine has (`cpu`, `cuda`, `cuda-emu`) and this machine can run, and compares with the first. Nothing when the engine has one target.
llvm::Expected<TargetComparison> compareTargets(const EngineHandle &engine, const std::vector<Sample> &cases);

} // namespace tare::cli
