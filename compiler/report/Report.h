// One model of a report: what was removed, why, on what evidence, what it saves. In: Collect.h fills it from a checked module, or Json.h from a file.
// Out: text, JSON, HTML, JUnit, SARIF (Writers.h). Holds: a value that could not be taken is absent and has a `why`; nothing here depends on time,
// machine or directory. The JSON form is docs/report-schema.json.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tare::report {

inline constexpr int kSchema = 1;

/// A measured number; when it could not be taken, `why` says why not.
struct Measured {
  std::optional<double> value;
  std::string why;
};

/// A count as a formula over the model's symbols, and its value at the report's shape (absent when a symbol has no value there).
struct Count {
  std::string formula;
  std::optional<int64_t> value;
};

struct Tensor {
  std::string name, storage, sha256;
  int64_t elements = 0, nonzero = 0, aboveThreshold = 0;
  double maxAbs = 0;
};

/// Counts over all parameters of a layer (spec 3, check a). `measured` is false when the layer could not be looked at.
struct Weights {
  bool measured = false;
  std::string why;
  int64_t elements = 0, nonzero = 0, aboveThreshold = 0, nonFinite = 0;
  double maxAbs = 0;
  std::string largestTensor;
  std::vector<int64_t> largestIndex;
  double largestValue = 0;
  std::vector<Tensor> tensors;
};

struct Candidate {
  std::string name, role, markedBy;
  std::string verdict;     ///< pruned, rejected, frozen
  std::string basis, code; ///< empty when it has none
  std::string line;        ///< the rejection as printed, empty for a pruned one
  std::optional<bool> proved;
  std::string proofRule; ///< what proves it, or why nothing does
  Weights weights;
  Measured forward, gradientBranch, gradientParameters;
  std::optional<bool> trainable;
  Count savedFlops;
  std::optional<int64_t> savedBytes;
};

/// A form of a fidelity check that was compared with the dense f32 one: agreement of bits in percent, near anchors all heads together, and per head.
struct CheckForm {
  std::string precision;
  double fidelity = 0;
  std::vector<double> window, overall;
};

/// A fidelity check (spec 6).
struct Check {
  std::string name, form, precision, code, why;
  std::optional<int64_t> heads, rank;
  std::optional<double> fidelity;
  std::vector<double> windowAgreement, overallAgreement;
  std::string line = {};              ///< the rejection as printed; empty for a sparse check
  std::string anchors = {};           ///< where those of the measurement came from: file, seeded; empty when nothing was measured
  int64_t evaluated = 0, tokens = 0;  ///< calibration tokens near anchors, and all
  std::vector<CheckForm> tried = {};  ///< in order
};

/// What one thread (registers, bytes of stack and spills) and one block (bytes of static shared memory) of a kernel take on one architecture.
struct CudaResources {
  std::string architecture;
  int64_t registers = 0, sharedBytes = 0, stackBytes = 0, spillStores = 0, spillLoads = 0;
};
/// A kernel of --target cuda:...; `dynamicSharedBytes`: shared memory that a launch asks for. `resources`: per architecture that has a cubin.
struct CudaKernel {
  std::string name, kind;
  int64_t dynamicSharedBytes = 0;
  std::vector<CudaResources> resources;
};
struct Cuda {
  std::string toolkit, precision, why;   ///< why: no resources were reported
  std::vector<std::string> images;       ///< "sm_90" (cubins), "compute_90" (PTX)
  std::vector<CudaKernel> kernels;
};

struct HeatmapRow {
  std::string layer;
  Measured contribution, gradientNorm, flopsShare;
};

/// Estimate of one plan: FLOPs (a multiply-add is 2), and the bytes that a run holds: weights, inputs, outputs, scratch memory at the fullest step.
struct Estimate {
  Count flops, memory;
};
struct LayerEstimate {
  std::string layer;
  Estimate full, pruned;
};

/// One node of the before/after picture: a top-level layer or module in execution order.
struct GraphNode {
  std::string name, role, verdict; ///< verdict is empty for what was no candidate
  int64_t ops = 0;
};

struct Report {
  std::string version;
  std::string modelName, modelSha256, modelFormat;
  int64_t parameters = 0;
  std::string policy, nanMode; ///< nanMode: finite (assumed) or strict
  double weightThreshold = 1e-6, forwardThreshold = 1e-5;
  std::string calibrationSource, calibrationSha256;
  int64_t calibrationSamples = 0, calibrationSeed = 0;
  std::vector<Candidate> candidates, couldBeRemoved;
  std::vector<Check> checks;
  std::map<std::string, int64_t> shape; ///< value of every symbol at which estimates are numbers
  Estimate full, pruned;
  std::vector<LayerEstimate> layers;
  std::vector<HeatmapRow> heatmap;
  std::string heatmapWhy; ///< why there is none
  std::vector<GraphNode> graph;
  std::map<std::string, int64_t> idsBelow; ///< integer inputs that index tables: rows of the smallest table
  std::vector<std::string> targets, warnings;
  std::string precision = "f32";
  std::optional<Cuda> cuda; ///< with --target cuda:...

  /// Pruned layers / candidate layers; 0 when there is none (spec 1).
  double zeroRate() const;
  int64_t count(const std::string &verdict) const;
};

/// "1,234,567" with the same digits in every locale; "12.3 M" and "4.0 MiB" for people; "-" when absent.
std::string grouped(int64_t value);
std::string readableCount(std::optional<int64_t> value);
std::string readableBytes(std::optional<int64_t> value);
/// Shortest text that reads back as the same double, never locale dependent ("1e-06").
std::string shortest(double value);
/// Four significant digits for people.
std::string brief(double value);
/// Agreements per head for people: "100 99.5 100"; "-" when there are none.
std::string percents(const std::vector<double> &values);

} // namespace tare::report
