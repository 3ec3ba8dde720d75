// Shape arithmetic becomes symbolic constants; sizes that only a run knows are not frozen (B29).
// RUN: tare-opt %s --graph-fold-shapes | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[A:.*]] = graph.dims_constant <["b", "2*s", 4]>
// CHECK-DAG: %[[N:.*]] = graph.constant "" dense<12>
// CHECK: return %[[A]], %[[N]]
func.func @main(%x: tensor<?x?x8xf32, #graph.dims<["b", "s", 8]>>) -> (tensor<3xi64>, tensor<i64>) {
  %shape = graph.dims_constant <["b", "s", 8]> : tensor<3xi64>
  %zero = graph.constant "" dense<0> : tensor<1xi64> -> tensor<1xi64>
  %one = graph.constant "" dense<1> : tensor<1xi64> -> tensor<1xi64>
  %two = graph.constant "" dense<2> : tensor<i64> -> tensor<i64>
  %four = graph.constant "" dense<4> : tensor<1xi64> -> tensor<1xi64>
  %b = graph.gather %shape[%zero] 0 : tensor<3xi64>, tensor<1xi64> -> tensor<1xi64>
  %s = graph.gather %shape[%one] 0 : tensor<3xi64>, tensor<1xi64> -> tensor<1xi64>
  %s2 = graph.binary <mul> %s, %two : tensor<1xi64>, tensor<i64> -> tensor<1xi64>
  %all = graph.concat 0(%b, %s2, %four) : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
  %d = graph.slice %shape <[2]> [1] : tensor<3xi64> -> tensor<1xi64>
  %sum = graph.binary <add> %d, %four : tensor<1xi64>, tensor<1xi64> -> tensor<1xi64>
  %n = graph.reshape %sum : tensor<1xi64> -> tensor<i64>
  return %all, %n : tensor<3xi64>, tensor<i64>
}
