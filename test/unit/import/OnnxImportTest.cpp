// What the ONNX importer resolves: symbolic shapes and contents, constraints, names and metadata; and cases of bugs.md that concern import.
#include "test/support/OnnxModels.h"
#include <climits>
#include <gtest/gtest.h>

using namespace tare::test;

namespace {
size_t count(const std::string &text, const std::string &part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}
} // namespace

TEST(OnnxImport, ShapeChainsBecomeTypes) { // bugs B29
  OnnxModel m;
  m.input("x", 1, {"B", "S", "8"}).output("y");
  m.ints("zero", {0}), m.ints("one", {1}), m.ints("two", {2}), m.ints("four", {4});
  m.node("Shape", {"x"}, {"shape"});
  m.node("Gather", {"shape", "zero"}, {"b"});
  m.node("Gather", {"shape", "one"}, {"s"});
  m.node("Mul", {"s", "two"}, {"s2"});
  set(m.node("Concat", {"b", "s2", "four"}, {"target"}), "axis", int64_t(0));
  m.node("Reshape", {"x", "target"}, {"y"});
  std::string text = imported(m);
  EXPECT_SAYS(text, "graph.reshape");
  EXPECT_SAYS(text, "#graph.dims<[\"B\", \"2*S\", 4]>");
  EXPECT_EQ(count(text, "graph.dims_constant") + count(text, "graph.constant"), 0u) << text; // the chain is gone
  EXPECT_EQ(count(text, "graph.constraints"), 0u) << text;                                   // 8*B*S == 4*B*2*S
}

TEST(OnnxImport, SliceOfATableNeedsAConstraint) {
  OnnxModel m;
  m.input("x", 1, {"S", "1"}).output("y");
  auto &table = m.floats("table", {}, {512, 1});
  table.set_raw_data(std::string(512 * 4, 0));
  m.ints("zero", {0});
  auto &shape = m.node("Shape", {"x"}, {"s"});
  set(shape, "end", int64_t(1));
  m.node("Slice", {"table", "zero", "s", "zero"}, {"rows"});
  m.node("Add", {"x", "rows"}, {"y"}).set_name("add");
  std::string text = imported(m);
  EXPECT_SAYS(text, "#graph.dims<[\"min(512, S)\", 1]>");
  EXPECT_SAYS(text, "kind = \"at_most\"");
  EXPECT_SAYS(text, "node 'add' (Add, tensor 'y'): S must be at most 512");
  EXPECT_SAYS(text, "-> (tensor<?x1xf32, #graph.dims<[\"S\", 1]>>");
}

TEST(OnnxImport, TwoSymbolsNeedAConstraint) {
  OnnxModel m;
  m.input("x", 1, {"S"}).input("z", 1, {"T"}).output("y");
  m.node("Add", {"x", "z"}, {"y"}).set_name("add");
  EXPECT_SAYS(imported(m), "message = \"node 'add' (Add, tensor 'y'): T must be equal to S, or 1\"");
}

TEST(OnnxImport, TheOperandThatRepeatsElsewhereMayBeRepeated) { // a mask [B,1,S,T] against scores [B,H,U,V], whichever comes first
  for (bool maskFirst : {false, true}) {
    OnnxModel m;
    m.input("scores", 1, {"B", "4", "U", "V"}).input("mask", 1, {"B", "1", "S", "T"}).output("y");
    m.node("Add", maskFirst ? Strings{"mask", "scores"} : Strings{"scores", "mask"}, {"y"}).set_name("add");
    std::string text = imported(m);
    EXPECT_SAYS(text, "S must be equal to U, or 1");
    EXPECT_SAYS(text, "T must be equal to V, or 1");
    EXPECT_SAYS(text, "-> (tensor<?x4x?x?xf32, #graph.dims<[\"B\", 4, \"U\", \"V\"]>>");
  }
}

