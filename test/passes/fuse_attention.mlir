// Attention in the spellings of exporters: scale after or split over q and k, bias, IsNaN guard, repeated heads; layouts absorb transposes.
// RUN: tare-opt %s --graph-fuse-attention --split-input-file | FileCheck %s

!sbhd = tensor<?x?x4x8xf32, #graph.dims<["b", "s", 4, 8]>>
!bhsd = tensor<?x4x?x8xf32, #graph.dims<["b", 4, "s", 8]>>
!bhds = tensor<?x4x8x?xf32, #graph.dims<["b", 4, 8, "s"]>>
!scores = tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>
!mask = tensor<?x?xf32, #graph.dims<["s", "s"]>>
// q, k, v and the result in [B,S,H,D]; scale as division; the mask on the left.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[A:.*]] = graph.attention %arg0, %arg1, %arg2, %arg3 {layout = "ssss", scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[A]]
func.func @main(%q: !sbhd, %k: !sbhd, %v: !sbhd, %m: !mask) -> !sbhd {
  %four = graph.constant "" dense<4.0> : tensor<f32> -> tensor<f32>
  %0 = graph.transpose %q [0, 2, 1, 3] : !sbhd -> !bhsd
  %1 = graph.transpose %k [0, 2, 3, 1] : !sbhd -> !bhds
  %2 = graph.transpose %v [0, 2, 1, 3] : !sbhd -> !bhsd
  %3 = graph.matmul %0, %1 : !bhsd, !bhds -> !scores
  %4 = graph.binary <div> %3, %four : !scores, tensor<f32> -> !scores
  %5 = graph.binary <add> %m, %4 : !mask, !scores -> !scores
  %6 = graph.softmax %5 3 : !scores -> !scores
  %7 = graph.matmul %6, %2 : !scores, !bhsd -> !bhsd
  %8 = graph.transpose %7 [0, 2, 1, 3] : !bhsd -> !sbhd
  return %8 : !sbhd
}

// -----
!bhsd = tensor<?x4x?x8xf32, #graph.dims<["b", 4, "s", 8]>>
!bhds = tensor<?x4x8x?xf32, #graph.dims<["b", 4, 8, "s"]>>
!scores = tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>
!cond = tensor<?x4x?x?xi1, #graph.dims<["b", 4, "s", "s"]>>
// The square root of the scale on q and on k^T; guarded rows; no bias.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = graph.attention %arg0, %arg1, %arg2 {layout = "hhhh", nan_guard, scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[A]]
func.func @main(%q: !bhsd, %k: !bhsd, %v: !bhsd) -> !bhsd {
  %half = graph.constant "" dense<0.5> : tensor<f32> -> tensor<f32>
  %zero = graph.constant "" dense<0.0> : tensor<f32> -> tensor<f32>
  %0 = graph.transpose %k [0, 1, 3, 2] : !bhsd -> !bhds
  %1 = graph.binary <mul> %q, %half : !bhsd, tensor<f32> -> !bhsd
  %2 = graph.binary <mul> %half, %0 : tensor<f32>, !bhds -> !bhds
  %3 = graph.matmul %1, %2 : !bhsd, !bhds -> !scores
  %4 = graph.softmax %3 3 : !scores -> !scores
  %5 = graph.unary <isnan> %4 : !scores -> !cond
  %6 = graph.select %5, %zero, %4 : !cond, tensor<f32>, !scores -> !scores
  %7 = graph.matmul %6, %v : !scores, !bhsd -> !bhsd
  return %7 : !bhsd
}

// -----
!bhsd = tensor<?x4x?x8xf32, #graph.dims<["b", 4, "s", 8]>>
!bgsd = tensor<?x2x?x8xf32, #graph.dims<["b", 2, "s", 8]>>
!bg1sd = tensor<?x2x1x?x8xf32, #graph.dims<["b", 2, 1, "s", 8]>>
!bgrsd = tensor<?x2x2x?x8xf32, #graph.dims<["b", 2, 2, "s", 8]>>
!bhds = tensor<?x4x8x?xf32, #graph.dims<["b", 4, 8, "s"]>>
!scores = tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>
// Grouped queries: k and v repeated by expand.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = graph.attention %arg0, %arg1, %arg2 {layout = "hhhh", scale = 1.000000e+00 : f64}
// CHECK-NEXT: return %[[A]]
func.func @main(%q: !bhsd, %k: !bgsd, %v: !bgsd) -> !bhsd {
  %k1 = graph.reshape %k : !bgsd -> !bg1sd
  %k2 = graph.expand %k1 : !bg1sd -> !bgrsd
  %k3 = graph.reshape %k2 : !bgrsd -> !bhsd
  %v1 = graph.reshape %v : !bgsd -> !bg1sd
  %v2 = graph.expand %v1 : !bg1sd -> !bgrsd
  %v3 = graph.reshape %v2 : !bgrsd -> !bhsd
  %0 = graph.transpose %k3 [0, 1, 3, 2] : !bhsd -> !bhds
  %1 = graph.matmul %q, %0 : !bhsd, !bhds -> !scores
  %2 = graph.softmax %1 3 : !scores -> !scores
  %3 = graph.matmul %2, %v3 : !scores, !bhsd -> !bhsd
  return %3 : !bhsd
}

// -----
!bhsd = tensor<?x4x?x8xf32, #graph.dims<["b", 4, "s", 8]>>
!bhds = tensor<?x4x8x?xf32, #graph.dims<["b", 4, 8, "s"]>>
!scores = tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>
// The probabilities are an output too: nothing may swallow them (B05).
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.attention
// CHECK: return
func.func @main(%q: !bhsd, %kt: !bhds, %v: !bhsd) -> (!bhsd, !scores) {
  %1 = graph.matmul %q, %kt : !bhsd, !bhds -> !scores
  %2 = graph.softmax %1 3 : !scores -> !scores
  %3 = graph.matmul %2, %v : !scores, !bhsd -> !bhsd
  return %3, %2 : !bhsd, !scores
}
