// An initializer that is also a graph input becomes an optional input with its own value, where the source has it; 4-bit ones cannot cross the border.
// RUN: tare-opt %s --graph-expose-overridables | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<3xf32> {graph.default = "weight", graph.default_value = dense<2.000000e+00> : tensor<3xf32>, graph.name = "w"}
// CHECK-SAME: %[[X:.*]]: tensor<3xf32> {graph.name = "x"}
// CHECK-SAME: %[[B:.*]]: tensor<1xf32> {graph.default = "weight", graph.default_value = dense<1.000000e+00> : tensor<1xf32>, graph.name = "b"}
// CHECK-DAG: graph.constant "c" dense<4.000000e+00>
// CHECK-DAG: graph.constant "small" overridable
// CHECK: graph.binary <add> %[[X]], %[[B]]
module attributes {graph.input_order = ["w", "x", "b", "small"]} {
  func.func @main(%x: tensor<3xf32> {graph.name = "x"}) -> (tensor<3xf32> {graph.name = "y"}) {
    %b = graph.constant "b" overridable dense<1.0> : tensor<1xf32> -> tensor<1xf32>
    %c = graph.constant "c" dense<4.0> : tensor<3xf32> -> tensor<3xf32>
    %w = graph.constant "w" overridable dense<2.0> : tensor<3xf32> -> tensor<3xf32>
    %small = graph.constant "small" overridable dense<1> : tensor<2xi4> -> tensor<2xi4>
    %0 = graph.binary <add> %x, %b : tensor<3xf32>, tensor<1xf32> -> tensor<3xf32>
    %1 = graph.binary <mul> %0, %c : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}
