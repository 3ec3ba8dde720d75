// A block with an adapter inside; read by mark_layers.mlir with a rules file.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = graph.unary <relu> %x : tensor<2x4xf32> -> tensor<2x4xf32> loc("/layers.0/mlp/Relu")
  %b = graph.unary <tanh> %a : tensor<2x4xf32> -> tensor<2x4xf32> loc("/layers.0/ada/Tanh")
  %c = graph.binary <add> %a, %b : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32> loc("/layers.0/ada/Add")
  %d = graph.binary <add> %x, %c : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32> loc("/layers.0/Add")
  return %d : tensor<2x4xf32>
}
