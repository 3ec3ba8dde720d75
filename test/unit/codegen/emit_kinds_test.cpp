// Every group kind end to end: planned, emitted, compiled, run on 1 to 3 threads at sizes 0, 1, odd and large, against the float64 reference.
#include "test/unit/codegen/Harness.h"
#include <gtest/gtest.h>

using tare::test::Program;
using tare::test::RunOptions;

namespace {

void checkSizes(Program &p, std::initializer_list<std::map<std::string, int64_t>> sizes, double tolerance = 1e-5) {
  ASSERT_TRUE(p.ok());
  uint64_t seed = 1;
  for (auto &symbols : sizes) p.check({symbols, seed++, tolerance});
}

TEST(EmitKinds, PointwiseFlatBroadcastAndTwoResults) {
  Program p(R"(
!x = tensor<?x?x40xf32, #graph.dims<["b", "s", 40]>>
func.func @main(%x: !x {graph.name = "x"}, %m: tensor<?x1xi64, #graph.dims<["b", 1]>> {graph.name = "m", test.range = [0, 1]})
    -> (!x {graph.name = "y"}, !x {graph.name = "z"}) {
  %0 = graph.group <pointwise>(%x) : (!x) -> !x {
  ^bb0(%a: !x):
    %h = graph.constant "" dense<0.5> : tensor<f32> -> tensor<f32>
    %1 = graph.binary <mul> %a, %h : !x, tensor<f32> -> !x
    %2 = graph.unary <tanh> %1 : !x -> !x
    graph.yield %2 : !x
  }
  %3 = graph.group <pointwise>(%0, %m) : (!x, tensor<?x1xi64, #graph.dims<["b", 1]>>) -> !x {
  ^bb0(%a: !x, %c: tensor<?x1xi64, #graph.dims<["b", 1]>>):
    %r = graph.reshape %c : tensor<?x1xi64, #graph.dims<["b", 1]>> -> tensor<?x1x1xi64, #graph.dims<["b", 1, 1]>>
    %f = graph.cast %r : tensor<?x1x1xi64, #graph.dims<["b", 1, 1]>> -> tensor<?x1x1xf32, #graph.dims<["b", 1, 1]>>
    %1 = graph.binary <add> %a, %f : !x, tensor<?x1x1xf32, #graph.dims<["b", 1, 1]>> -> !x
    graph.yield %1 : !x
  }
  return %0, %3 : !x, !x
}
)");
  checkSizes(p, {{{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 17}}, {{"b", 0}, {"s", 5}}, {{"b", 2}, {"s", 0}}, {{"b", 2}, {"s", 301}}});
}

TEST(EmitKinds, MovingOps) {
  Program p(R"(
!x = tensor<?x?x64xf32, #graph.dims<["b", "s", 64]>>
!t = tensor<?x4x?x16xf32, #graph.dims<["b", 4, "s", 16]>>
!h = tensor<?x?x4x16xf32, #graph.dims<["b", "s", 4, 16]>>
!half = tensor<?x4x?x8xf32, #graph.dims<["b", 4, "s", 8]>>
!p = tensor<?x?x66xf32, #graph.dims<["b", "s + 1", 66]>>
func.func @main(%x: !x {graph.name = "x"}) -> (!t {graph.name = "rope"}, !x {graph.name = "back"}, !p {graph.name = "padded"}) {
  %0 = graph.group <pointwise>(%x) : (!x) -> !t {
  ^bb0(%a: !x):
    %r = graph.reshape %a : !x -> !h
    %1 = graph.transpose %r [0, 2, 1, 3] : !h -> !t
    %l = graph.slice %1 <[0, 0, 0, 0]> [1, 1, 1, 1] : !t -> !half
    %u = graph.slice %1 <[0, 0, 0, 8]> [1, 1, 1, 1] : !t -> !half
    %n = graph.unary <neg> %u : !half -> !half
    %c = graph.concat 3 (%n, %l) : (!half, !half) -> !t
    %2 = graph.binary <add> %1, %c : !t, !t -> !t
    graph.yield %2 : !t
  }
  %3 = graph.group <pointwise>(%0) : (!t) -> !x {
  ^bb0(%a: !t):
    %1 = graph.transpose %a [0, 2, 1, 3] : !t -> !h
    %2 = graph.reshape %1 : !h -> !x
    graph.yield %2 : !x
  }
  %4 = graph.group <pointwise>(%x) : (!x) -> !p {
  ^bb0(%a: !x):
    %v = graph.constant "" dense<7.0> : tensor<f32> -> tensor<f32>
    %1 = graph.pad %a, %v <[0, 1, 1]> : !x, tensor<f32> -> !p
    graph.yield %1 : !p
  }
  return %0, %3, %4 : !t, !x, !p
}
)");
  checkSizes(p, {{{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 17}}, {{"b", 0}, {"s", 5}}, {{"b", 2}, {"s", 0}}, {{"b", 2}, {"s", 65}}});
}

constexpr char gatherModule[] = R"(
!i = tensor<?x?xi64, #graph.dims<["b", "s"]>>
!e = tensor<?x?x24xf32, #graph.dims<["b", "s", 24]>>
func.func @main(%ids: !i {graph.name = "ids", test.range = [RANGE]}, %table: tensor<50x24xf32> {graph.name = "table"}, %pos: tensor<100x24xf32> {graph.name = "pos"}) -> (!e {graph.name = "y"}) {
  %0 = graph.group <pointwise>(%ids, %table, %pos) : (!i, tensor<50x24xf32>, tensor<100x24xf32>) -> !e {
  ^bb0(%i: !i, %t: tensor<50x24xf32>, %p: tensor<100x24xf32>):
    %g = graph.gather %t[%i] 0 : tensor<50x24xf32>, !i -> !e
    %r = graph.range <[0, 1]> : tensor<?xi64, #graph.dims<["s"]>>
    %q = graph.gather %p[%r] 0 : tensor<100x24xf32>, tensor<?xi64, #graph.dims<["s"]>> -> tensor<?x24xf32, #graph.dims<["s", 24]>>
    %1 = graph.binary <add> %g, %q : !e, tensor<?x24xf32, #graph.dims<["s", 24]>> -> !e
    graph.yield %1 : !e
  }
  return %0 : !e
}
)";
std::string gatherText(const char *range) {
  std::string text = gatherModule;
  return text.replace(text.find("RANGE"), 5, range);
}

TEST(EmitKinds, GatherCountsNegativeIndicesFromTheEnd) {
  Program p(gatherText("-50, 49"));
  checkSizes(p, {{{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 17}}, {{"b", 0}, {"s", 5}}, {{"b", 2}, {"s", 100}}});
}

TEST(EmitKinds, GatherOutOfRangeIsAFaultAndReadsNothing) {
  Program p(gatherText("50, 1000000000000"));
  RunOptions options{{{"b", 2}, {"s", 9}}};
  options.expectFault = true;
  p.check(options);
}

TEST(EmitKinds, Reduce) {
  std::string text = "!x = tensor<?x?x19xf32, #graph.dims<[\"b\", \"s\", 19]>>\nfunc.func @main(%x: !x {graph.name = \"x\"}) -> (RESULTS) {\n", results, values, types;
  int n = 0;
  auto add = [&](const std::string &kind, const std::string &axes, const std::string &type) {
    std::string v = "%r" + std::to_string(n), name = kind + axes;
    for (char &c : name)
      if (c == ',' || c == ' ' || c == '[' || c == ']') c = '_';
    text += "  " + v + " = graph.group <reduce>(%x) : (!x) -> " + type + " {\n  ^bb0(%a: !x):\n    %1 = graph.reduce <" + kind + "> %a [" + axes + "] keepdims false : !x -> " + type +
            "\n    graph.yield %1 : " + type + "\n  }\n";
    results += (n ? ", " : "") + type + " {graph.name = \"" + name + "\"}";
    values += (n ? ", " : "") + v;
    types += (n ? ", " : "") + type;
    ++n;
  };
  for (std::string kind : {"sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum_exp"}) {
    add(kind, "2", "tensor<?x?xf32, #graph.dims<[\"b\", \"s\"]>>");
    add(kind, "1", "tensor<?x19xf32, #graph.dims<[\"b\", 19]>>");
    add(kind, "0, 2", "tensor<?xf32, #graph.dims<[\"s\"]>>");
  }
  add("arg_max", "2", "tensor<?x?xi64, #graph.dims<[\"b\", \"s\"]>>");
  add("arg_min", "1", "tensor<?x19xi64, #graph.dims<[\"b\", 19]>>");
  text += "  return " + values + " : " + types + "\n}\n";
  text.replace(text.find("RESULTS"), 7, results);
  Program p(text);
  checkSizes(p, {{{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 17}}, {{"b", 2}, {"s", 40}}}, 1e-4);
}

TEST(EmitKinds, Rows) {
  Program p(R"(
!x = tensor<?x?x48xf32, #graph.dims<["b", "s", 48]>>
func.func @main(%x: !x {graph.name = "x"}, %y: !x {graph.name = "y"}, %g: tensor<48xf32> {graph.name = "g"}, %c: tensor<48xf32> {graph.name = "c"})
    -> (!x {graph.name = "sum"}, !x {graph.name = "norm"}, !x {graph.name = "soft"}, !x {graph.name = "logsoft"}, !x {graph.name = "rms"}) {
  %0:2 = graph.group <row>(%x, %y, %g, %c) : (!x, !x, tensor<48xf32>, tensor<48xf32>) -> (!x, !x) {
  ^bb0(%a: !x, %b: !x, %s: tensor<48xf32>, %o: tensor<48xf32>):
    %1 = graph.binary <add> %a, %b : !x, !x -> !x
    %2 = graph.layer_norm %1, %s, %o {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (!x, tensor<48xf32>, tensor<48xf32>) -> !x
    graph.yield %1, %2 : !x, !x
  }
  %3 = graph.group <row>(%x, %y) : (!x, !x) -> !x {
  ^bb0(%a: !x, %b: !x):
    %1 = graph.binary <mul> %a, %b : !x, !x -> !x
    %2 = graph.softmax %1 2 : !x -> !x
    graph.yield %2 : !x
  }
  %4 = graph.group <row>(%x, %y) : (!x, !x) -> !x {
  ^bb0(%a: !x, %b: !x):
    %2 = graph.softmax %a 2 log : !x -> !x
    %5 = graph.binary <add> %2, %b : !x, !x -> !x
    graph.yield %5 : !x
  }
  %6 = graph.group <row>(%x, %g) : (!x, tensor<48xf32>) -> !x {
  ^bb0(%a: !x, %s: tensor<48xf32>):
    %1 = graph.unary <neg> %a : !x -> !x
    %2 = graph.rms_norm %1, %s {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (!x, tensor<48xf32>) -> !x
    graph.yield %2 : !x
  }
  return %0#0, %0#1, %3, %4, %6 : !x, !x, !x, !x, !x
}
)");
  checkSizes(p, {{{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 17}}, {{"b", 0}, {"s", 5}}, {{"b", 2}, {"s", 33}}});
}

TEST(EmitKinds, GemmWithEpilogue) {
  for (std::string type : {"f32", "f16", "bf16"}) {
    unsigned state = 7;
    Program p(R"(
!x = tensor<?x?x33xf32, #graph.dims<["b", "s", 33]>>
!y = tensor<?x?x70xf32, #graph.dims<["b", "s", 70]>>
func.func @main(%x: !x {graph.name = "x"}, %r: !y {graph.name = "r"}, %c: tensor<70xf32> {graph.name = "c"}) -> (!y {graph.name = "y"}) {
  %w = graph.constant "w" dense<[)" + [&] {
      std::string rows;
      state = 7;
      for (int k = 0; k < 33; ++k) {
        rows += k ? ", [" : "[";
        for (int n = 0; n < 70; ++n) {
          state = state * 1664525u + 1013904223u;
          rows += std::string(n ? ", " : "") + std::to_string((int(state >> 24) - 128) / 128.0);
        }
        rows += "]";
      }
      return rows;
    }() + "]> : tensor<33x70x" + type + "> -> tensor<33x70x" + type + R"(>
  %0 = graph.group <gemm>(%x, %w, %c, %r) : (!x, tensor<33x70x)" + type + R"(>, tensor<70xf32>, !y) -> !y {
  ^bb0(%a: !x, %w2: tensor<33x70x)" + type + R"(>, %o: tensor<70xf32>, %res: !y):
)" + (type == "f32" ? "" : "    %wide = graph.cast %w2 : tensor<33x70x" + type + "> -> tensor<33x70xf32>\n") +
              "    %1 = graph.matmul %a, " + (type == "f32" ? "%w2" : "%wide") + R"( : !x, tensor<33x70xf32> -> !y
    %2 = graph.binary <add> %1, %o : !y, tensor<70xf32> -> !y
    %3 = graph.unary <gelu_erf> %2 : !y -> !y
    %4 = graph.binary <add> %3, %res : !y, !y -> !y
    graph.yield %4 : !y
  }
  return %0 : !y
}
)");
    checkSizes(p, {{{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 17}}, {{"b", 0}, {"s", 5}}, {{"b", 1}, {"s", 128}}}, 2e-5);
  }
}

/// A dim of 1 has one index: the loop's counter and the 0 of broadcasting must name the same element of the root.
TEST(EmitKinds, DimsOfSizeOneBehindTheRoot) {
  Program p(R"(
!x = tensor<?x33xf32, #graph.dims<["s", 33]>>
!one = tensor<?x1xf32, #graph.dims<["s", 1]>>
!q = tensor<?x1x?x5xf32, #graph.dims<["b", 1, "s", 5]>>
!k = tensor<?x1x5x1xf32, #graph.dims<["b", 1, 5, 1]>>
!p = tensor<?x1x?x1xf32, #graph.dims<["b", 1, "s", 1]>>
func.func @main(%x: !x {graph.name = "x"}, %q: !q {graph.name = "q"}, %k: !k {graph.name = "k"}) -> (!one {graph.name = "gemm"}, !p {graph.name = "product"}, !one {graph.name = "row"}) {
  %w = graph.constant "w" dense<0.25> : tensor<33x1xf32> -> tensor<33x1xf32>
  %0 = graph.group <gemm>(%x, %w) : (!x, tensor<33x1xf32>) -> !one {
  ^bb0(%a: !x, %v: tensor<33x1xf32>):
    %two = graph.constant "" dense<2.0> : tensor<f32> -> tensor<f32>
    %1 = graph.matmul %a, %v : !x, tensor<33x1xf32> -> !one
    %2 = graph.binary <mul> %1, %two : !one, tensor<f32> -> !one
    graph.yield %2 : !one
  }
  %3 = graph.group <batch_matmul>(%q, %k) : (!q, !k) -> !p {
  ^bb0(%a: !q, %c: !k):
    %two = graph.constant "" dense<2.0> : tensor<f32> -> tensor<f32>
    %1 = graph.matmul %a, %c : !q, !k -> !p
    %2 = graph.binary <add> %two, %1 : tensor<f32>, !p -> !p
    graph.yield %2 : !p
  }
  %4 = graph.group <row>(%0) : (!one) -> !one {
  ^bb0(%a: !one):
    %half = graph.constant "" dense<0.5> : tensor<f32> -> tensor<f32>
    %1 = graph.softmax %a 1 : !one -> !one
    %2 = graph.binary <mul> %1, %half : !one, tensor<f32> -> !one
    %5 = graph.binary <add> %2, %a : !one, !one -> !one
    graph.yield %5 : !one
  }
  return %0, %3, %4 : !one, !p, !one
}
)");
  checkSizes(p, {{{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 17}}, {{"b", 0}, {"s", 5}}});
}

TEST(EmitKinds, BatchMatmul) {
  Program p(R"(
!q = tensor<?x4x?x24xf32, #graph.dims<["b", 4, "s", 24]>>
!k = tensor<?x?x4x24xf32, #graph.dims<["b", "t", 4, 24]>>
!s = tensor<?x4x?x?xf32, #graph.dims<["b", 4, "s", "t"]>>
!m = tensor<?x1x1x?xf32, #graph.dims<["b", 1, 1, "t"]>>
func.func @main(%q: !q {graph.name = "q"}, %k: !k {graph.name = "k"}, %m: !m {graph.name = "m"}, %i: tensor<?x3x5xi32, #graph.dims<["b", 3, 5]>> {graph.name = "i"},
    %v: tensor<24xf32> {graph.name = "v"})
    -> (!s {graph.name = "scores"}, tensor<?x3x3xi32, #graph.dims<["b", 3, 3]>> {graph.name = "ii"}, tensor<?x4x?xf32, #graph.dims<["b", 4, "s"]>> {graph.name = "qv"}) {
  %0 = graph.group <batch_matmul>(%q, %k, %m) : (!q, !k, !m) -> !s {
  ^bb0(%a: !q, %b: !k, %c: !m):
    %t = graph.transpose %b [0, 2, 3, 1] : !k -> tensor<?x4x24x?xf32, #graph.dims<["b", 4, 24, "t"]>>
    %1 = graph.matmul %a, %t : !q, tensor<?x4x24x?xf32, #graph.dims<["b", 4, 24, "t"]>> -> !s
    %h = graph.constant "" dense<0.125> : tensor<f32> -> tensor<f32>
    %2 = graph.binary <mul> %1, %h : !s, tensor<f32> -> !s
    %3 = graph.binary <add> %2, %c : !s, !m -> !s
    graph.yield %3 : !s
  }
  %4 = graph.group <batch_matmul>(%i) : (tensor<?x3x5xi32, #graph.dims<["b", 3, 5]>>) -> tensor<?x3x3xi32, #graph.dims<["b", 3, 3]>> {
  ^bb0(%a: tensor<?x3x5xi32, #graph.dims<["b", 3, 5]>>):
    %t = graph.transpose %a [0, 2, 1] : tensor<?x3x5xi32, #graph.dims<["b", 3, 5]>> -> tensor<?x5x3xi32, #graph.dims<["b", 5, 3]>>
    %1 = graph.matmul %a, %t : tensor<?x3x5xi32, #graph.dims<["b", 3, 5]>>, tensor<?x5x3xi32, #graph.dims<["b", 5, 3]>> -> tensor<?x3x3xi32, #graph.dims<["b", 3, 3]>>
    graph.yield %1 : tensor<?x3x3xi32, #graph.dims<["b", 3, 3]>>
  }
  %5 = graph.group <batch_matmul>(%q, %v) : (!q, tensor<24xf32>) -> tensor<?x4x?xf32, #graph.dims<["b", 4, "s"]>> {
  ^bb0(%a: !q, %b: tensor<24xf32>):
    %1 = graph.matmul %a, %b : !q, tensor<24xf32> -> tensor<?x4x?xf32, #graph.dims<["b", 4, "s"]>>
    graph.yield %1 : tensor<?x4x?xf32, #graph.dims<["b", 4, "s"]>>
  }
  return %0, %4, %5 : !s, tensor<?x3x3xi32, #graph.dims<["b", 3, 3]>>, tensor<?x4x?xf32, #graph.dims<["b", 4, "s"]>>
}
)");
  checkSizes(p, {{{"b", 1}, {"s", 1}, {"t", 1}}, {{"b", 3}, {"s", 17}, {"t", 9}}, {{"b", 0}, {"s", 5}, {"t", 4}}, {{"b", 2}, {"s", 70}, {"t", 65}}, {{"b", 2}, {"s", 3}, {"t", 0}}});
}

TEST(EmitKinds, AttentionWithBiasAndGroupedHeads) {
  Program p(R"(
!q = tensor<?x?x4x16xf32, #graph.dims<["b", "s", 4, 16]>>
!k = tensor<?x2x?x16xf32, #graph.dims<["b", 2, "t", 16]>>
!m = tensor<?x?xi64, #graph.dims<["b", "t"]>>
!mf = tensor<?x?xf32, #graph.dims<["b", "t"]>>
!m4 = tensor<?x1x1x?xf32, #graph.dims<["b", 1, 1, "t"]>>
func.func @main(%q: !q {graph.name = "q"}, %k: !k {graph.name = "k"}, %v: !k {graph.name = "v"}, %m: !m {graph.name = "m", test.range = [0, 3]}) -> (!q {graph.name = "y"}) {
  %0 = graph.group <attention>(%q, %k, %v, %m) : (!q, !k, !k, !m) -> !q {
  ^bb0(%a: !q, %b: !k, %c: !k, %d: !m):
    %big = graph.constant "" dense<-10.0> : tensor<f32> -> tensor<f32>
    %f = graph.cast %d : !m -> !mf
    %r = graph.reshape %f : !mf -> !m4
    %bias = graph.binary <mul> %r, %big : !m4, tensor<f32> -> !m4
    %1 = graph.attention %a, %b, %c, %bias {scale = 0.25 : f64, layout = "shhs"} : (!q, !k, !k, !m4) -> !q
    graph.yield %1 : !q
  }
  return %0 : !q
}
)");
  checkSizes(p, {{{"b", 1}, {"s", 1}, {"t", 1}}, {{"b", 3}, {"s", 17}, {"t", 9}}, {{"b", 0}, {"s", 5}, {"t", 4}}, {{"b", 2}, {"s", 70}, {"t", 65}}}, 2e-5);
}

// What the importer promises for two symbols of which a run makes one 1 or both equal: epilogue operands, pointwise operands and biases repeat along it.
TEST(EmitKinds, SizesThatOnlyARunKnowsToRepeat) {
  Program p(R"(
!x = tensor<?x24xf32, #graph.dims<["s", 24]>>
!h = tensor<?x40xf32, #graph.dims<["s", 40]>>
!e = tensor<?x?xf32, #graph.dims<["t", "u"]>>
!q = tensor<?x?x4x16xf32, #graph.dims<["b", "s", 4, 16]>>
!m = tensor<?x1x?x?xf32, #graph.dims<["c", 1, "t", "v"]>>
func.func @main(%x: !x {graph.name = "x"}, %e: !e {graph.name = "e"}, %q: !q {graph.name = "q"}, %m: !m {graph.name = "m"})
    -> (!h {graph.name = "y"}, !h {graph.name = "z"}, !q {graph.name = "a"}) {
  %w = graph.constant "w" dense<0.25> : tensor<24x40xf32> -> tensor<24x40xf32>
  %0 = graph.group <gemm>(%x, %w, %e) : (!x, tensor<24x40xf32>, !e) -> !h {
  ^bb0(%a: !x, %b: tensor<24x40xf32>, %c: !e):
    %1 = graph.matmul %a, %b : !x, tensor<24x40xf32> -> !h
    %2 = graph.binary <add> %1, %c : !h, !e -> !h
    graph.yield %2 : !h
  }
  %3 = graph.group <pointwise>(%0, %e) : (!h, !e) -> !h {
  ^bb0(%a: !h, %c: !e):
    %1 = graph.binary <mul> %c, %a : !e, !h -> !h
    graph.yield %1 : !h
  }
  %4 = graph.group <attention>(%q, %m) : (!q, !m) -> !q {
  ^bb0(%a: !q, %c: !m):
    %1 = graph.attention %a, %a, %a, %c {scale = 0.25 : f64, layout = "ssss"} : (!q, !q, !q, !m) -> !q
    graph.yield %1 : !q
  }
  return %0, %3, %4 : !h, !h, !q
}
)");
  auto sizes = [](int64_t s, int64_t t, int64_t u, int64_t b, int64_t c, int64_t v) {
    return std::map<std::string, int64_t>{{"s", s}, {"t", t}, {"u", u}, {"b", b}, {"c", c}, {"v", v}};
  };
  checkSizes(p, {sizes(5, 5, 40, 2, 2, 5), sizes(5, 1, 40, 2, 1, 5), sizes(17, 1, 1, 3, 1, 1), sizes(17, 17, 1, 3, 3, 1), sizes(1, 1, 1, 1, 1, 1), sizes(0, 1, 40, 2, 2, 1)}, 2e-5);
}

// q, k and v of one layer have no barrier between them; their reader has one in front of it.
TEST(EmitKinds, JoinedSteps) {
  Program p(R"(
!x = tensor<?x24xf32, #graph.dims<["s", 24]>>
!h = tensor<?x70xf32, #graph.dims<["s", 70]>>
func.func @main(%x: !x {graph.name = "x"}) -> (!h {graph.name = "y"}, !h {graph.name = "v"}) {
  %wq = graph.constant "wq" dense<0.25> : tensor<24x70xf32> -> tensor<24x70xf32>
  %wk = graph.constant "wk" dense<0.5> : tensor<24x70xf32> -> tensor<24x70xf32>
  %wv = graph.constant "wv" dense<0.125> : tensor<24x70xf32> -> tensor<24x70xf32>
  %q = graph.group <gemm>(%x, %wq) : (!x, tensor<24x70xf32>) -> !h {
  ^bb0(%a: !x, %b: tensor<24x70xf32>):
    %1 = graph.matmul %a, %b : !x, tensor<24x70xf32> -> !h
    graph.yield %1 : !h
  }
  %k = graph.group <gemm>(%x, %wk) : (!x, tensor<24x70xf32>) -> !h {
  ^bb0(%a: !x, %b: tensor<24x70xf32>):
    %1 = graph.matmul %a, %b : !x, tensor<24x70xf32> -> !h
    graph.yield %1 : !h
  }
  %t = graph.group <reduce>(%k) : (!h) -> tensor<?x1xf32, #graph.dims<["s", 1]>> {
  ^bb0(%a: !h):
    %1 = graph.reduce <max> %a [1] keepdims true : !h -> tensor<?x1xf32, #graph.dims<["s", 1]>>
    graph.yield %1 : tensor<?x1xf32, #graph.dims<["s", 1]>>
  }
  %v = graph.group <gemm>(%x, %wv) : (!x, tensor<24x70xf32>) -> !h {
  ^bb0(%a: !x, %b: tensor<24x70xf32>):
    %1 = graph.matmul %a, %b : !x, tensor<24x70xf32> -> !h
    graph.yield %1 : !h
  }
  %o = graph.group <pointwise>(%q, %t, %v) : (!h, tensor<?x1xf32, #graph.dims<["s", 1]>>, !h) -> !h {
  ^bb0(%a: !h, %b: tensor<?x1xf32, #graph.dims<["s", 1]>>, %c: !h):
    %1 = graph.binary <mul> %a, %b : !h, tensor<?x1xf32, #graph.dims<["s", 1]>> -> !h
    %2 = graph.binary <sub> %1, %c : !h, !h -> !h
    graph.yield %2 : !h
  }
  return %o, %v : !h, !h
}
)");
  checkSizes(p, {{{"s", 1}}, {{"s", 17}}, {{"s", 0}}, {{"s", 300}}});
}

constexpr char cacheModule[] = R"(
!past = tensor<?x2x?x16xf32, #graph.dims<["b", 2, "past", 16]>>
!new = tensor<?x?x2x16xf32, #graph.dims<["b", "s", 2, 16]>>
!all = tensor<?x2x?x16xf32, #graph.dims<["b", 2, "past + s", 16]>>
func.func @main(%q: !new {graph.name = "q"}, %old: !past {graph.name = "old"}, %k: !new {graph.name = "k"}) -> (!all {graph.name = "present"}, !new {graph.name = "y"}) {
  %0 = graph.group <append>(%old, %k) : (!past, !new) -> !all {
  ^bb0(%a: !past, %b: !new):
    %t = graph.transpose %b [0, 2, 1, 3] : !new -> tensor<?x2x?x16xf32, #graph.dims<["b", 2, "s", 16]>>
    %1 = graph.concat 2 (%a, %t) : (!past, tensor<?x2x?x16xf32, #graph.dims<["b", 2, "s", 16]>>) -> !all
    graph.yield %1 : !all
  }
  %2 = graph.group <attention>(%q, %0) : (!new, !all) -> !new {
  ^bb0(%a: !new, %b: !all):
    %1 = graph.attention %a, %b, %b {scale = 0.25 : f64, layout = "shhs"} : (!new, !all, !all) -> !new
    graph.yield %1 : !new
  }
  return %0, %2 : !all, !new
}
)";

TEST(EmitKinds, AppendCopiesWhenTheCallerOwnsTheCache) {
  Program p(cacheModule);
  checkSizes(p, {{{"b", 1}, {"past", 0}, {"s", 1}}, {{"b", 2}, {"past", 7}, {"s", 3}}, {{"b", 0}, {"past", 7}, {"s", 3}}, {{"b", 2}, {"past", 0}, {"s", 0}}}, 2e-5);
}

TEST(EmitKinds, AppendInPlaceWhenTheContextOwnsTheCache) {
  Program p(cacheModule);
  ASSERT_TRUE(p.ok());
  for (std::map<std::string, int64_t> symbols : {std::map<std::string, int64_t>{{"b", 1}, {"past", 0}, {"s", 5}}, {{"b", 2}, {"past", 7}, {"s", 1}}, {{"b", 2}, {"past", 60}, {"s", 4}}}) {
    RunOptions options{symbols, 5, 2e-5};
    options.linked = true;
    p.check(options);
  }
}

} // namespace
