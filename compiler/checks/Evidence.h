// What the checks found out about one layer, as a struct, and as the attributes that travel in the IR (docs/architecture.md, "Evidence").
// In: measurements. Out: `graph.evidence` dictionaries and back. Nothing here decides anything.
#pragma once
#include "mlir/IR/BuiltinAttributes.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tare::checks {

/// One parameter of a layer. Counts are over the decoded values; `storage` is the type on disk ("f16"), `name` the initializer's own name without
/// the layer's prefix. `maxAbs` and `largest*` are over finite elements, the first in row-major order of equal ones.
struct TensorEvidence {
  std::string name, storage, sha256;
  bool present = true, overridable = false, halfPrecision = false;
  int64_t elements = 0, nonzero = 0, aboveThreshold = 0, nonFinite = 0;
  double maxAbs = 0, largestValue = 0;
  std::vector<int64_t> largestIndex, nonFiniteIndex;
};

struct Evidence {
  std::vector<TensorEvidence> tensors;
  /// Norms; absent when they were not measured or are not finite, and then the why says so.
  std::optional<double> forward, branch, parameters;
  std::string forwardWhy, gradientWhy;
  bool proved = false;
  bool needsFinite = true; ///< the removal rests on the assumption of finite activations
  std::string proofRule; ///< what proves it, or why nothing does
  std::string line;      ///< the rejection line; empty when pruned

  int64_t elements() const, nonzero() const, aboveThreshold() const, nonFinite() const;
  double maxAbs() const;
  /// The tensor with the largest element, the first of equal ones; null when there is none.
  const TensorEvidence *largest() const;
};

mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context, const Evidence &evidence);
/// The inverse, as far as verdicts need it (presence and overridability are not in the attribute: they are read from the IR).
Evidence fromAttribute(mlir::DictionaryAttr attribute);

} // namespace tare::checks
