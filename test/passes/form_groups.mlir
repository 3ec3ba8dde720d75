// One group per kernel: epilogues, pulled producers, second results, copies where main returns something twice.
// RUN: tare-opt %s --graph-form-groups --split-input-file | FileCheck %s

!t = tensor<?x8xf32, #graph.dims<["n", 8]>>
!u = tensor<?x16xf32, #graph.dims<["n", 16]>>
// bias + activation + residual go behind the GEMM; the norm reads its result; the view is no group.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = graph.group <gemm>(%arg0, %{{.*}}, %{{.*}})
// CHECK-NEXT: ^bb0
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.binary <add>
// CHECK-NEXT: graph.unary <gelu_erf>
// CHECK-NEXT: graph.yield
// CHECK: %[[B:.*]] = graph.group <gemm>(%[[A]], %{{.*}}, %arg0)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: graph.matmul
// CHECK-NEXT: graph.binary <add>
// CHECK-NEXT: graph.yield
// CHECK: graph.group <row>(%[[B]], %{{.*}})
// CHECK-NEXT: ^bb0
// CHECK-NEXT: graph.rms_norm
func.func @main(%x: !t) -> !t {
  %w1 = graph.constant "w1" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %b1 = graph.constant "b1" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %w2 = graph.constant "w2" dense<0.5> : tensor<16x8xf32> -> tensor<16x8xf32>
  %g = graph.constant "g" dense<0.5> : tensor<8xf32> -> tensor<8xf32>
  %0 = graph.matmul %x, %w1 : !t, tensor<8x16xf32> -> !u
  %1 = graph.binary <add> %b1, %0 : tensor<16xf32>, !u -> !u
  %2 = graph.unary <gelu_erf> %1 : !u -> !u
  %3 = graph.matmul %2, %w2 : !u, tensor<16x8xf32> -> !t
  %4 = graph.binary <add> %x, %3 : !t, !t -> !t
  %5 = graph.rms_norm %4, %g {axis = 1 : i64, epsilon = 1.0e-6 : f64} : (!t, tensor<8xf32>) -> !t
  return %5 : !t
}

// -----
!t = tensor<?x8xf32, #graph.dims<["n", 8]>>
// B05: all three values are outputs; none is swallowed.
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = graph.group <gemm>
// CHECK: %[[A:.*]] = graph.group <pointwise>(%[[M]]
// CHECK: %[[R:.*]] = graph.group <pointwise>(%[[A]]
// CHECK: return %[[M]], %[[A]], %[[R]]
func.func @main(%x: !t) -> (!t, !t, !t) {
  %w = graph.constant "w" dense<0.5> : tensor<8x8xf32> -> tensor<8x8xf32>
  %b = graph.constant "b" dense<0.5> : tensor<8xf32> -> tensor<8xf32>
  %m = graph.matmul %x, %w : !t, tensor<8x8xf32> -> !t
  %a = graph.binary <add> %m, %b : !t, tensor<8xf32> -> !t
  %r = graph.unary <relu> %a : !t -> !t
  return %m, %a, %r : !t, !t, !t
}

// -----
!t = tensor<?x8xf32, #graph.dims<["n", 8]>>
// The residual sum is a second result of the norm.
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = graph.group <row>(%{{.*}}, %arg0, %arg1)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[S:.*]] = graph.binary <add>
// CHECK-NEXT: %[[N:.*]] = graph.layer_norm %[[S]]
// CHECK-NEXT: graph.yield %[[N]], %[[S]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @main(%x: !t, %y: !t) -> (!t, !t) {
  %g = graph.constant "g" dense<0.5> : tensor<8xf32> -> tensor<8xf32>
  %s = graph.binary <add> %x, %y : !t, !t -> !t
  %n = graph.layer_norm %s, %g {axis = 1 : i64, epsilon = 1.0e-6 : f64} : (!t, tensor<8xf32>) -> !t
  return %n, %s : !t, !t
}

// -----
!t = tensor<?x8xf32, #graph.dims<["n", 8]>>
// B08: an input returned twice is copied twice.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = graph.group <pointwise>(%arg0)
// CHECK: %[[B:.*]] = graph.group <pointwise>(%arg0)
// CHECK: return %[[A]], %[[B]]
func.func @main(%x: !t) -> (!t, !t) {
  return %x, %x : !t, !t
}

