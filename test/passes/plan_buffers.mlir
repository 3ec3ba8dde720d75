// Groups become dispatches over buffers: equal bodies share a kernel, a reshape is a view, a returned value is written into its output, an arena buffer knows its steps.
// RUN: tare-opt %s --plan-buffers --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
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
// CHECK: plan.buffer "arena" "/layers.0/ffn/MatMul" {{.*}} {first = 2 : i64, last = 3 : i64}
// CHECK: plan.dispatch @pointwise_f32_8_relu "pointwise" [0] -> [2]
// CHECK: plan.dispatch @pointwise_f32_8_relu "pointwise" [2] -> [3]
// CHECK: plan.dispatch @gemm_f32_8x8_add "gemm" [3, 4, 2] -> [5] {bytes = #graph.dims<["96*n + 256"]>, flops = #graph.dims<["136*n"]>, graph.scope = "layers.0.ffn"} loc("/layers.0/ffn/MatMul")
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
  %3 = graph.group <gemm>(%2, %w, %0) attributes {graph.scope = "layers.0.ffn"} : (!x, tensor<8x8xf32>, !x) -> !x {
  ^bb0(%a: !x, %b: tensor<8x8xf32>, %c: !x):
    %1 = graph.matmul %a, %b : !x, tensor<8x8xf32> -> !x loc("c")
    %4 = graph.binary <add> %1, %c : !x, !x -> !x
    graph.yield %4 : !x
  } loc("/layers.0/ffn/MatMul")
  %5 = graph.reshape %3 : !x -> !v
  %6 = graph.group <pointwise>(%5) : (!v) -> !v {
  ^bb0(%a: !v):
    %1 = graph.unary <neg> %a : !v -> !v loc("d")
    graph.yield %1 : !v
  }
  return %6 : !v
}

// -----
// A step touches the rows that its ids name, in the type they are stored in, never the whole table: 8 for the id, 2*4 read, 4*4 written.
// CHECK: plan.dispatch @{{.*}} "pointwise" [2, 0] -> [1] {bytes = #graph.dims<["32*n"]>, flops = #graph.dims<[0]>, graph.scope = "embed"} loc("/embed/Gather")
!i = tensor<?xi64, #graph.dims<["n"]>>
!h = tensor<?x4xf16, #graph.dims<["n", 4]>>
!y = tensor<?x4xf32, #graph.dims<["n", 4]>>
func.func @main(%i: !i {graph.name = "ids"}) -> (!y {graph.name = "y"}) {
  %t = graph.constant "table" dense<0.5> : tensor<1000x4xf16> -> tensor<1000x4xf16>
  %0 = graph.group <pointwise>(%t, %i) attributes {graph.scope = "embed"} : (tensor<1000x4xf16>, !i) -> !y {
  ^bb0(%a: tensor<1000x4xf16>, %b: !i):
    %1 = graph.cast %a : tensor<1000x4xf16> -> tensor<1000x4xf32>
    %2 = graph.gather %1[%b] 0 : tensor<1000x4xf32>, !i -> !y
    graph.yield %2 : !y
  } loc("/embed/Gather")
  return %0 : !y
}

// -----
// q, k and v: three GEMMs that read the same rows follow one another without a barrier, also where the source has k's reader between them; all their buffers live
// through the whole run of steps. The reader of k is no sibling; the sum waits for both.
// CHECK: plan.buffer "arena" "n" {{.*}} {last = 3 : i64}
// CHECK: plan.buffer "arena" "q" {{.*}} {first = 1 : i64, last = 5 : i64}
// CHECK: plan.buffer "arena" "k" {{.*}} {first = 1 : i64, last = 4 : i64}
// CHECK: plan.buffer "arena" "v" {{.*}} {first = 1 : i64, last = 5 : i64}
// CHECK: plan.buffer "arena" "t" {{.*}} {first = 4 : i64, last = 5 : i64}
// CHECK: plan.dispatch @pointwise_f32_8_relu "pointwise" [0] -> [[N:.*]] {bytes = {{[^}]*}}} loc("n")
// CHECK: plan.dispatch @gemm_f32_8x8 {{.*}} {bytes = {{[^}]*}}} loc("q")
// CHECK: plan.dispatch @gemm_f32_8x8 {{.*}} {{{.*}}joined} loc("k")
// CHECK: plan.dispatch @gemm_f32_8x8 {{.*}} {{{.*}}joined} loc("v")
// CHECK: plan.dispatch @pointwise_f32_8_tanh {{.*}} {bytes = {{[^}]*}}} loc("t")
// CHECK: plan.dispatch @pointwise_f32_8_add_add {{.*}} {bytes = {{[^}]*}}} loc("o")
!x = tensor<?x8xf32, #graph.dims<["n", 8]>>
func.func @main(%x: !x {graph.name = "x"}) -> (!x {graph.name = "y"}) {
  %wq = graph.constant "wq" dense<0.5> : tensor<8x8xf32> -> tensor<8x8xf32>
  %wk = graph.constant "wk" dense<0.25> : tensor<8x8xf32> -> tensor<8x8xf32>
  %wv = graph.constant "wv" dense<0.125> : tensor<8x8xf32> -> tensor<8x8xf32>
  %n = graph.group <pointwise>(%x) : (!x) -> !x {
  ^bb0(%a: !x):
    %1 = graph.unary <relu> %a : !x -> !x
    graph.yield %1 : !x
  } loc("n")
  %q = graph.group <gemm>(%n, %wq) : (!x, tensor<8x8xf32>) -> !x {
  ^bb0(%a: !x, %b: tensor<8x8xf32>):
    %1 = graph.matmul %a, %b : !x, tensor<8x8xf32> -> !x
    graph.yield %1 : !x
  } loc("q")
  %k = graph.group <gemm>(%n, %wk) : (!x, tensor<8x8xf32>) -> !x {
  ^bb0(%a: !x, %b: tensor<8x8xf32>):
    %1 = graph.matmul %a, %b : !x, tensor<8x8xf32> -> !x
    graph.yield %1 : !x
  } loc("k")
  %t = graph.group <pointwise>(%k) : (!x) -> !x {
  ^bb0(%a: !x):
    %1 = graph.unary <tanh> %a : !x -> !x
    graph.yield %1 : !x
  } loc("t")
  %v = graph.group <gemm>(%n, %wv) : (!x, tensor<8x8xf32>) -> !x {
  ^bb0(%a: !x, %b: tensor<8x8xf32>):
    %1 = graph.matmul %a, %b : !x, tensor<8x8xf32> -> !x
    graph.yield %1 : !x
  } loc("v")
  %o = graph.group <pointwise>(%q, %t, %v) : (!x, !x, !x) -> !x {
  ^bb0(%a: !x, %b: !x, %c: !x):
    %1 = graph.binary <add> %a, %b : !x, !x -> !x
    %2 = graph.binary <add> %1, %c : !x, !x -> !x
    graph.yield %2 : !x
  } loc("o")
  return %o : !x
}
