// Exact local rewrites: what goes, and (B09, B11, B12) what must stay.
// RUN: tare-opt %s --graph-simplify --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = graph.transpose %arg0 [1, 2, 0]
// CHECK-NEXT: return %[[T]]
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = graph.transpose %x [1, 0, 2] : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
  %1 = graph.transpose %0 [0, 2, 1] : tensor<3x2x4xf32> -> tensor<3x4x2xf32>
  return %1 : tensor<3x4x2xf32>
}

// -----
// B01: an identity transpose disappears, it is never a transpose.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = graph.transpose %x [0, 1] : tensor<3x4xf32> -> tensor<3x4xf32>
  %1 = graph.unary <identity> %0 : tensor<3x4xf32> -> tensor<3x4xf32>
  %2 = graph.reshape %1 : tensor<3x4xf32> -> tensor<12xf32>
  %3 = graph.reshape %2 : tensor<12xf32> -> tensor<3x4xf32>
  return %3 : tensor<3x4xf32>
}

// -----
// B09, B11, B12: sums with zero of the wrong sign, growth by broadcast, the wrong side, x - x: all stay.
// CHECK-LABEL: func.func @main
// CHECK: graph.binary <add> %arg0, %{{.*}} : tensor<3xf32>, tensor<2x3xf32>
// CHECK: graph.binary <sub> %{{.*}}, %arg0
// CHECK: graph.binary <div> %{{.*}}, %arg0
// CHECK: graph.binary <add> %arg0, %{{.*}} : tensor<3xf32>, tensor<f32>
// CHECK: graph.binary <sub> %arg0, %arg0
// CHECK: return
func.func @main(%x: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %zeros = graph.constant "z" dense<0.0> : tensor<2x3xf32> -> tensor<2x3xf32>
  %zero = graph.constant "" dense<0.0> : tensor<f32> -> tensor<f32>
  %one = graph.constant "" dense<1.0> : tensor<f32> -> tensor<f32>
  %0 = graph.binary <add> %x, %zeros : tensor<3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = graph.binary <sub> %zero, %x : tensor<f32>, tensor<3xf32> -> tensor<3xf32>
  %2 = graph.binary <div> %one, %x : tensor<f32>, tensor<3xf32> -> tensor<3xf32>
  %3 = graph.binary <add> %x, %zero : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %4 = graph.binary <sub> %x, %x : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %5 = graph.binary <sub> %x, %zero : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %6 = graph.binary <mul> %one, %5 : tensor<f32>, tensor<3xf32> -> tensor<3xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----
// k^T of newer exporters: merge, transpose, split.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = graph.transpose %arg0 [0, 1, 3, 2]
// CHECK-NEXT: return %[[T]]
func.func @main(%k: tensor<?x4x?x8xf32, #graph.dims<["b", 4, "s", 8]>>) -> tensor<?x4x8x?xf32, #graph.dims<["b", 4, 8, "s"]>> {
  %0 = graph.reshape %k : tensor<?x4x?x8xf32, #graph.dims<["b", 4, "s", 8]>> -> tensor<?x?x8xf32, #graph.dims<["b*4", "s", 8]>>
  %1 = graph.transpose %0 [0, 2, 1] : tensor<?x?x8xf32, #graph.dims<["b*4", "s", 8]>> -> tensor<?x8x?xf32, #graph.dims<["b*4", 8, "s"]>>
  %2 = graph.reshape %1 : tensor<?x8x?xf32, #graph.dims<["b*4", 8, "s"]>> -> tensor<?x4x8x?xf32, #graph.dims<["b", 4, 8, "s"]>>
  return %2 : tensor<?x4x8x?xf32, #graph.dims<["b", 4, 8, "s"]>>
}

// -----
// Casts: a lossless double cast goes, one that rounds stays.
// CHECK-LABEL: func.func @main
// CHECK-DAG: graph.cast %arg1 : tensor<4xf32> -> tensor<4xf16>
// CHECK-DAG: graph.cast %{{.*}} : tensor<4xf16> -> tensor<4xf32>
// CHECK: return %arg0, %{{.*}} : tensor<4xf16>, tensor<4xf32>
func.func @main(%x: tensor<4xf16>, %y: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xf32>) {
  %0 = graph.cast %x : tensor<4xf16> -> tensor<4xf32>
  %1 = graph.cast %0 : tensor<4xf32> -> tensor<4xf16>
  %2 = graph.cast %y : tensor<4xf32> -> tensor<4xf16>
  %3 = graph.cast %2 : tensor<4xf16> -> tensor<4xf32>
  return %1, %3 : tensor<4xf16>, tensor<4xf32>
}

// -----
// The mask of newer exporters: positions >= 0 is known, the rest is one row that broadcasts.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = graph.select %arg0, %{{.*}}, %{{.*}} -> tensor<?x1x1x?xf32, #graph.dims<["b", 1, 1, "s"]>>
// CHECK: graph.binary <add> %arg1, %[[W]]
func.func @main(%m: tensor<?x1x1x?xi1, #graph.dims<["b", 1, 1, "s"]>>, %scores: tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>) -> tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>> {
  %zero = graph.constant "" dense<0> : tensor<i64> -> tensor<i64>
  %keep = graph.constant "" dense<0.0> : tensor<f32> -> tensor<f32>
  %drop = graph.constant "" dense<-3.0e38> : tensor<f32> -> tensor<f32>
  %r = graph.range <[0, 1]> : tensor<?xi64, #graph.dims<["s"]>>
  %q = graph.reshape %r : tensor<?xi64, #graph.dims<["s"]>> -> tensor<1x1x?x1xi64, #graph.dims<[1, 1, "s", 1]>>
  %ge = graph.binary <ge> %q, %zero : tensor<1x1x?x1xi64, #graph.dims<[1, 1, "s", 1]>>, tensor<i64> -> tensor<1x1x?x1xi1, #graph.dims<[1, 1, "s", 1]>>
  %and = graph.binary <and> %ge, %m : tensor<1x1x?x1xi1, #graph.dims<[1, 1, "s", 1]>>, tensor<?x1x1x?xi1, #graph.dims<["b", 1, 1, "s"]>> -> tensor<?x1x?x?xi1, #graph.dims<["b", 1, "s", "s"]>>
  %w = graph.select %and, %keep, %drop : tensor<?x1x?x?xi1, #graph.dims<["b", 1, "s", "s"]>>, tensor<f32>, tensor<f32> -> tensor<?x1x?x?xf32, #graph.dims<["b", 1, "s", "s"]>>
  %y = graph.binary <add> %scores, %w : tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>, tensor<?x1x?x?xf32, #graph.dims<["b", 1, "s", "s"]>> -> tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>
  return %y : tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "s"]>>
}
