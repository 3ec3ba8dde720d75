// Bad inputs B47 to B51, B61 to B63, B69: producers, consumers, cycles, arity, attributes, functions, the long chain.
#include "test/support/OnnxModels.h"
#include <gtest/gtest.h>

using namespace tare::test;

TEST(BadStructure, B47NeverProduced) {
  OnnxModel output;
  output.input("x").output("nowhere");
  output.node("Neg", {"x"}, {"y"});
  EXPECT_SAYS(refusal(output), "graph output 'nowhere' is never produced");
  OnnxModel input;
  input.input("x").output("y");
  input.node("Add", {"x", "ghost"}, {"y"}).set_name("adder");
  EXPECT_SAYS(refusal(input), "tensor 'ghost' is read by node 'adder', but nothing produces it");
}

TEST(BadStructure, B48ProducedTwice) {
  OnnxModel m;
  m.input("x").output("y");
  m.node("Neg", {"x"}, {"y"}).set_name("one");
  m.node("Abs", {"x"}, {"y"}).set_name("two");
  EXPECT_SAYS(refusal(m), "tensor 'y' is produced twice: by nodes 'one' and 'two'");
  OnnxModel clash;
  clash.input("x").output("w");
  clash.floats("w", {1}, {1});
  clash.node("Neg", {"x"}, {"w"}).set_name("one");
  EXPECT_SAYS(refusal(clash), "tensor 'w' is produced by node 'one', but a graph input or initializer has that name");
  OnnxModel twice;
  twice.input("x").output("y");
  twice.floats("w", {1}, {1});
  twice.floats("w", {2}, {1});
  twice.node("Add", {"x", "w"}, {"y"});
  EXPECT_SAYS(refusal(twice), "two initializers are named 'w'");
}

TEST(BadStructure, B49Cycles) {
  OnnxModel two;
  two.input("x").output("b");
  two.node("Add", {"x", "b"}, {"a"}).set_name("first");
  two.node("Neg", {"a"}, {"b"}).set_name("second");
  EXPECT_SAYS(refusal(two), "the nodes form a cycle: ");
  EXPECT_SAYS(refusal(two), "'second' -> 'first'");
  OnnxModel self;
  self.input("x").output("a");
  self.node("Add", {"x", "a"}, {"a"}).set_name("loop");
  EXPECT_SAYS(refusal(self), "the nodes form a cycle: 'loop'");
}

TEST(BadStructure, B49WrongOrderIsSorted) { // bugs B40
  OnnxModel m;
  m.input("x").output("y");
  m.node("Relu", {"a"}, {"y"}).set_name("late");
  m.node("Neg", {"x"}, {"a"}).set_name("early");
  std::string text = imported(m);
  EXPECT_LT(text.find("graph.unary <neg>"), text.find("graph.unary <relu>")) << text;
}

TEST(BadStructure, EqualNodeNamesAreMadeUnique) { // bugs B40
  OnnxModel m;
  m.input("x").output("y");
  m.node("Neg", {"x"}, {"a"}).set_name("same");
  m.node("Neg", {"a"}, {"y"}).set_name("same");
  EXPECT_EQ(refusal(m), "imported");
}

TEST(BadStructure, B50Arity) {
  OnnxModel none;
  none.input("x").output("y");
  none.node("MatMul", {}, {"y"}).set_name("m");
  EXPECT_SAYS(refusal(none), "MatMul: 0 operands, allowed are 2");
  OnnxModel many;
  many.input("x").output("y");
  many.node("Add", {"x", "x", "x"}, {"y"}).set_name("m");
  EXPECT_SAYS(refusal(many), "Add: 3 operands, allowed are 2");
  OnnxModel empty;
  empty.input("x").output("y");
  empty.node("MatMul", {"", "x"}, {"y"}).set_name("m");
  EXPECT_SAYS(refusal(empty), "required operand 0 is missing");
  EXPECT_SAYS(refusal(empty), "[node m]");
  OnnxModel outputs;
  outputs.input("x").output("y");
  outputs.node("Neg", {"x"}, {"y", "z"});
  EXPECT_SAYS(refusal(outputs), "2 outputs, allowed are 1 to 1");
}

TEST(BadStructure, B51AttributeKinds) {
  OnnxModel text;
  text.input("x").output("y");
  attribute(text.node("Softmax", {"x"}, {"y"}), "axis", onnx::AttributeProto::STRING).set_s("1");
  EXPECT_SAYS(refusal(text), "attribute 'axis' must be of kind int, got string");
  OnnxModel floats;
  floats.input("x").output("y");
  attribute(floats.node("Transpose", {"x"}, {"y"}), "perm", onnx::AttributeProto::FLOATS).add_floats(1);
  EXPECT_SAYS(refusal(floats), "attribute 'perm' must be of kind ints, got floats");
  OnnxModel unknown;
  unknown.input("x").output("y");
  set(unknown.node("Neg", {"x"}, {"y"}), "colour", int64_t(1));
  EXPECT_SAYS(refusal(unknown), "attribute 'colour' is not known for this op");
}

