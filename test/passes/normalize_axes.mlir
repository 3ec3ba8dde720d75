// RUN: tare-opt %s --graph-normalize-axes --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = graph.transpose %arg0 [0, 2, 1]
// CHECK: %[[S:.*]] = graph.softmax %[[T]] 2 : tensor<2x4x3xf32>
// CHECK: graph.transpose %[[S]] [0, 2, 1]
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = graph.softmax %x 1 : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = graph.reshape %arg0 : tensor<2x3x4xf32> -> tensor<2x12xf32>
// CHECK: %[[E:.*]] = graph.expand %arg1 : tensor<4xf32> -> tensor<3x4xf32>
// CHECK: %[[W:.*]] = graph.reshape %[[E]] : tensor<3x4xf32> -> tensor<12xf32>
// CHECK: %[[N:.*]] = graph.layer_norm %[[R]], %[[W]] {axis = 1 : i64
// CHECK: graph.reshape %[[N]] : tensor<2x12xf32> -> tensor<2x3x4xf32>
func.func @main(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = graph.layer_norm %x, %w {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----
// CHECK-LABEL: func.func @main
// CHECK: graph.matmul %{{.*}}, %{{.*}} : tensor<1x3xf32>, tensor<3x1xf32> -> tensor<1x1xf32>
// CHECK: graph.reshape %{{.*}} : tensor<1x1xf32> -> tensor<f32>
func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<f32> {
  %0 = graph.matmul %a, %b : tensor<3xf32>, tensor<3xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
