// Every layer that is left gives way to its body, nested ones too.
// RUN: tare-opt %s --graph-inline-layers | FileCheck %s

// CHECK: func.func @main(%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[A:.*]] = graph.unary <relu> %[[X]]
// CHECK-NEXT: %[[B:.*]] = graph.binary <add> %[[X]], %[[A]]
// CHECK-NEXT: %[[C:.*]] = graph.unary <tanh> %[[B]]
// CHECK-NEXT: return %[[C]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.layer "outer" "block" "path"(%x) : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%in: tensor<4xf32>):
    %i = graph.layer "outer.inner" "adapter" "path"(%in) : tensor<4xf32> -> tensor<4xf32> {
    ^bb0(%deep: tensor<4xf32>):
      %r = graph.unary <relu> %deep : tensor<4xf32> -> tensor<4xf32>
      %s = graph.binary <add> %in, %r : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      graph.yield %s : tensor<4xf32>
    }
    %t = graph.unary <tanh> %i : tensor<4xf32> -> tensor<4xf32>
    graph.yield %t : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
