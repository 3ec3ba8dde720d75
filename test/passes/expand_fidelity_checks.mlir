// The dense form of a check in ordinary ops: d < tau, not d^2 < tau^2 (spec 6).
// RUN: tare-opt %s --graph-expand-fidelity-checks | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = graph.reshape %arg1 : tensor<3x64x128xf32> -> tensor<192x128xf32>
// CHECK: %[[T:.*]] = graph.transpose %[[W]] [1, 0]
// CHECK: %[[Z:.*]] = graph.matmul %arg0, %[[T]]
// CHECK: %[[H:.*]] = graph.reshape %[[Z]] : {{.*}} -> tensor<?x?x3x64xf32, #graph.dims<["b", "s", 3, 64]>>
// CHECK: %[[D:.*]] = graph.binary <sub> %[[H]], %arg2
// CHECK: %[[Q:.*]] = graph.binary <mul> %[[D]], %[[D]]
// CHECK: %[[R:.*]] = graph.reduce <sum> %[[Q]] [3] keepdims false
// CHECK: %[[S:.*]] = graph.unary <sqrt> %[[R]]
// CHECK: %[[L:.*]] = graph.binary <lt> %[[S]], %arg3
// CHECK: %[[C:.*]] = graph.cast %[[L]]
// CHECK: graph.matmul %[[C]], %arg4
func.func @main(%h: tensor<?x?x128xf32, #graph.dims<["b", "s", 128]>>, %w: tensor<3x64x128xf32>, %p: tensor<3x64xf32>, %tau: tensor<3xf32>, %e: tensor<3x512xf32>) -> tensor<?x?x512xf32, #graph.dims<["b", "s", 512]>> {
  %0 = graph.fidelity_check %h, %w, %p, %tau, %e : (tensor<?x?x128xf32, #graph.dims<["b", "s", 128]>>, tensor<3x64x128xf32>, tensor<3x64xf32>, tensor<3xf32>, tensor<3x512xf32>) -> tensor<?x?x512xf32, #graph.dims<["b", "s", 512]>>
  return %0 : tensor<?x?x512xf32, #graph.dims<["b", "s", 512]>>
}
