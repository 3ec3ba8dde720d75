// A threshold that no distance can be below is a broken checkpoint.
// RUN: not tare-opt %s --graph-sparsify-fidelity-checks --split-input-file 2>&1 | FileCheck %s
// RUN: tare-opt %s --graph-sparsify-fidelity-checks="precision=dense" --split-input-file

// CHECK: error: tau of head 1 of the fidelity check layers.2.check is -2.000000: no distance is below it
// CHECK: note: correct the checkpoint, or keep the check as the source has it: --check-precision dense
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> {graph.name = "h"}) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w = graph.constant "W" dense<0.5> : tensor<3x4x8xf32> -> tensor<3x4x8xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, -2.0, 3.0]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %up = graph.constant "up" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %bias = graph.constant "bias" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %m = graph.matmul %h, %up : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %c = graph.fidelity_check %h, %w, %p, %tau, %e {graph.check = "layers.2.check"} : (tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %s = graph.binary <add> %m, %c : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %y = graph.unary <gelu_erf> %s : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %y : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}

// -----
// CHECK: error: tau of head 2 of the fidelity check layers.2.check is NaN
func.func @main(%h: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>> {graph.name = "h"}) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> {
  %w = graph.constant "W" dense<0.5> : tensor<3x4x8xf32> -> tensor<3x4x8xf32>
  %p = graph.constant "p" dense<0.25> : tensor<3x4xf32> -> tensor<3x4xf32>
  %tau = graph.constant "tau" dense<[1.0, 2.0, 0x7FC00000]> : tensor<3xf32> -> tensor<3xf32>
  %e = graph.constant "E" dense<0.125> : tensor<3x16xf32> -> tensor<3x16xf32>
  %up = graph.constant "up" dense<0.5> : tensor<8x16xf32> -> tensor<8x16xf32>
  %bias = graph.constant "bias" dense<0.5> : tensor<16xf32> -> tensor<16xf32>
  %m = graph.matmul %h, %up : tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<8x16xf32> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %c = graph.fidelity_check %h, %w, %p, %tau, %e {graph.check = "layers.2.check"} : (tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>, tensor<3x4x8xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<3x16xf32>) -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %s = graph.binary <add> %m, %c : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>, tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  %y = graph.unary <gelu_erf> %s : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>> -> tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
  return %y : tensor<?x?x16xf32, #graph.dims<["b", "s", 16]>>
}
