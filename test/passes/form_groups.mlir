// One group per kernel; results of main are distinct results of groups.
// RUN: tare-opt %s --graph-form-groups | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[W:.*]] = graph.constant "w"
// CHECK-DAG: %[[A:.*]] = graph.group <gemm>(%arg0, %[[W]])
// CHECK: graph.matmul %{{.*}}, %{{.*}}
// CHECK: %[[V:.*]] = graph.reshape %[[A]]
// CHECK: %[[C1:.*]] = graph.group <pointwise>(%arg0)
// CHECK: graph.unary <identity>
// CHECK: return
func.func @main(%x: tensor<?x4xf32, #graph.dims<["n", 4]>>) -> (tensor<?x2x4xf32, #graph.dims<["n", 2, 4]>>, tensor<?x4xf32, #graph.dims<["n", 4]>>) {
  %w = graph.constant "w" dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
  %a = graph.matmul %x, %w : tensor<?x4xf32, #graph.dims<["n", 4]>>, tensor<4x8xf32> -> tensor<?x8xf32, #graph.dims<["n", 8]>>
  %v = graph.reshape %a : tensor<?x8xf32, #graph.dims<["n", 8]>> -> tensor<?x2x4xf32, #graph.dims<["n", 2, 4]>>
  return %v, %x : tensor<?x2x4xf32, #graph.dims<["n", 2, 4]>>, tensor<?x4xf32, #graph.dims<["n", 4]>>
}
