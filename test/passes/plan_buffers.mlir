// Groups become dispatches over buffers: equal bodies share a kernel, a reshape is a view, a returned value is written into its output, an arena buffer knows its steps.
// RUN: tare-opt %s --plan-buffers | FileCheck %s
!x = tensor<?x8xf32, #graph.dims<["n", 8]>>
!v = tensor<?x2x4xf32, #graph.dims<["n", 2, 4]>>

// CHECK: func.func private @main(tensor<?x8xf32, {{.*}}> {graph.name = "x"}) -> (tensor<?x2x4xf32, {{.*}}> {graph.name = "y"})
// CHECK: func.func private @pointwise_f32_8_relu({{.*}}) -> {{.*}} attributes {plan.kind = "pointwise"}
// CHECK: func.func private @gemm_f32_8x8_add(
// CHECK-SAME: {plan.packing = "panel32"}
// CHECK: func.func private @pointwise_f32_2x4_neg(
// CHECK-NOT: func.func
// CHECK: plan.program ["n"] <["n", 8, 2, 4, "32*n"
// CHECK-SAME: states = []
// CHECK: plan.buffer "input" "x" {{.*}} <["32*n"]> {tensor = 0 : i64}
// CHECK: plan.buffer "output" "y" {{.*}} <["32*n"]> {first = 3 : i64, last = 3 : i64, tensor = 0 : i64}
// CHECK: plan.buffer "arena" "a" {{.*}} {last = 2 : i64}
// CHECK: plan.buffer "arena" "b" {{.*}} {first = 1 : i64, last = 2 : i64}
// CHECK: plan.buffer "weight" "w" tensor<8x8xf32> <[1024]> {{.*}}packing = "panel32"
// CHECK: plan.buffer "arena" "c" {{.*}} {first = 2 : i64, last = 3 : i64}
// CHECK: plan.dispatch @pointwise_f32_8_relu "pointwise" [0] -> [2]
// CHECK: plan.dispatch @pointwise_f32_8_relu "pointwise" [2] -> [3]
// CHECK: plan.dispatch @gemm_f32_8x8_add "gemm" [3, 4, 2] -> [5]
// CHECK: plan.dispatch @pointwise_f32_2x4_neg "pointwise" [5] -> [1]
func.func @main(%x: !x {graph.name = "x"}) -> (!v {graph.name = "y"}) {
  %w = graph.constant "w" dense<0.5> : tensor<8x8xf32> -> tensor<8x8xf32>
  %0 = graph.group <pointwise>(%x) : (!x) -> !x {
  ^bb0(%a: !x):
    %1 = graph.unary <relu> %a : !x -> !x loc("a")
    graph.yield %1 : !x
  }
  %2 = graph.group <pointwise>(%0) : (!x) -> !x {
  ^bb0(%a: !x):
    %1 = graph.unary <relu> %a : !x -> !x loc("b")
    graph.yield %1 : !x
  }
  %3 = graph.group <gemm>(%2, %w, %0) : (!x, tensor<8x8xf32>, !x) -> !x {
  ^bb0(%a: !x, %b: tensor<8x8xf32>, %c: !x):
    %1 = graph.matmul %a, %b : !x, tensor<8x8xf32> -> !x loc("c")
    %4 = graph.binary <add> %1, %c : !x, !x -> !x
    graph.yield %4 : !x
  }
  %5 = graph.reshape %3 : !x -> !v
  %6 = graph.group <pointwise>(%5) : (!v) -> !v {
  ^bb0(%a: !v):
    %1 = graph.unary <neg> %a : !v -> !v loc("d")
    graph.yield %1 : !v
  }
  return %6 : !v
}
