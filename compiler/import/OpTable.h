// The one table of ONNX operators that Tare imports: a row per op with its versions, arity and importer function. Explicit, no registration.
// A new op is one row here, one function in ops/, one reference in compiler/reference, one emitter (docs/add-an-op.md).
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <limits>
#include <string>

namespace tare {
class NodeImport;

inline constexpr int kOldestOpset = 7, kNewestOpset = 28, kOldestIr = 3, kNewestIr = 14;
inline constexpr unsigned kVariadic = std::numeric_limits<unsigned>::max();

struct OpRow {
  const char *domain, *name;
  /// All since_versions of the op up to kNewestOpset (facts of the ONNX operator specification), ascending.
  llvm::ArrayRef<int> since;
  /// The newest since_version whose semantics the importer function covers.
  int newest;
  unsigned minInputs, maxInputs, maxOutputs;
  void (*import)(NodeImport &);
};

/// All rows, sorted by domain and name.
llvm::ArrayRef<OpRow> opTable();
/// "ai.onnx" is the default domain's other name.
llvm::StringRef normalDomain(llvm::StringRef domain);

struct OpLookup {
  const OpRow *row = nullptr;  ///< null when not supported
  int64_t version = 0;         ///< the since_version that the opset selects, 0 when unknown
  std::string why;             ///< when not supported: the reason, one clause
};
/// The row for an op in a model that imports `opset` of the domain; opset < 0: the domain is not imported.
OpLookup lookUp(llvm::StringRef domain, llvm::StringRef name, int64_t opset);

/// The table as Markdown (docs/ops.md, `tare compile --supported`).
std::string describeOpTable();

} // namespace tare