// -----
!q = tensor<?x?x4x8xf32, #graph.dims<["b", "s", 4, 8]>>
// The causal mask is pulled into the attention; the padding row gets memory because it is read for every head and query.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = graph.group <pointwise>(%arg3)
// CHECK: %[[P:.*]] = graph.reshape %[[W]] {{.*}} -> tensor<?x1x1x?xf32, #graph.dims<["b", 1, 1, "s"]>>
// CHECK: graph.group <attention>(%arg0, %arg1, %arg2, %[[P]])
// CHECK-DAG: graph.range
// CHECK-DAG: graph.binary <le>
// CHECK-DAG: graph.select
// CHECK: graph.attention
func.func @main(%q: !q, %k: !q, %v: !q, %m: tensor<?x?xi64, #graph.dims<["b", "s"]>>) -> !q {
  %keep = graph.constant "" dense<0.0> : tensor<f32> -> tensor<f32>
  %drop = graph.constant "" dense<-3.0e38> : tensor<f32> -> tensor<f32>
  %r = graph.range <[0, 1]> : tensor<?xi64, #graph.dims<["s"]>>
  %i = graph.reshape %r : tensor<?xi64, #graph.dims<["s"]>> -> tensor<?x1xi64, #graph.dims<["s", 1]>>
  %le = graph.binary <le> %r, %i : tensor<?xi64, #graph.dims<["s"]>>, tensor<?x1xi64, #graph.dims<["s", 1]>> -> tensor<?x?xi1, #graph.dims<["s", "s"]>>
  %causal = graph.select %le, %keep, %drop : tensor<?x?xi1, #graph.dims<["s", "s"]>>, tensor<f32>, tensor<f32> -> tensor<?x?xf32, #graph.dims<["s", "s"]>>
  %c = graph.cast %m : tensor<?x?xi64, #graph.dims<["b", "s"]>> -> tensor<?x?xi1, #graph.dims<["b", "s"]>>
  %w = graph.select %c, %keep, %drop : tensor<?x?xi1, #graph.dims<["b", "s"]>>, tensor<f32>, tensor<f32> -> tensor<?x?xf32, #graph.dims<["b", "s"]>>
  %row = graph.reshape %w : tensor<?x?xf32, #graph.dims<["b", "s"]>> -> tensor<?x1x1x?xf32, #graph.dims<["b", 1, 1, "s"]>>
  %bias = graph.binary <min> %causal, %row : tensor<?x?xf32, #graph.dims<["s", "s"]>>, tensor<?x1x1x?xf32, #graph.dims<["b", 1, 1, "s"]>> -> tensor<?x1x?x?xf32, #graph.dims<["b", 1, "s", "s"]>>
  %a = graph.attention %q, %k, %v, %bias {layout = "ssss", scale = 0.3 : f64} : (!q, !q, !q, tensor<?x1x?x?xf32, #graph.dims<["b", 1, "s", "s"]>>) -> !q
  return %a : !q
}

// -----
!past = tensor<?x2x?x8xf32, #graph.dims<["b", 2, "past", 8]>>
!new = tensor<?x2x?x8xf32, #graph.dims<["b", 2, "s", 8]>>
!all = tensor<?x2x?x8xf32, #graph.dims<["b", 2, "past + s", 8]>>
// A KV cache grows by appending.
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = graph.group <pointwise>(%arg1)
// CHECK: %[[P:.*]] = graph.group <append>(%arg0, %[[N]])
// CHECK: return %[[P]]
func.func @main(%past: !past, %x: !new) -> !all {
  %n = graph.unary <relu> %x : !new -> !new
  %p = graph.concat 2(%past, %n) : (!past, !new) -> !all
  return %p : !all
}

// -----
!a = tensor<?x8xf32, #graph.dims<["s", 8]>>
!b = tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>
// Expensive values that are broadcast get memory, once; cosine and sine share a kernel.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]]:2 = graph.group <pointwise>(%arg0)
// CHECK-DAG: graph.unary <sin>
// CHECK-DAG: graph.unary <cos>
// CHECK: graph.group <pointwise>(%arg1, %[[T]]#{{[01]}}, %arg2, %[[T]]#{{[01]}})
func.func @main(%x: !a, %y: !b, %z: !b) -> !b {
  %c = graph.unary <cos> %x : !a -> !a
  %s = graph.unary <sin> %x : !a -> !a
  %0 = graph.binary <mul> %y, %c : !b, !a -> !b
  %1 = graph.binary <mul> %z, %s : !b, !a -> !b
  %2 = graph.binary <add> %0, %1 : !b, !b -> !b
  return %2 : !b
}

// -----
!t = tensor<?x8xf32, #graph.dims<["n", 8]>>
// A group is named after its root: the module path is the root's scope, else the path in its node's name, else that of another op in it.
// CHECK-LABEL: func.func @main
// CHECK: graph.group <gemm>{{.*}} attributes {{{.*}}graph.scope = "layers.3.ffn"
// CHECK: graph.group <pointwise>{{.*}} attributes {graph.scope = "layers.3.act"
func.func @main(%x: !t) -> (!t, !t) {
  %w = graph.constant "w" dense<0.5> : tensor<8x8xf32> -> tensor<8x8xf32>
  %m = graph.matmul %x, %w {graph.scope = "layers.3.ffn"} : !t, tensor<8x8xf32> -> !t
  %a = graph.unary <tanh> %m : !t -> !t loc("/layers.3/act/Tanh")
  %r = graph.unary <relu> %a : !t -> !t
  return %m, %r : !t, !t
}

// -----
// A weight that the epilogue reads as well is two operands: one will be packed for the microkernel, the other one lies as the model has it.
// CHECK-LABEL: func.func @main
// CHECK: graph.group <gemm>(%arg0, %[[W:.*]], %[[W]])
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<8x8xf32>, %[[PACKED:.*]]: tensor<8x8xf32>, %[[RAW:.*]]: tensor<8x8xf32>)
// CHECK: %[[Y:.*]] = graph.matmul %[[X]], %[[PACKED]]
// CHECK: graph.binary <add> %[[Y]], %[[RAW]]
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %w = graph.constant "w" dense<0.25> : tensor<8x8xf32> -> tensor<8x8xf32>
  %0 = graph.matmul %x, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = graph.binary <add> %0, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
