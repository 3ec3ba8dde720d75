// The form of each check, with its evidence: int4 where thresholds are far, what is forced, and what cannot be sparse. That every step of the ladder
// happens is tested in test/unit/checks/CheckLadderTest.cpp.
// RUN: tare-opt %s --graph-measure-fidelity-checks="samples=1" | FileCheck %s --check-prefixes=CHECK,LADDER
// RUN: tare-opt %s --graph-measure-fidelity-checks="samples=1 precision=f32" | FileCheck %s --check-prefixes=CHECK,F32
// RUN: tare-opt %s --graph-measure-fidelity-checks="samples=1 precision=dense" | FileCheck %s --check-prefix=DENSE
// RUN: not tare-opt %s --graph-measure-fidelity-checks="precision=int3" 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not tare-opt %s --graph-measure-fidelity-checks="fidelity=101" 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: unknown precision '{{.*}}' or a fidelity outside of 0 to 100

// CHECK-LABEL: func.func @main
func.func @main(%h: tensor<1x70x4xf32> {graph.name = "h"}, %late: tensor<2x3x4xf32> {graph.name = "w"}) -> (tensor<1x70x5xf32>, tensor<1x70x5xf32>) {
  %w = graph.constant "w" dense<0.5> : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %p = graph.constant "p" dense<0.25> : tensor<2x3xf32> -> tensor<2x3xf32>
  %tau = graph.constant "tau" dense<[100.0, 0.0]> : tensor<2xf32> -> tensor<2xf32>
  %e = graph.constant "e" dense<1.0> : tensor<2x5xf32> -> tensor<2x5xf32>
  // LADDER: %[[Q:.*]] = graph.constant "far.W.quantized" {{.*}} -> tensor<2x3x4xi8>
  // LADDER: %[[S:.*]] = graph.constant "far.W.scale" {{.*}} -> tensor<2x3x1xf32>
  // LADDER: graph.fidelity_check {{.*}} as %[[Q]], %[[S]]
  // LADDER-SAME: graph.check_evidence = {anchors = "seeded", code = "", evaluated = {{[4-7]}} : i64, line = "", output_difference = 0.{{.*}}, tokens = 70 : i64
  // LADDER-SAME: tried = [{fidelity = 1.000000e+02 : f64, overall = array<f64: 1.000000e+02, 1.000000e+02>, precision = "int4", window = array<f64: 1.000000e+02, 1.000000e+02>}]
  // LADDER-SAME: group = 32 : i64, precision = "int4"
  // F32-NOT: quantized
  // F32: tried = [{{.*}}precision = "f32"{{.*}}why = "forced by --check-precision f32: the fidelity gates nothing"
  // DENSE-NOT: quantized
  // DENSE: tried = [], why = "forced by --check-precision dense"
  // DENSE-SAME: precision = "dense"
  %a = graph.fidelity_check %h, %w, %p, %tau, %e {graph.check = "far"} : (tensor<1x70x4xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2x5xf32>) -> tensor<1x70x5xf32>
  // CHECK: graph.fidelity_check
  // CHECK-SAME: code = "CHECK_NOT_FUSABLE"
  // CHECK-SAME: tried = [], why = "its weights are not constants of the file"
  // CHECK-SAME: precision = "dense"
  %b = graph.fidelity_check %h, %late, %p, %tau, %e {graph.check = "input"} : (tensor<1x70x4xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2x5xf32>) -> tensor<1x70x5xf32>
  %m = graph.constant "up" dense<0.5> : tensor<4x5xf32> -> tensor<4x5xf32>
  %u = graph.matmul %h, %m : tensor<1x70x4xf32>, tensor<4x5xf32> -> tensor<1x70x5xf32>
  %s = graph.binary <add> %u, %a : tensor<1x70x5xf32>, tensor<1x70x5xf32> -> tensor<1x70x5xf32>
  return %s, %b : tensor<1x70x5xf32>, tensor<1x70x5xf32>
}
