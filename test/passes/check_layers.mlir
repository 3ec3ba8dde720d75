// Verdicts and evidence under the three policies: a dead layer, one whose output bias could still train, a live one, one without a proof.
// RUN: tare-opt %s --graph-check-layers="samples=1 measure-all" | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: tare-opt %s --graph-check-layers="samples=1 policy=inference" | FileCheck %s --check-prefixes=CHECK,INFERENCE
// RUN: tare-opt %s --graph-check-layers="samples=1 policy=proved keep=dead" | FileCheck %s --check-prefixes=CHECK,PROVED
// RUN: not tare-opt %s --graph-check-layers="policy=generous" 2>&1 | FileCheck %s --check-prefix=POLICY
// POLICY: unknown policy 'generous'

// CHECK: module attributes {graph.calibration = {samples = 1 : i64, seed = 0 : i64, sha256 = "", source = "random"}
// STRICT-SAME: graph.heatmap
// INFERENCE-NOT: graph.heatmap
module {
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %zero = graph.constant "zero" dense<0.0> : tensor<4x4xf32> -> tensor<4x4xf32>
    %bias = graph.constant "bias" dense<0.0> : tensor<4xf32> -> tensor<4xf32>
    %one = graph.constant "live" dense<1.0> : tensor<4x4xf32> -> tensor<4x4xf32>
    %tiny = graph.constant "tiny" dense<1.0e-9> : tensor<4x4xf32> -> tensor<4x4xf32>
    // STRICT: graph.layer "dead" {{.*}} verdict <"pruned", "proved", "">
    // INFERENCE: graph.layer "dead" {{.*}} verdict <"pruned", "proved", "">
    // PROVED: graph.layer "dead" {{.*}} verdict <"rejected", "", "KEPT_BY_USER">
    %a = graph.layer "dead" "adapter" "path"(%x) : tensor<2x4xf32> -> tensor<2x4xf32> {
    ^bb0(%in: tensor<2x4xf32>):
      %h = graph.matmul %in, %zero : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
      %t = graph.unary <tanh> %h : tensor<2x4xf32> -> tensor<2x4xf32>
      %m = graph.matmul %t, %zero : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
      %y = graph.binary <add> %in, %m : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
      graph.yield %y : tensor<2x4xf32>
    }
    // CHECK-SAME: above_threshold = 0 : i64
    // CHECK-SAME: elements = 16 : i64
    // CHECK-SAME: forward_l2 = 0.0
    // A bias at the output always receives gradient (bugs.md, first facts, 1).
    // STRICT: graph.layer "biased" {{.*}} verdict <"rejected", "", "GRADIENT_NONZERO">
    // STRICT-SAME: gradient_branch = 0.0
    // STRICT-SAME: trainable = true
    // INFERENCE: graph.layer "biased" {{.*}} verdict <"pruned", "proved", "">
    // PROVED: graph.layer "biased" {{.*}} verdict <"pruned", "proved", "">
    %b = graph.layer "biased" "adapter" "path"(%a) : tensor<2x4xf32> -> tensor<2x4xf32> {
    ^bb0(%in: tensor<2x4xf32>):
      %m = graph.matmul %in, %zero : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
      %s = graph.binary <add> %m, %bias : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
      %y = graph.binary <add> %s, %in : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
      graph.yield %y : tensor<2x4xf32>
    }
    // STRICT: graph.layer "live" {{.*}} verdict <"rejected", "", "WEIGHT_ABOVE_THRESHOLD">
    // STRICT-SAME: line = "[PRUNING_REJECTED: WEIGHT_ABOVE_THRESHOLD] live: 16 of 16 elements of live (f32) are not below 1e-06, largest 1 at [0,0]
    // INFERENCE: graph.layer "live" {{.*}} verdict <"rejected", "", "WEIGHT_ABOVE_THRESHOLD">
    // INFERENCE-SAME: gradient_why = "left out
    // PROVED: graph.layer "live" {{.*}} verdict <"rejected", "", "NOT_PROVED">
    %c = graph.layer "live" "adapter" "path"(%b) : tensor<2x4xf32> -> tensor<2x4xf32> {
    ^bb0(%in: tensor<2x4xf32>):
      %m = graph.matmul %in, %one : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
      %y = graph.binary <add> %in, %m : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
      graph.yield %y : tensor<2x4xf32>
    }
    // Small weights whose branch still passes gradient.
    // STRICT: graph.layer "tiny" {{.*}} verdict <"rejected", "", "GRADIENT_NONZERO">
    // INFERENCE: graph.layer "tiny" {{.*}} verdict <"rejected", "", "GRADIENT_NONZERO">
    // PROVED: graph.layer "tiny" {{.*}} verdict <"rejected", "", "NOT_PROVED">
    %d = graph.layer "tiny" "adapter" "path"(%c) : tensor<2x4xf32> -> tensor<2x4xf32> {
    ^bb0(%in: tensor<2x4xf32>):
      %m = graph.matmul %in, %tiny : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
      %y = graph.binary <add> %in, %m : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
      graph.yield %y : tensor<2x4xf32>
    }
    return %d : tensor<2x4xf32>
  }
}
