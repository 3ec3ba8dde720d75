// RUN: tare-opt %s --graph-remove-dead-ops | FileCheck %s

// CHECK-NOT: @helper
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0
func.func private @helper() { return }
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.unary <relu> %x : tensor<4xf32> -> tensor<4xf32>
  %1 = graph.unary <exp> %0 : tensor<4xf32> -> tensor<4xf32>
  return %x : tensor<4xf32>
}
