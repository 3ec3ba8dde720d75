// Checks become part of the FFN-up product, whatever the order of the sum; what is not fusable stays for the dense form and says why.
// RUN: tare-opt %s --graph-sparsify-fidelity-checks --split-input-file 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERR < %t.err
// RUN: tare-opt %s --graph-sparsify-fidelity-checks="precision=int4 window=5" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=INT4
// RUN: tare-opt %s --graph-sparsify-fidelity-checks="precision=dense" --split-input-file 2>/dev/null | FileCheck %s --check-prefix=DENSE

// (bias + matmul) + check: the exporters' order. main gets its optional input.
// CHECK: graph.check_input = {anchors = 1 : i64, batch = #graph.dims<["b"]>, mask = -1 : i64, past = #graph.dims<[0]>, tokens = #graph.dims<["s"]>, window = 3 : i64}
// CHECK-SAME: graph.checks = [{code = "", form = "sparse", heads = 3 : i64, name = "", precision = "f32", rank = 4 : i64, why = ""}]
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg1: tensor<?x?xi32, #graph.dims<["b", "anchors"]>> {graph.default = "empty", graph.name = "anchors"})
// CHECK: %[[M:.*]] = graph.matmul %arg0
// CHECK: %[[C:.*]] = graph.fidelity_check %arg0, {{.*}} near %arg1 : tensor<?x?xi32, {{.*}}
// CHECK: %[[S:.*]] = graph.binary <add> %[[M]], %[[C]]
// CHECK: %[[B:.*]] = graph.binary <add> %{{.*}}, %[[S]]
// CHECK: graph.unary <gelu_erf> %[[B]]
// INT4: window = 5 : i64
// INT4: graph.fidelity_check {{.*}} near %arg1 {{.*}} as %{{.*}}, %{{.*}} : tensor<3x4x8xi8>, tensor<3x4x1xf32> {group = 32 : i64, precision = "int4", window = 5 : i64}
// DENSE: form = "dense"
// DENSE-SAME: why = "dense by --check-precision"
// DENSE: func.func @main({{.*}} {graph.default = "empty", graph.name = "anchors"})
// DENSE-NOT: near
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> {graph.name = "h"}) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w = graph.constant "W" dense<0.5> : tensor<3x4x8xf32> -> tensor<3x4x8xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %up = graph.constant "up" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %bias = graph.constant "bias" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %m = graph.matmul %h, %up : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %a = graph.binary <add> %bias, %m : tensor<16xf32>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %c = graph.fidelity_check %h, %w, %p, %tau, %e : (tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %s = graph.binary <add> %a, %c : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %y = graph.unary <gelu_erf> %s : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %y : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// matmul + (check + bias), the check first.
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = graph.matmul %arg0
// CHECK: %[[C:.*]] = graph.fidelity_check
// CHECK: %[[S:.*]] = graph.binary <add> %[[M]], %[[C]]
// CHECK: %[[B:.*]] = graph.binary <add> %[[S]], %{{.*}} : {{.*}}, tensor<16xf32>
// CHECK: graph.unary <gelu_erf> %[[B]]
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> {graph.name = "h"}) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w = graph.constant "W" dense<0.5> : tensor<3x4x8xf32> -> tensor<3x4x8xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %up = graph.constant "up" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %bias = graph.constant "bias" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %c = graph.fidelity_check %h, %w, %p, %tau, %e : (tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %a = graph.binary <add> %c, %bias : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %m = graph.matmul %h, %up : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %s = graph.binary <add> %m, %a : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %y = graph.unary <gelu_erf> %s : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %y : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// matmul + check, no bias.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = graph.binary <add>
// CHECK: graph.unary <gelu_erf> %[[S]]
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> {graph.name = "h"}) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w = graph.constant "W" dense<0.5> : tensor<3x4x8xf32> -> tensor<3x4x8xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %up = graph.constant "up" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %bias = graph.constant "bias" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %m = graph.matmul %h, %up : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %c = graph.fidelity_check %h, %w, %p, %tau, %e : (tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %s = graph.binary <add> %c, %m : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %y = graph.unary <gelu_erf> %s : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %y : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// The check reads another state than the product.
// ERR: [CHECK_NOT_FUSABLE]{{.*}} stays dense: its input is not the input of the product that it is added to
// CHECK: code = "CHECK_NOT_FUSABLE", form = "dense"
// CHECK-LABEL: func.func @main
// CHECK-SAME: {graph.default = "empty", graph.name = "anchors"})
// CHECK-NOT: near
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> {graph.name = "h"}) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w = graph.constant "W" dense<0.5> : tensor<3x4x8xf32> -> tensor<3x4x8xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %up = graph.constant "up" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %bias = graph.constant "bias" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %m = graph.matmul %h, %up : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %r = graph.unary <relu> %h : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> -> tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>
  %c = graph.fidelity_check %r, %w, %p, %tau, %e : (tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %s = graph.binary <add> %m, %c : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %y = graph.unary <gelu_erf> %s : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %y : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// The product has another reader: the sum is no epilogue.
// CHECK-LABEL: func.func @main
// CHECK-NOT: near
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> {graph.name = "h"}) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w = graph.constant "W" dense<0.5> : tensor<3x4x8xf32> -> tensor<3x4x8xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %up = graph.constant "up" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %bias = graph.constant "bias" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %m = graph.matmul %h, %up : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %c = graph.fidelity_check %h, %w, %p, %tau, %e : (tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %s = graph.binary <add> %m, %c : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %y = graph.unary <gelu_erf> %s : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %z = graph.binary <add> %y, %m : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %z : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}
