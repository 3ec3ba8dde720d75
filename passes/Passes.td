// Every pass: summary, before ==> after, options. One pass, one file, one lit test, one name (test/house checks it).
// The order in which they run is passes/Pipeline.cpp. docs/passes.md is made from this file.
#ifndef TARE_PASSES
#define TARE_PASSES
include "mlir/Pass/PassBase.td"

class TarePass<string arg> : Pass<arg, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tare::graph::GraphDialect"];
}

// ---- fused ---------------------------------------------------------------------------------------------------------------------------
def FormGroupsPass : TarePass<"graph-form-groups"> {
  let summary = "Cuts main into fusion groups, each of which becomes one kernel";
  let description = [{
    Before: any clean ops. After: only `graph.constant`, `graph.group`, `graph.reshape` (a view) and `func.return` in the body of `main`; what a group
    of each kind may hold is written in docs/architecture.md ("Fusion groups"). A value that `main` returns is the result of a group, and no two
    results of `main` are the same value: copies are made where they would be.
    ```
    %0 = graph.unary <relu> %x : tensor<4xf32> -> tensor<4xf32>
    ==>
    %0 = graph.group <pointwise>(%x) : (tensor<4xf32>) -> tensor<4xf32> { ^bb0(%a: tensor<4xf32>): %1 = graph.unary <relu> %a ... graph.yield %1 : tensor<4xf32> }
    ```
  }];
}
#endif
