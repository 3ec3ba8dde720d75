// Finds the first module of the source whose output the compiled code gets wrong (spec 12). In: the source, the inputs of a failing case. Out: the module's
// name, or why it cannot be told. Holds: compiles a second engine with the borders between modules as outputs; the engine under test is not touched.
#pragma once
#include "compiler/graph/Options.h"
#include "compiler/import/Npz.h"
#include "llvm/Support/Error.h"

namespace tare::cli {

struct Divergence {
  std::string text; ///< a sentence
  std::string node; ///< of the source, or empty when no module diverges
};
llvm::Expected<Divergence> firstDivergence(const CompileOptions &options, const ArrayMap &inputs);

} // namespace tare::cli
