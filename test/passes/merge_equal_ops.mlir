// Equal ops merge whatever their source names; different properties, types or constants stay apart.
// RUN: tare-opt %s --graph-merge-equal-ops | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = graph.unary <cos> %arg0
// CHECK-NOT: graph.unary <cos>
// CHECK: %[[S:.*]] = graph.unary <sin> %arg0
// CHECK: %[[A:.*]] = graph.binary <add> %[[C]], %[[S]]
// CHECK-NOT: graph.binary <add>
// CHECK: return %[[A]], %[[A]]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.unary <cos> %x {graph.node = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  %1 = graph.unary <cos> %x {graph.node = 2 : i64, graph.scope = "layers.1"} : tensor<4xf32> -> tensor<4xf32>
  %2 = graph.unary <sin> %x : tensor<4xf32> -> tensor<4xf32>
  %3 = graph.unary <sin> %x {graph.node = 3 : i64} : tensor<4xf32> -> tensor<4xf32>
  %4 = graph.binary <add> %0, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %5 = graph.binary <add> %1, %3 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %4, %5 : tensor<4xf32>, tensor<4xf32>
}
