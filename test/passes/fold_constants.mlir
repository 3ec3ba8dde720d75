// Constants fold, overridable ones never; growth is counted net of what disappears (B92); weights keep their storage type.
// RUN: tare-opt %s --graph-fold-constants=fold-limit=1024 --split-input-file | FileCheck %s

// The transposed weight and its decoded form both keep the initializer's name.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = graph.constant "w" dense<{{\[\[}}1.000000e+00, 4.000000e+00], [2.000000e+00, 5.000000e+00], [3.000000e+00, 6.000000e+00]]>
// CHECK-NEXT: graph.matmul %arg0, %[[W]]
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %w = graph.constant "w" dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf16> -> tensor<2x3xf16>
  %t = graph.transpose %w [1, 0] : tensor<2x3xf16> -> tensor<3x2xf16>
  %c = graph.cast %t : tensor<3x2xf16> -> tensor<3x2xf32>
  %y = graph.matmul %x, %c : tensor<4x3xf32>, tensor<3x2xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----
// CHECK-LABEL: module attributes {graph.not_folded = [{bytes = 16384 : i64, node = "", why = "would add 16384 bytes, more than --fold-limit 1024"}]}
// CHECK-LABEL: func.func @main
// CHECK: graph.constant "o" overridable dense<2.000000e+00>
// CHECK: graph.binary <add>
// CHECK: graph.expand
func.func @main() -> (tensor<2xf32>, tensor<64x64xf32>, tensor<2xf32>) {
  %o = graph.constant "o" overridable dense<2.0> : tensor<2xf32> -> tensor<2xf32>
  %s = graph.constant "s" dense<0.1> : tensor<f32> -> tensor<f32>
  %a = graph.binary <add> %o, %s : tensor<2xf32>, tensor<f32> -> tensor<2xf32>
  %e = graph.expand %s : tensor<f32> -> tensor<64x64xf32>
  %u = graph.constant "u" dense<[3.0, 4.0]> : tensor<2xf32> -> tensor<2xf32>
  // CHECK: dense<[9.000000e+00, 1.600000e+01]>
  %m = graph.binary <mul> %u, %u : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return %a, %e, %m : tensor<2xf32>, tensor<64x64xf32>, tensor<2xf32>
}

// -----
// A matrix in f16 stays in f16 behind its cast; a bias is decoded.
// CHECK-LABEL: func.func @main
// CHECK-DAG: graph.constant "w" {{.*}} -> tensor<16x16xf16>
// CHECK-DAG: graph.cast %{{.*}} : tensor<16x16xf16> -> tensor<16x16xf32>
// CHECK-DAG: graph.constant "b" dense<5.000000e-01> : tensor<16xf32>
func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %w = graph.constant "w" dense<0.25> : tensor<16x16xf16> -> tensor<16x16xf16>
  %b = graph.constant "b" dense<0.5> : tensor<16xf16> -> tensor<16xf16>
  %c = graph.cast %w : tensor<16x16xf16> -> tensor<16x16xf32>
  %d = graph.cast %b : tensor<16xf16> -> tensor<16xf32>
  %y = graph.matmul %x, %c : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %z = graph.binary <add> %y, %d : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}
