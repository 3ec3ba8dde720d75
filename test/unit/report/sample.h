// A small report for the tests of the writers, with names that a hostile model would have. Out: a Report. Holds: every optional part is there once and absent once.
#pragma once
#include "compiler/report/Report.h"

inline constexpr const char *kHostile = "a<script>alert(1)</script>&\"'\x1b[31m\nb";

inline tare::report::Report sampleReport() {
  using namespace tare::report;
  Report r;
  r.version = "0.1.0", r.modelName = "model.onnx", r.modelSha256 = std::string(64, 'a'), r.modelFormat = "onnx", r.parameters = 3370441;
  r.policy = "strict", r.nanMode = "finite", r.calibrationSource = "file", r.calibrationSha256 = std::string(64, 'b'), r.calibrationSamples = 4;
  r.targets = {"cpu:x86-64-v3"};
  Candidate pruned{"layers.1.pos_enc", "position_encoding_enhancer", "path", "pruned", "proved", "", "", true, "zero product", {}, {0.0, ""}, {0.0, ""}, {0.0, ""}, false, {"batch*sequence*2", 256}, 409600};
  pruned.weights.measured = true, pruned.weights.elements = 204800;
  pruned.weights.tensors = {{"fc1.weight", "f32", std::string(64, 'c'), 81920, 0, 0, 0}};
  Candidate rejected = pruned;
  rejected.name = kHostile, rejected.verdict = "rejected", rejected.basis = "", rejected.code = "WEIGHT_NOISE_DETECTED", rejected.line = std::string("[PRUNING_REJECTED: WEIGHT_NOISE_DETECTED] ") + kHostile;
  rejected.weights.nonzero = 3, rejected.weights.maxAbs = 1.1920928955078125e-07, rejected.weights.largestTensor = "fc1.weight", rejected.weights.largestIndex = {3, 100}, rejected.weights.largestValue = -1.1920928955078125e-07;
  rejected.gradientParameters = {std::nullopt, "no VJP for graph.unary"}, rejected.trainable.reset();
  Candidate unformed;
  unformed.name = "odd", unformed.role = "adapter", unformed.markedBy = "metadata", unformed.verdict = "rejected", unformed.code = "NOT_ONE_OUTPUT", unformed.line = "[PRUNING_REJECTED: NOT_ONE_OUTPUT] odd";
  unformed.weights.why = unformed.forward.why = unformed.gradientBranch.why = unformed.gradientParameters.why = "two outputs";
  r.candidates = {pruned, rejected, unformed};
  r.checks = {{"layers.2.check", "dense", "f32", "", "dense form", 3, 64, {}, {}, {}}};
  Check sparse{"layers.4.check", "sparse", "int8", "", "", 3, 64, 100.0, {100, 100, 100}, {99.5, 100, 97.25}};
  sparse.anchors = "seeded", sparse.evaluated = 22, sparse.tokens = 804;
  sparse.tried = {{"int4", 97, {91, 100, 100}, {90, 100, 100}}, {"int8", 100, {100, 100, 100}, {99.5, 100, 97.25}}};
  Check kept{"layers.6.check", "dense", "f32", "FIDELITY_BELOW_THRESHOLD", kHostile, 3, 64, 50.0, {50, 50, 50}, {60, 60, 60}};
  kept.line = std::string("[SPARSIFY_REJECTED: FIDELITY_BELOW_THRESHOLD] layers.6.check: ") + kHostile;
  r.checks.push_back(sparse), r.checks.push_back(kept);
  r.shape = {{"batch", 1}, {"sequence", 128}};
  r.full = {{"batch*sequence*1000", 128000}, {"batch*sequence*10", 1280}}, r.pruned = {{"batch*sequence*900", 115200}, {"batch*sequence*9", 1152}};
  r.layers = {{"layers.1", r.full, r.pruned}};
  r.heatmap = {{"layers.0", {0.41, ""}, {1.2, ""}, {0.07, ""}}, {"layers.1", {std::nullopt, "not finite"}, {0.0, ""}, {0.0, ""}}};
  r.graph = {{"layers.1.pos_enc", "position_encoding_enhancer", "pruned", 12}, {"layers.1", "", "", 40}};
  r.idsBelow = {{"input_ids", 260}};
  r.cuda = {"NVRTC 13.0", "f32", "", {"sm_80", "compute_80"}, {{kHostile, "gemm", 18432, {{"sm_80", 128, 16, 8, 4, 12}}}, {"row_f32", "row", 0, {}}}};
  r.warnings = {"a declared shape differs"};
  return r;
}