TEST(OnnxImport, BatchesOfAMatmulMustBeEqual) {
  OnnxModel m;
  m.input("x", 1, {"S", "2", "3"}).input("z", 1, {"T", "3", "4"}).output("y");
  m.node("MatMul", {"x", "z"}, {"y"}).set_name("mm");
  EXPECT_SAYS(imported(m), "kind = \"equal\", message = \"node 'mm' (MatMul, tensor 'y'): S must be equal to T\"");
}

TEST(OnnxImport, SqueezeWithoutAxesNeedsFixedDims) {
  OnnxModel m;
  m.input("x", 1, {"1", "S", "4"}).output("y");
  m.node("Squeeze", {"x"}, {"y"}).set_name("sq");
  EXPECT_SAYS(imported(m), "without axes it would remove dimension 1 (S)");
  OnnxModel fixed;
  fixed.input("x", 1, {"1", "3", "4"}).output("y");
  fixed.node("Squeeze", {"x"}, {"y"}).set_name("sq");
  EXPECT_SAYS(imported(fixed), "-> (tensor<3x4xf32>");
}

TEST(OnnxImport, ExpandThroughEqualAndWhere) { // the legacy exporter's form: -1 in the target means the own size
  OnnxModel m;
  m.input("x", 1, {"B", "1"}).input("t", 1, {"S"}).output("y");
  m.ints("minus", {-1}), m.ints("len", {2});
  m.node("Shape", {"t"}, {"s"});
  set(m.node("Concat", {"minus", "s"}, {"want"}), "axis", int64_t(0));
  auto &value = attribute(m.node("ConstantOfShape", {"len"}, {"ones"}), "value", onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(7), value.mutable_t()->add_dims(1), value.mutable_t()->add_int64_data(1);
  m.node("Mul", {"ones", "minus"}, {"minuses"});
  m.node("Equal", {"want", "minuses"}, {"cond"});
  m.node("Where", {"cond", "ones", "want"}, {"target"});
  m.node("Expand", {"x", "target"}, {"y"});
  EXPECT_SAYS(imported(m), "-> (tensor<?x?xf32, #graph.dims<[\"B\", \"S\"]>>");
}

TEST(OnnxImport, EmptyDimsAreCountedExactly) { // `past` may be 0: Equal(past, 0) must not be decided while importing
  OnnxModel m;
  m.input("x", 1, {"P"}).output("y");
  m.ints("zero", {0}), m.ints("five", {5}), m.ints("six", {6});
  m.node("Shape", {"x"}, {"p"});
  m.node("Equal", {"p", "zero"}, {"empty"});
  m.node("Where", {"empty", "five", "six"}, {"y"});
  EXPECT_SAYS(imported(m), "graph.select");
}

TEST(OnnxImport, AllowZero) { // bugs B26
  OnnxModel m;
  m.input("x", 1, {"0", "8", "2"}).output("y");
  m.ints("a", {4, 2, -1}), m.ints("b", {0, 0, 4});
  m.node("Reshape", {"x", "a"}, {"t"});
  set(m.node("Reshape", {"t", "b"}, {"y"}), "allowzero", int64_t(1));
  EXPECT_SAYS(imported(m), "-> (tensor<0x0x4xf32>");
}

TEST(OnnxImport, DeclaredShapesThatAreWrong) { // bugs B31
  OnnxModel m;
  m.input("x", 1, {"S"}).output("y", 1, {"4"});
  m.node("Relu", {"x"}, {"y"});
  std::vector<std::string> warnings;
  EXPECT_SAYS(imported(m, &warnings), "-> (tensor<?xf32, #graph.dims<[\"S\"]>>");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_SAYS(warnings[0], "graph output 'y' is declared with shape [4], the graph computes [S]");
}

TEST(OnnxImport, SlicesToTheEnd) { // bugs B37
  OnnxModel m;
  m.input("x", 1, {"5"}).output("a").output("b").output("c");
  m.ints("one", {1}), m.ints("max", {INT64_MAX}), m.ints("almost", {INT64_MAX - 1}), m.ints("min", {INT64_MIN}), m.ints("minus", {-1}), m.ints("zero", {0});
  m.node("Slice", {"x", "one", "max"}, {"a"});
  m.node("Slice", {"x", "one", "almost", "zero"}, {"b"});
  m.node("Slice", {"x", "max", "min", "zero", "minus"}, {"c"});
  std::string text = imported(m);
  EXPECT_SAYS(text, "-> (tensor<4xf32> {graph.name = \"a\"}, tensor<4xf32> {graph.name = \"b\"}, tensor<5xf32> {graph.name = \"c\"})");
  EXPECT_SAYS(text, "<[4]> [-1]"); // starts at the last element and walks down
}

TEST(OnnxImport, TheLastElementOfWhatMayBeEmpty) { // x[3:][-1:] of a short x is empty, and legal
  OnnxModel m;
  m.input("x", 1, {"S"}).output("y");
  m.ints("three", {3}), m.ints("last", {-1}), m.ints("far", {INT64_MAX});
  m.node("Slice", {"x", "three", "far"}, {"rest"});
  m.node("Slice", {"rest", "last", "far"}, {"y"});
  EXPECT_EQ(imported(m).find("graph.constraints"), std::string::npos);
}

TEST(OnnxImport, ReductionOverNoAxes) { // the element stays, the steps around the sum are done
  for (auto [op, says] : {std::pair("ReduceL1", "graph.unary <abs>"), {"ReduceL2", "graph.unary <abs>"}, {"ReduceSumSquare", "graph.binary <mul>"}, {"ReduceLogSum", "graph.unary <log>"}, {"ReduceSum", "return %arg0"}, {"ReduceLogSumExp", "return %arg0"}}) {
    OnnxModel m(18);
    m.input("x", 1, {"S"}).output("y");
    set(m.node(op, {"x"}, {"y"}), "noop_with_empty_axes", int64_t(1));
    EXPECT_SAYS(imported(m), says);
  }
}

TEST(OnnxImport, IntegersAbove32Bits) { // bugs B37
  OnnxModel m;
  m.output("y");
  m.ints("a", {3000000000}), m.ints("b", {3000000000});
  m.node("Equal", {"a", "b"}, {"y"});
  EXPECT_SAYS(imported(m), "dense<true>");
}

TEST(OnnxImport, EmptyNamesKeepTheirPlace) { // bugs B39
  OnnxModel m;
  m.input("x").output("y").output("p");
  m.floats("max", {1}, {}), m.ints("none", {});
  m.node("Clip", {"x", "", "max"}, {"y"});
  set(m.node("Split", {"x", ""}, {"p", "q"}), "axis", int64_t(1));
  std::string text = imported(m);
  EXPECT_SAYS(text, "graph.binary <min>");
  EXPECT_EQ(count(text, "graph.binary <max>"), 0u);
  EXPECT_SAYS(text, "[\"S\", 2]");
  OnnxModel dropout;
  dropout.input("x").output("y");
  dropout.node("Dropout", {"x"}, {"y", ""});
  EXPECT_SAYS(imported(dropout), "return %arg0");
}

TEST(OnnxImport, PackedFourBitNumbers) { // bugs B42
  OnnxModel m(21, 10);
  m.output("y");
  auto &q = m.ints("q", {});
  q.set_data_type(22), q.clear_dims(), q.add_dims(3), q.set_raw_data("\xE1\x03");
  m.floats("s", {0.5f}, {});
  m.node("DequantizeLinear", {"q", "s"}, {"y"});
  EXPECT_SAYS(imported(m), "dense<[1, -2, 3]> : tensor<3xi4>");
  q.set_raw_data("\xE1");
  EXPECT_SAYS(refusal(m), "raw_data holds 1 bytes, shape and type need 2");
  q.set_raw_data("\xE1\x03"), q.set_data_type(21);
  EXPECT_SAYS(imported(m), "dense<[1, 14, 3]> : tensor<3xui4>");
}

TEST(OnnxImport, BlockedScales) { // bugs B42: block_size 2 over an axis of 5 has three blocks
  auto blocked = [](int64_t scales) {
    OnnxModel m(21, 10);
    m.output("y");
    auto &q = m.ints("q", {});
    q.set_data_type(22), q.clear_dims(), q.add_dims(5), q.set_raw_data("\x21\x43\x05");
    m.floats("s", std::vector<float>(scales, 1), {scales});
    auto &n = m.node("DequantizeLinear", {"q", "s"}, {"y"});
    set(n, "axis", int64_t(0)), set(n, "block_size", int64_t(2));
    return imported(m);
  };
  EXPECT_SAYS(blocked(3), "block_size = 2");
  EXPECT_SAYS(blocked(2), "scale [2] does not fit blocks of 2 along axis 0 of [5]");
}

TEST(OnnxImport, OldSoftmaxFlattens) {
  OnnxModel m(11);
  m.input("x", 1, {"B", "S", "4"}).output("y");
  m.node("Softmax", {"x"}, {"y"});
  std::string text = imported(m);
  EXPECT_SAYS(text, "#graph.dims<[\"B\", \"4*S\"]>");
  EXPECT_EQ(count(text, "graph.reshape"), 2u);
}

TEST(OnnxImport, SymbolsGetIdentifiers) {
  OnnxModel m;
  m.input("x", 1, {"past sequence/length", "", "batch"}).input("z", 1, {"past sequence/length"}).output("y");
  m.node("Neg", {"x"}, {"y"});
  std::string text = imported(m);
  EXPECT_SAYS(text, "#graph.dims<[\"past_sequence_length\", \"x_d1\", \"batch\"]>");
  EXPECT_SAYS(text, "%arg1: tensor<?xf32, #graph.dims<[\"past_sequence_length\"]>>");
}

TEST(OnnxImport, InputDimsThatAreExpressions) {
  OnnxModel m;
  m.input("mask", 1, {"batch", "past + sequence"}).input("ids", 1, {"batch", "sequence"}).input("cache", 1, {"batch", "past"}).output("y");
  auto &n = m.node("Concat", {"cache", "ids"}, {"all"});
  set(n, "axis", int64_t(1));
  m.node("Add", {"mask", "all"}, {"y"});
  std::string text = imported(m);
  EXPECT_SAYS(text, "%arg0: tensor<?x?xf32, #graph.dims<[\"batch\", \"sequence + past\"]>>");
  EXPECT_EQ(count(text, "graph.constraints"), 0u) << text;
}

TEST(OnnxImport, MetadataNewerThanTheLibrary) {
  OnnxModel m;
  m.input("x").output("y");
  auto &n = m.node("Neg", {"x"}, {"y"});
  auto entry = [](const std::string &key, const std::string &value) {
    onnx::StringStringEntryProto e;
    e.set_key(key), e.set_value(value);
    return e.SerializeAsString();
  };
  // Field 9 as a newer library writes it.
  n.mutable_unknown_fields()->AddLengthDelimited(9, entry("is_position_layer", "True"));
  n.mutable_unknown_fields()->AddLengthDelimited(9, entry("pkg.torch.onnx.name_scopes", "['', 'm', 'm.layers.1', 'm.layers.1.attn', 'linear_10']"));
  m.proto.mutable_graph()->mutable_unknown_fields()->AddLengthDelimited(16, entry("role", "none"));
  std::string text = imported(m);
  EXPECT_SAYS(text, "is_position_layer = \"True\"");
  EXPECT_SAYS(text, "graph.scope = \"m.layers.1.attn\"");
  EXPECT_SAYS(text, "graph.meta = {role = \"none\"}");
}

TEST(OnnxImport, FunctionsAreInlined) {
  OnnxModel m;
  m.import("f", 1).input("x").output("y");
  auto *f = m.proto.add_functions();
  f->set_domain("f"), f->set_name("Leak");
  f->add_input("a"), f->add_output("b"), f->add_attribute("slope");
  auto *opset = f->add_opset_import();
  opset->set_version(17);
  auto &inner = OnnxModel::addNode(f->add_node(), "LeakyRelu", {"a"}, {"b"});
  auto &ref = attribute(inner, "alpha", onnx::AttributeProto::FLOAT);
  ref.set_ref_attr_name("slope");
  auto &call = m.node("Leak", {"x"}, {"y"}, "f");
  call.set_name("call");
  attribute(call, "slope", onnx::AttributeProto::FLOAT).set_f(0.25f);
  std::string text = imported(m);
  EXPECT_SAYS(text, "dense<2.500000e-01>");
  EXPECT_SAYS(text, "graph.tensor = \"call/b\"");
}

TEST(OnnxImport, ChangedFidelityFunctionIsInlined) {
  TempDir dir;
  std::string bytes = readFile(TARE_TEST_DATA "/contract-lm/contract-lm.onnx");
  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(bytes));
  std::filesystem::copy_file(TARE_TEST_DATA "/contract-lm/contract-lm.weights", dir.path("contract-lm.weights"));
  EXPECT_EQ(count(imported(dir.write("a.onnx", bytes)), "graph.fidelity_check"), 3u);
  for (auto &n : *proto.mutable_functions(0)->mutable_node())
    if (n.op_type() == "Less") n.set_op_type("Greater");
  std::string text = imported(dir.write("b.onnx", proto.SerializeAsString()));
  EXPECT_EQ(count(text, "graph.fidelity_check"), 0u);
  EXPECT_EQ(count(text, "graph.binary <gt>"), 3u);
}

