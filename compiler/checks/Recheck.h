// The independent checker (house rule 2). In: a layer that carries the verdict `pruned`, or a whole marked module. Out: agreement, or what differs. It
// shares no verdict code with the compile path: own search for parameters, own counts, own table of rows and policies; only the IR, the decoder
// and the reference evaluation are common ground.
#pragma once
#include "compiler/graph/Graph.h"
#include "compiler/graph/Options.h"
#include "llvm/Support/Error.h"

namespace tare::checks {

/// Re-derives what can be seen at the layer itself (presence, counts, hashes, and for a proof the identity on random finite inputs) and applies its own
/// table to the numbers in `graph.evidence`. Fails naming the first difference.
llvm::Error recheck(graph::LayerOp layer, const CompileOptions &options);

} // namespace tare::checks
