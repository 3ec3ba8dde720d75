// Pruned layers go, kept ones stay, and a verdict that the independent checker does not share erases nothing.
// RUN: tare-opt %s --split-input-file --graph-check-layers="samples=1" --graph-short-circuit-layers="allow-large-removal" | FileCheck %s
// RUN: tare-opt %s --split-input-file --graph-check-layers="samples=1" 2>/dev/null | sed 's/"rejected", "", "WEIGHT_ABOVE_THRESHOLD"/"pruned", "proved", ""/' | not tare-opt --split-input-file --graph-short-circuit-layers="allow-large-removal" 2>&1 | FileCheck %s --check-prefix=FORGED
// RUN: not tare-opt %s --split-input-file --graph-check-layers="samples=1" --graph-short-circuit-layers 2>&1 | FileCheck %s --check-prefix=LARGE

// FORGED: the independent checker does not agree that live may be removed: its own table says WEIGHT_ABOVE_THRESHOLD
// LARGE: the removals would take 16 of 16 parameters
// LARGE: --allow-large-removal

// CHECK: graph.removed = [{input_name = "x", name = "dead", output_name = "y"}]
// CHECK: func.func @main(%[[X:.*]]: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK-NOT: graph.layer
// CHECK: %[[Z:.*]] = graph.unary <relu> %[[X]]
// CHECK: return %[[X]], %[[Z]]
func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %zero = graph.constant "zero" dense<0.0> : tensor<4x4xf32> -> tensor<4x4xf32>
  %y = graph.layer "dead" "adapter" "path"(%x) attributes {input_name = "x", output_name = "y"} : tensor<2x4xf32> -> tensor<2x4xf32> {
  ^bb0(%in: tensor<2x4xf32>):
    %h = graph.matmul %in, %zero : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %m = graph.matmul %h, %zero : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %s = graph.binary <add> %in, %m : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    graph.yield %s : tensor<2x4xf32>
  }
  %z = graph.unary <relu> %y : tensor<2x4xf32> -> tensor<2x4xf32>
  return %y, %z : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// CHECK: func.func @main
// CHECK: graph.layer "live" {{.*}} verdict <"rejected", "", "WEIGHT_ABOVE_THRESHOLD">
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %one = graph.constant "one" dense<1.0> : tensor<4x4xf32> -> tensor<4x4xf32>
  %y = graph.layer "live" "adapter" "path"(%x) : tensor<2x4xf32> -> tensor<2x4xf32> {
  ^bb0(%in: tensor<2x4xf32>):
    %m = graph.matmul %in, %one : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %s = graph.binary <add> %in, %m : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    graph.yield %s : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}
