// Every option of a compile in one struct (house rule 5): tools fill it from flags and YAML, the pipeline and the libraries read it, nobody keeps a global.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tare {

/// Phases of a compile in order; `--stop-after` names one (cli.md).
enum class Phase { Imported, Marked, Checked, Pruned, Clean, Fused, Planned, Engine };
enum class Policy { Strict, Inference, Proved };

struct CompileOptions {
  std::string model;                        // .onnx file or Hugging Face folder
  std::string rulesFile;                    // --rules; empty: the default rules only
  Policy policy = Policy::Strict;
  double weightThreshold = 1e-6, forwardThreshold = 1e-5; // spec 3 (a), (b)
  bool strictNans = false;
  std::string calibration;                  // file or folder; empty: seeded random inputs
  uint64_t seed = 0;
  std::string loss;                         // --loss NAME; empty: random cotangents
  int cotangents = 8, samples = 4, sequence = 64, past = 16;
  std::vector<std::string> keep, only;      // globs over candidate names
  std::vector<std::string> disabledPasses;
  bool allowLargeRemoval = false;
  std::string checkPrecision;               // --check-precision: int4, int8, f32, dense; empty: the ladder of spec 6 decides
  int checkWindow = 3;                      // --check-window: tokens before an anchor at which checks are evaluated
  double checkFidelity = 98;                // --check-fidelity: percent of bits near anchors, per head, that a sparse form must keep (spec 6)
  uint64_t foldLimit = uint64_t(1) << 20;   // bytes a folded constant may have beyond what it replaces
  std::vector<std::string> levels = {"x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"};
  std::string precision = "f32";            // --precision f32, f16, bf16; tf32 is --tf32. Of CUDA targets (compiler/codegen/cuda/Kernels.h)
  unsigned threads = 1;                     // of the compiler itself
  bool measureAll = false;                  // run the gradient check and the heatmap although no verdict needs them (check, reports)
  Phase stopAfter = Phase::Engine;
};

} // namespace tare