TEST(BadStructure, B61DeepSubgraphs) {
  std::string graph; // GraphProto{1: NodeProto{4: "If", 5: AttributeProto{6: GraphProto}}}, 10000 deep, as bytes
  auto wrap = [](int field, const std::string &inner) {
    std::string out(1, static_cast<char>(field << 3 | 2));
    for (size_t n = inner.size();; n >>= 7) {
      out += static_cast<char>(n > 127 ? (n & 127) | 128 : n);
      if (n <= 127) break;
    }
    return out + inner;
  };
  for (int i = 0; i < 10000; ++i) graph = wrap(1, wrap(4, "If") + wrap(5, wrap(6, graph)));
  TempDir dir;
  EXPECT_SAYS(refusal(dir.write("m.onnx", OnnxModel().bytes() + wrap(7, graph))), "nesting limit of 64");
}

TEST(BadStructure, B62Functions) {
  auto function = [](OnnxModel &m, const std::string &name, const std::string &calls) {
    auto *f = m.proto.add_functions();
    f->set_domain("f"), f->set_name(name);
    f->add_input("a"), f->add_output("b");
    auto *set = f->add_opset_import();
    set->set_domain("f"), set->set_version(1);
    auto *n = f->add_node();
    OnnxModel::addNode(n, calls, {"a"}, {"b"}, "f");
  };
  OnnxModel self;
  self.import("f", 1).input("x").output("y");
  function(self, "A", "A");
  self.node("A", {"x"}, {"y"}, "f");
  EXPECT_SAYS(refusal(self), "functions call each other in a cycle: A -> A");
  OnnxModel pair;
  pair.import("f", 1).input("x").output("y");
  function(pair, "A", "B");
  function(pair, "B", "A");
  pair.node("A", {"x"}, {"y"}, "f");
  EXPECT_SAYS(refusal(pair), "functions call each other in a cycle: A -> B -> A");
  OnnxModel twice;
  twice.import("f", 1).input("x").output("y");
  function(twice, "A", "B");
  function(twice, "A", "B");
  EXPECT_SAYS(refusal(twice), "function 'f::A' is defined twice");
  OnnxModel bomb; // each calls the next one twice: 2^40 nodes
  bomb.import("f", 1).input("x").output("y");
  for (int i = 0; i < 30; ++i) {
    function(bomb, "F" + std::to_string(i), "F" + std::to_string(i + 1));
    auto *f = bomb.proto.mutable_functions(i);
    f->mutable_node(0)->set_output(0, "m");
    OnnxModel::addNode(f->add_node(), i == 29 ? "F30" : "F" + std::to_string(i + 1), {"m"}, {"b"}, "f");
  }
  auto *last = bomb.proto.add_functions();
  last->set_domain("f"), last->set_name("F30");
  last->add_input("a"), last->add_output("b");
  auto *set = last->add_opset_import();
  set->set_version(17);
  OnnxModel::addNode(last->add_node(), "Identity", {"a"}, {"b"});
  bomb.node("F0", {"x"}, {"y"}, "f");
  EXPECT_SAYS(refusal(bomb), "exit 7: more than 2000000 nodes after inlining functions");
}

TEST(BadStructure, B63MillionNodes) {
  OnnxModel m;
  m.input("x").output("t1000000");
  for (int i = 0; i < 1000000; ++i) m.node("Identity", {i ? "t" + std::to_string(i) : "x"}, {"t" + std::to_string(i + 1)});
  EXPECT_EQ(refusal(m), "imported");
}

TEST(BadStructure, B69Inputs) {
  OnnxModel twice;
  twice.input("x").input("x").output("y");
  twice.node("Neg", {"x"}, {"y"});
  EXPECT_SAYS(refusal(twice), "two graph inputs are named 'x'");
  OnnxModel untyped;
  untyped.output("y");
  untyped.proto.mutable_graph()->add_input()->set_name("x");
  untyped.node("Neg", {"x"}, {"y"});
  EXPECT_SAYS(refusal(untyped), "graph input 'x' has no type");
  OnnxModel unshaped;
  unshaped.input("x").output("y");
  unshaped.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  unshaped.node("Neg", {"x"}, {"y"});
  EXPECT_SAYS(refusal(unshaped), "graph input 'x' has no shape");
  OnnxModel text;
  text.input("x", 8).output("y");
  text.node("Identity", {"x"}, {"y"});
  EXPECT_SAYS(refusal(text), "element type string is not supported");
}
