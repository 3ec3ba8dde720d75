// Arithmetic in f32; storage types only at inputs, constants and outputs; a rounding on purpose stays.
// RUN: tare-opt %s --graph-widen-activations --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[X:.*]] = graph.cast %arg0 : tensor<4xf16> -> tensor<4xf32>
// CHECK-DAG: %[[B:.*]] = graph.constant "b" {{.*}} -> tensor<4xf16>
// CHECK-DAG: %[[W:.*]] = graph.cast %[[B]] : tensor<4xf16> -> tensor<4xf32>
// CHECK: %[[S:.*]] = graph.binary <add> %[[X]], %[[W]] : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK: %[[E:.*]] = graph.unary <exp> %[[S]] : tensor<4xf32> -> tensor<4xf32>
// CHECK: %[[R:.*]] = graph.cast %[[E]] : tensor<4xf32> -> tensor<4xf16>
// CHECK: return %[[R]]
func.func @main(%x: tensor<4xf16>) -> tensor<4xf16> {
  %b = graph.constant "b" dense<1.0> : tensor<4xf16> -> tensor<4xf16>
  %0 = graph.binary <add> %x, %b : tensor<4xf16>, tensor<4xf16> -> tensor<4xf16>
  %1 = graph.cast %0 : tensor<4xf16> -> tensor<4xf32>
  %2 = graph.unary <exp> %1 : tensor<4xf32> -> tensor<4xf32>
  %3 = graph.cast %2 : tensor<4xf32> -> tensor<4xf16>
  return %3 : tensor<4xf16>
}

// -----
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = graph.cast %arg0 : tensor<4xf32> -> tensor<4xf16>
// CHECK: %[[W:.*]] = graph.cast %[[N]] : tensor<4xf16> -> tensor<4xf32>
// CHECK: return %[[W]], %arg1
func.func @main(%x: tensor<4xf32>, %d: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf64>) {
  %0 = graph.cast %x : tensor<4xf32> -> tensor<4xf16>
  %1 = graph.cast %0 : tensor<4xf16> -> tensor<4xf32>
  return %1, %d : tensor<4xf32>, tensor<4xf64>
}
