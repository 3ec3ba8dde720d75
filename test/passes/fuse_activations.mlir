// GELU and SiLU in the spellings of exporters; a constant that is another function's stays.
// RUN: tare-opt %s --graph-fuse-activations --split-input-file | FileCheck %s

// x / sqrt2, 0.5 last.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[G:.*]] = graph.unary <gelu_erf> %arg0
// CHECK-NEXT: return %[[G]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.constant "" dense<1.41421354> : tensor<f32> -> tensor<f32>
  %one = graph.constant "" dense<1.0> : tensor<f32> -> tensor<f32>
  %half = graph.constant "" dense<0.5> : tensor<f32> -> tensor<f32>
  %0 = graph.binary <div> %x, %r : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %1 = graph.unary <erf> %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = graph.binary <add> %1, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %3 = graph.binary <mul> %x, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %4 = graph.binary <mul> %3, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----
// x * 0.7071, (1 + erf), half of x first; constants in f16.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: graph.unary <gelu_erf> %arg0
func.func @main(%x: tensor<4xf16>) -> tensor<4xf16> {
  %r = graph.constant "" dense<0.7070> : tensor<1xf16> -> tensor<1xf16>
  %one = graph.constant "" dense<1.0> : tensor<f16> -> tensor<f16>
  %half = graph.constant "" dense<0.5> : tensor<f16> -> tensor<f16>
  %0 = graph.binary <mul> %r, %x : tensor<1xf16>, tensor<4xf16> -> tensor<4xf16>
  %1 = graph.unary <erf> %0 : tensor<4xf16> -> tensor<4xf16>
  %2 = graph.binary <add> %one, %1 : tensor<f16>, tensor<4xf16> -> tensor<4xf16>
  %3 = graph.binary <mul> %x, %half : tensor<4xf16>, tensor<f16> -> tensor<4xf16>
  %4 = graph.binary <mul> %3, %2 : tensor<4xf16>, tensor<4xf16> -> tensor<4xf16>
  return %4 : tensor<4xf16>
}

// -----
// The tanh form with pow(x, 3).
// CHECK-LABEL: func.func @main
// CHECK-NEXT: graph.unary <gelu_tanh> %arg0
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = graph.constant "" dense<3.0> : tensor<f32> -> tensor<f32>
  %c = graph.constant "" dense<0.044715> : tensor<f32> -> tensor<f32>
  %s = graph.constant "" dense<0.797884583> : tensor<f32> -> tensor<f32>
  %one = graph.constant "" dense<1.0> : tensor<f32> -> tensor<f32>
  %half = graph.constant "" dense<0.5> : tensor<f32> -> tensor<f32>
  %h = graph.binary <mul> %x, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %p = graph.binary <pow> %x, %three : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %q = graph.binary <mul> %p, %c : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %a = graph.binary <add> %x, %q : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %m = graph.binary <mul> %a, %s : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %t = graph.unary <tanh> %m : tensor<4xf32> -> tensor<4xf32>
  %u = graph.binary <add> %t, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %y = graph.binary <mul> %h, %u : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----
// SiLU; the linear part stays when its sigmoid is needed elsewhere too.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = graph.unary <sigmoid> %arg0
// CHECK: %[[Y:.*]] = graph.unary <silu> %arg0
// CHECK: return %[[Y]], %[[S]]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = graph.unary <sigmoid> %x : tensor<4xf32> -> tensor<4xf32>
  %y = graph.binary <mul> %x, %s : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %y, %s : tensor<4xf32>, tensor<4xf32>
}

// -----
// Another constant than sqrt(2): another function.
// CHECK-LABEL: func.func @main
// CHECK-NOT: gelu
// CHECK: graph.unary <erf>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.constant "" dense<1.4141> : tensor<f32> -> tensor<f32>
  %one = graph.constant "" dense<1.0> : tensor<f32> -> tensor<f32>
  %half = graph.constant "" dense<0.5> : tensor<f32> -> tensor<f32>
  %0 = graph.binary <div> %x, %r : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %1 = graph.unary <erf> %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = graph.binary <add> %1, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %3 = graph.binary <mul> %x, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %4 = graph.binary <mul> %3, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  return %4 : tensor<4xf32>
}
