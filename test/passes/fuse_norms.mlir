// LayerNorm and RMSNorm in the spellings of exporters; a mean over other dims stays.
// RUN: tare-opt %s --graph-fuse-norms --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = graph.layer_norm %arg0, %arg1, %arg2 {axis = 1 : i64, epsilon = {{9.99.*E-6}} : f64}
// CHECK-NEXT: return %[[N]]
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %two = graph.constant "" dense<2.0> : tensor<f32> -> tensor<f32>
  %eps = graph.constant "" dense<1.0e-05> : tensor<f32> -> tensor<f32>
  %m = graph.reduce <mean> %x [1] keepdims true : tensor<2x8xf32> -> tensor<2x1xf32>
  %d = graph.binary <sub> %x, %m : tensor<2x8xf32>, tensor<2x1xf32> -> tensor<2x8xf32>
  %s = graph.binary <pow> %d, %two : tensor<2x8xf32>, tensor<f32> -> tensor<2x8xf32>
  %v = graph.reduce <mean> %s [1] keepdims true : tensor<2x8xf32> -> tensor<2x1xf32>
  %e = graph.binary <add> %v, %eps : tensor<2x1xf32>, tensor<f32> -> tensor<2x1xf32>
  %r = graph.unary <sqrt> %e : tensor<2x1xf32> -> tensor<2x1xf32>
  %n = graph.binary <div> %d, %r : tensor<2x8xf32>, tensor<2x1xf32> -> tensor<2x8xf32>
  %g = graph.binary <mul> %n, %w : tensor<2x8xf32>, tensor<8xf32> -> tensor<2x8xf32>
  %y = graph.binary <add> %g, %b : tensor<2x8xf32>, tensor<8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----
// RMSNorm as 1 / sqrt, the weight on the left.
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = graph.rms_norm %arg0, %arg1 {axis = 1 : i64
// CHECK-NEXT: return %[[N]]
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8xf32>) -> tensor<2x8xf32> {
  %one = graph.constant "" dense<1.0> : tensor<f32> -> tensor<f32>
  %eps = graph.constant "" dense<1.0e-06> : tensor<f32> -> tensor<f32>
  %s = graph.binary <mul> %x, %x : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  %v = graph.reduce <mean> %s [1] keepdims true : tensor<2x8xf32> -> tensor<2x1xf32>
  %e = graph.binary <add> %v, %eps : tensor<2x1xf32>, tensor<f32> -> tensor<2x1xf32>
  %r = graph.unary <sqrt> %e : tensor<2x1xf32> -> tensor<2x1xf32>
  %i = graph.binary <div> %one, %r : tensor<f32>, tensor<2x1xf32> -> tensor<2x1xf32>
  %n = graph.binary <mul> %x, %i : tensor<2x8xf32>, tensor<2x1xf32> -> tensor<2x8xf32>
  %y = graph.binary <mul> %w, %n : tensor<8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----
// Without a scale; as sqrt and reciprocal.
// CHECK-LABEL: func.func @main
// CHECK: %[[ONE:.*]] = graph.constant "" dense<1.000000e+00> : tensor<8xf32>
// CHECK: graph.rms_norm %arg0, %[[ONE]]
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %eps = graph.constant "" dense<1.0e-06> : tensor<f32> -> tensor<f32>
  %s = graph.binary <mul> %x, %x : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  %v = graph.reduce <mean> %s [1] keepdims true : tensor<2x8xf32> -> tensor<2x1xf32>
  %e = graph.binary <add> %eps, %v : tensor<f32>, tensor<2x1xf32> -> tensor<2x1xf32>
  %r = graph.unary <sqrt> %e : tensor<2x1xf32> -> tensor<2x1xf32>
  %i = graph.unary <reciprocal> %r : tensor<2x1xf32> -> tensor<2x1xf32>
  %n = graph.binary <mul> %i, %x : tensor<2x1xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  return %n : tensor<2x8xf32>
}

// -----
// The mean runs over the first dim: no row norm.
// CHECK-LABEL: func.func @main
// CHECK-NOT: norm
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %eps = graph.constant "" dense<1.0e-06> : tensor<f32> -> tensor<f32>
  %s = graph.binary <mul> %x, %x : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  %v = graph.reduce <mean> %s [0] keepdims true : tensor<2x8xf32> -> tensor<1x8xf32>
  %e = graph.binary <add> %v, %eps : tensor<1x8xf32>, tensor<f32> -> tensor<1x8xf32>
  %r = graph.unary <sqrt> %e : tensor<1x8xf32> -> tensor<1x8xf32>
  %n = graph.binary <div> %x, %r : tensor<2x8xf32>, tensor<1x8xf32> -> tensor<2x8xf32>
  return %n : tensor<2x8xf32>
}
