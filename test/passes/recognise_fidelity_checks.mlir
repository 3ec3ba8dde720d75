// Fidelity checks in the spellings of exporters, and what is none: another comparison, a bit with another reader, a prototype that is no constant.
// RUN: tare-opt %s --graph-recognise-fidelity-checks --split-input-file | FileCheck %s

// Less, z * z; W is turned back and gets its heads.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = graph.transpose %{{.*}} [1, 0] : tensor<8x12xf32> -> tensor<12x8xf32>
// CHECK: %[[W:.*]] = graph.reshape %[[T]] : tensor<12x8xf32> -> tensor<3x4x8xf32>
// CHECK: %[[Y:.*]] = graph.fidelity_check %arg0, %[[W]], %{{.*}}, %{{.*}}, %{{.*}} : ({{.*}}, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %wt = graph.constant "W" dense<0.5> : tensor<8x12xf32> -> tensor<8x12xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %0 = graph.matmul %h, %wt : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x12xf32> -> tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>>
  %1 = graph.reshape %0 : tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %2 = graph.binary <sub> %1, %p : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<3x4xf32> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %3 = graph.binary <mul> %2, %2 : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %4 = graph.reduce <sum> %3 [3] keepdims false : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %5 = graph.unary <sqrt> %4 : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %7 = graph.binary <lt> %5, %tau : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3xf32> -> tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
  %8 = graph.cast %7 : tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %9 = graph.matmul %8, %e : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %9 : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// Greater with the operands turned round, p - z, Pow, W transposed at run time.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.transpose
// CHECK: %[[W:.*]] = graph.reshape %{{.*}} : tensor<12x8xf32> -> tensor<3x4x8xf32>
// CHECK: graph.fidelity_check %arg0, %[[W]]
// CHECK-NOT: graph.binary
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w2 = graph.constant "W" dense<0.5> : tensor<12x8xf32> -> tensor<12x8xf32>
  %wt = graph.transpose %w2 [1, 0] : tensor<12x8xf32> -> tensor<8x12xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %0 = graph.matmul %h, %wt : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x12xf32> -> tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>>
  %1 = graph.reshape %0 : tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %2 = graph.binary <sub> %p, %1 : tensor<3x4xf32>, tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %two = graph.constant "" dense<2.0> : tensor<f32> -> tensor<f32>
  %3 = graph.binary <pow> %2, %two : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<f32> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %4 = graph.reduce <sum> %3 [3] keepdims false : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %5 = graph.unary <sqrt> %4 : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %7 = graph.binary <gt> %tau, %5 : tensor<3xf32>, tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
  %8 = graph.cast %7 : tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %9 = graph.matmul %8, %e : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %9 : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// ReduceL2 with kept dims.
// CHECK-LABEL: func.func @main
// CHECK: graph.fidelity_check
// CHECK-NOT: graph.reduce
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %wt = graph.constant "W" dense<0.5> : tensor<8x12xf32> -> tensor<8x12xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %0 = graph.matmul %h, %wt : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x12xf32> -> tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>>
  %1 = graph.reshape %0 : tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %2 = graph.binary <sub> %1, %p : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<3x4xf32> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %4 = graph.reduce <l2> %2 [3] keepdims true : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3x1xf32, #graph.dims<["b", "s", 3, 1]>>
  %5 = graph.reshape %4 : tensor<?x?x3x1xf32, #graph.dims<["b", "s", 3, 1]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %7 = graph.binary <lt> %5, %tau : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3xf32> -> tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
  %8 = graph.cast %7 : tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %9 = graph.matmul %8, %e : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %9 : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// d^2 against a constant: tau is its square root.
// CHECK-LABEL: func.func @main
// CHECK: %[[TAU:.*]] = graph.unary <sqrt> %{{.*}} : tensor<3xf32> -> tensor<3xf32>
// CHECK: graph.fidelity_check %arg0, %{{.*}}, %{{.*}}, %[[TAU]], %{{.*}}
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %wt = graph.constant "W" dense<0.5> : tensor<8x12xf32> -> tensor<8x12xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %0 = graph.matmul %h, %wt : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x12xf32> -> tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>>
  %1 = graph.reshape %0 : tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %2 = graph.binary <sub> %1, %p : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<3x4xf32> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %3 = graph.binary <mul> %2, %2 : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %4 = graph.reduce <sum> %3 [3] keepdims false : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %7 = graph.binary <lt> %4, %tau : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3xf32> -> tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
  %8 = graph.cast %7 : tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %9 = graph.matmul %8, %e : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %9 : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// d <= tau is another predicate.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.fidelity_check
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %wt = graph.constant "W" dense<0.5> : tensor<8x12xf32> -> tensor<8x12xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %0 = graph.matmul %h, %wt : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x12xf32> -> tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>>
  %1 = graph.reshape %0 : tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %2 = graph.binary <sub> %1, %p : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<3x4xf32> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %3 = graph.binary <mul> %2, %2 : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %4 = graph.reduce <sum> %3 [3] keepdims false : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %5 = graph.unary <sqrt> %4 : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %7 = graph.binary <le> %5, %tau : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3xf32> -> tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
  %8 = graph.cast %7 : tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %9 = graph.matmul %8, %e : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %9 : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// The bits are an output, too.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.fidelity_check
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> (tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>) {
  %wt = graph.constant "W" dense<0.5> : tensor<8x12xf32> -> tensor<8x12xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %0 = graph.matmul %h, %wt : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x12xf32> -> tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>>
  %1 = graph.reshape %0 : tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %2 = graph.binary <sub> %1, %p : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<3x4xf32> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %3 = graph.binary <mul> %2, %2 : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %4 = graph.reduce <sum> %3 [3] keepdims false : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %5 = graph.unary <sqrt> %4 : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %7 = graph.binary <lt> %5, %tau : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3xf32> -> tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
  %8 = graph.cast %7 : tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %9 = graph.matmul %8, %e : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %9, %7 : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
}

// -----
// Another W may be fed.
// CHECK-LABEL: func.func @main
// CHECK-NOT: graph.fidelity_check
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %wt = graph.constant "W" overridable dense<0.5> : tensor<8x12xf32> -> tensor<8x12xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %0 = graph.matmul %h, %wt : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x12xf32> -> tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>>
  %1 = graph.reshape %0 : tensor<?x?x12xf32, #graph.dims<["b", "s", 12]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %2 = graph.binary <sub> %1, %p : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<3x4xf32> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %3 = graph.binary <mul> %2, %2 : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>, tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>>
  %4 = graph.reduce <sum> %3 [3] keepdims false : tensor<?x?x3x4xf32, #graph.dims<["b", "s", 3, 4]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %5 = graph.unary <sqrt> %4 : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %7 = graph.binary <lt> %5, %tau : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3xf32> -> tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>>
  %8 = graph.cast %7 : tensor<?x?x3xi1, #graph.dims<["b", "s", 3]>> -> tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>
  %9 = graph.matmul %8, %e : tensor<?x?x3xf32, #graph.dims<["b", "s", 3]>>, tensor<3x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %9 : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}
