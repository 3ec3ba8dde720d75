// Regions by path, metadata and initializer names; what cannot be a layer is listed in graph.rejected.
// RUN: tare-opt %s --graph-mark-layers | FileCheck %s

// CHECK: module attributes {graph.rejected = [
// CHECK-SAME: code = "NOT_ONE_OUTPUT"
// CHECK-SAME: name = "d.pos_enc"
// CHECK-SAME: code = "SHAPE_OR_DTYPE_CHANGES"
// CHECK-SAME: name = "e.pos_enc"
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<2x4xf32>, %n: tensor<2xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x3xf32>) {
    // CHECK: %[[W:.*]] = graph.constant "a.pos_enc.w"
    %w = graph.constant "a.pos_enc.w" dense<0.0> : tensor<4x4xf32> -> tensor<4x4xf32>
    %table = graph.constant "a.pos_enc.pos" dense<0.0> : tensor<8x4xf32> -> tensor<8x4xf32>
    // A node without activations is cloned into the layer and stays for the other reader; the residual Add belongs to the layer.
    // CHECK: graph.gather %{{.*}}[%arg1] 0
    %g = graph.gather %table[%n] 0 : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32> loc("/a/pos_enc/Gather")
    // CHECK: %[[A:.*]] = graph.layer "a.pos_enc" "position_encoding_enhancer" "path"(%arg0)
    // CHECK: ^bb0(%[[IN:.*]]: tensor<2x4xf32>):
    // CHECK: graph.gather
    // CHECK: graph.matmul %[[IN]], %[[W]]
    // CHECK: graph.binary <add> %[[IN]]
    // CHECK: graph.yield
    %m = graph.matmul %x, %w : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> loc("/a/pos_enc/MatMul")
    %s = graph.binary <add> %m, %g : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32> loc("/a/pos_enc/Add")
    %a = graph.binary <add> %x, %s : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32> loc("/a/pos_enc/Add_1")
    %o = graph.binary <mul> %a, %g : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32> loc("/other/Mul")

    // Metadata: the key `layer` is the name.
    // CHECK: graph.layer "layer_7.pos_enc" "position_encoding_enhancer" "metadata"(%{{.*}})
    %b = graph.unary <relu> %o {graph.meta = {is_position_layer = "True", layer = "layer_7.pos_enc"}} : tensor<2x4xf32> -> tensor<2x4xf32> loc("n1")

    // Only weights tell: the unnamed activation between them and the residual Add come along.
    // CHECK: %[[C:.*]] = graph.layer "c.rel_pos_enc" "position_encoding_enhancer" "path"(%{{.*}})
    // CHECK: graph.matmul
    // CHECK: graph.unary <tanh>
    // CHECK: graph.matmul
    // CHECK: graph.binary <add>
    // CHECK: graph.yield
    %w1 = graph.constant "c.rel_pos_enc.fc1.weight" dense<0.0> : tensor<4x4xf32> -> tensor<4x4xf32>
    %w2 = graph.constant "c.rel_pos_enc.fc2.weight" dense<0.0> : tensor<4x4xf32> -> tensor<4x4xf32>
    %c1 = graph.matmul %b, %w1 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> loc("n2")
    %c2 = graph.unary <tanh> %c1 : tensor<2x4xf32> -> tensor<2x4xf32> loc("n3")
    %c3 = graph.matmul %c2, %w2 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> loc("n4")
    %c4 = graph.binary <add> %b, %c3 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32> loc("n5")

    // Two results are read outside.
    // CHECK-NOT: graph.layer "d.pos_enc"
    %d1 = graph.unary <relu> %c4 : tensor<2x4xf32> -> tensor<2x4xf32> loc("/d/pos_enc/Relu")
    %d2 = graph.unary <tanh> %d1 : tensor<2x4xf32> -> tensor<2x4xf32> loc("/d/pos_enc/Tanh")

    // The shape changes. `position_embeddings` is no match.
    // CHECK-NOT: graph.layer "e.pos_enc"
    %v = graph.constant "v" dense<1.0> : tensor<4x3xf32> -> tensor<4x3xf32>
    %e = graph.matmul %d2, %v : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32> loc("/e/pos_enc/MatMul")
    %f = graph.unary <relu> %d1 : tensor<2x4xf32> -> tensor<2x4xf32> loc("/f/position_embeddings/Relu")
    return %d2, %f, %e : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x3xf32>
  }
}

// RUN: echo "rules: [{path: 'layers.*', role: block}, {path: 'layers.*.ada', role: adapter}, {path: 'layers.*.skip', role: none}]" > %t.yaml
// RUN: tare-opt %S/Inputs/nested.mlir --graph-mark-layers=rules=%t.yaml | FileCheck %s --check-prefix=NESTED
// NESTED: %[[L:.*]] = graph.layer "layers.0" "block" "rules"(%arg0)
// NESTED: graph.unary <relu>
// NESTED: graph.layer "layers.0.ada" "adapter" "rules"
// NESTED: graph.unary <tanh>
// NESTED: return %[[L]]
// RUN: echo "rules: [{path: 'layers.*', roll: block}]" > %t.bad.yaml
// RUN: not tare-opt %S/Inputs/nested.mlir --graph-mark-layers=rules=%t.bad.yaml 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: line 1: unknown key 'roll'