TEST(OnnxImport, TestModels) {
  struct Case { const char *path, *result; };
  for (auto [path, result] : std::initializer_list<Case>{
           {"contract-lm/contract-lm.onnx", "tensor<?x?x260xf32, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"},
           {"contract-lm/contract-lm-anonymous.onnx", "tensor<?x?x260xf32, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"},
           {"contract-lm/contract-lm-balanced.onnx", "tensor<?x?x260xf32, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"},
           {"contract-lm/contract-lm-dynamo.onnx", "tensor<?x?x260xf32, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"},
           {"contract-lm/contract-lm-legacy.onnx", "tensor<?x?x260xf32, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"},
           {"contract-lm/contract-lm-f16.onnx", "tensor<?x?x260xf16, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"},
           {"contract-lm/contract-lm-kv.onnx", "tensor<?x4x?x32xf32, #graph.dims<[\"batch\", 4, \"sequence + past\", 32]>> {graph.name = \"present.7.value\"}"},
           {"bert-tiny/export-legacy.onnx", "tensor<?x?x96xf32, #graph.dims<[\"batch\", \"sequence\", 96]>> {graph.name = \"last_hidden_state\"}"},
           {"bert-tiny/export-dynamo.onnx", "tensor<?x?x96xf32, #graph.dims<[\"batch\", \"sequence\", 96]>> {graph.name = \"last_hidden_state\"}"},
           {"distilbert-tiny/export-legacy.onnx", "tensor<?x?x96xf32, #graph.dims<[\"batch\", \"sequence\", 96]>> {graph.name = \"last_hidden_state\"}"},
           {"distilbert-tiny/export-dynamo.onnx", "tensor<?x?x96xf32, #graph.dims<[\"batch\", \"sequence\", 96]>> {graph.name = \"last_hidden_state\"}"},
           {"llama-pro-tiny/export-legacy.onnx", "tensor<?x?x260xf32, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"},
           {"llama-pro-tiny/export-dynamo.onnx", "tensor<?x?x260xf32, #graph.dims<[\"batch\", \"sequence\", 260]>> {graph.name = \"logits\"}"}}) {
    std::string text = imported(std::string(TARE_TEST_DATA "/") + path);
    EXPECT_SAYS(text.substr(0, 20000), result) << path;
    EXPECT_EQ(count(text, "kind = \"equal\""), 0u) << path; // nothing in these models is left to a run but table lengths
  }
}
