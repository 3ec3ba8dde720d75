// Every pass: summary, before ==> after, options. One pass, one file, one lit test, one name (test/house checks it).
#ifndef TARE_PASSES
#define TARE_PASSES
include "mlir/Pass/PassBase.td"

class TarePass<string arg> : Pass<arg, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tare::graph::GraphDialect"];
}
#endif
