// --emit-onnx on the protobuf level: what goes, what stays, what is copied. That ONNX Runtime computes the same is tested in test/e2e.
#include "compiler/import/EmitOnnx.h"
#include "test/support/OnnxModels.h"
#include <gtest/gtest.h>

using namespace tare;
using namespace tare::test;
namespace fs = std::filesystem;

namespace {
onnx::ModelProto read(const std::string &path) {
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(readFile(path)));
  return proto;
}
std::string emit(const std::string &from, const std::string &to, std::vector<LayerRemoval> removals) {
  auto error = emitPrunedOnnx(from, to, removals);
  return error ? llvm::toString(std::move(error)) : "";
}
std::vector<std::string> names(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
  std::vector<std::string> list;
  for (auto &n : nodes) list.push_back(n.name());
  return list;
}
/// x -> before -> h; layer: h -> f (w) -> g -> o = h + g; after: o -> y. `idle` is dead in the source already.
OnnxModel residual() {
  OnnxModel m;
  m.input("x").output("y");
  m.floats("w", {0, 0, 0, 0}, {4});
  m.floats("unused", {1}, {1});
  m.node("Neg", {"x"}, {"h"}).set_name("before");
  m.node("Mul", {"h", "w"}, {"g"}).set_name("layer/f");
  m.node("Add", {"h", "g"}, {"o"}).set_name("layer/add");
  m.node("Abs", {"x"}, {"idle"}).set_name("idle");
  m.node("Relu", {"o"}, {"y"}).set_name("after");
  m.proto.set_producer_name("me");
  m.proto.mutable_graph()->mutable_node(0)->mutable_unknown_fields()->AddLengthDelimited(9, "\n\1k\22\1v");
  return m;
}
} // namespace

TEST(EmitOnnx, DropsWhatDiedAndKeepsTheRest) {
  TempDir dir;
  std::string source = residual().save(dir);
  ASSERT_EQ(emit(source, dir.path("out.onnx"), {{"layer", "h", "o"}}), "");
  auto proto = read(dir.path("out.onnx"));
  EXPECT_EQ(names(proto.graph().node()), (Strings{"before", "idle", "after"}));
  EXPECT_EQ(proto.graph().node(2).input(0), "h");
  ASSERT_EQ(proto.graph().initializer_size(), 1);
  EXPECT_EQ(proto.graph().initializer(0).name(), "unused");
  EXPECT_EQ(proto.producer_name(), "me");
  EXPECT_EQ(proto.graph().node(0).unknown_fields().field_count(), 1);
  EXPECT_EQ(imported(dir.path("out.onnx")).substr(0, 6), "module");
}

TEST(EmitOnnx, GraphOutputKeepsItsName) {
  TempDir dir;
  OnnxModel m = residual();
  m.output("o");
  ASSERT_EQ(emit(m.save(dir), dir.path("out.onnx"), {{"layer", "h", "o"}}), "");
  auto proto = read(dir.path("out.onnx"));
  auto &last = proto.graph().node(proto.graph().node_size() - 1);
  EXPECT_EQ(last.op_type(), "Identity");
  EXPECT_EQ(last.input(0), "h");
  EXPECT_EQ(last.output(0), "o");
  EXPECT_EQ(names(proto.graph().node()), (Strings{"before", "idle", "after", "o__kept"}));
}

TEST(EmitOnnx, InnerValueThatIsAlsoAnOutputStays) {
  TempDir dir;
  OnnxModel m = residual();
  m.output("g");
  ASSERT_EQ(emit(m.save(dir), dir.path("out.onnx"), {{"layer", "h", "o"}}), "");
  EXPECT_EQ(names(read(dir.path("out.onnx")).graph().node()), (Strings{"before", "layer/f", "idle", "after"}));
}

TEST(EmitOnnx, LayersInARow) {
  TempDir dir;
  OnnxModel m = residual();
  m.node("Mul", {"o", "w"}, {"g2"}).set_name("two/f");
  m.node("Add", {"o", "g2"}, {"o2"}).set_name("two/add");
  m.node("Neg", {"o2"}, {"z"}).set_name("end");
  m.output("z");
  ASSERT_EQ(emit(m.save(dir), dir.path("out.onnx"), {{"two", "o", "o2"}, {"layer", "h", "o"}}), "");
  auto proto = read(dir.path("out.onnx"));
  EXPECT_EQ(names(proto.graph().node()), (Strings{"before", "idle", "after", "end"}));
  EXPECT_EQ(proto.graph().node(3).input(0), "h");
}

TEST(EmitOnnx, CapturesOfSubgraphsAreConsumers) {
  OnnxModel m = residual();
  auto &branch = m.node("If", {"c"}, {"z"});
  branch.set_name("if");
  m.input("c", 9, {}).output("z");
  for (auto *which : {"then_branch", "else_branch"}) {
    auto *body = attribute(branch, which, onnx::AttributeProto::GRAPH).mutable_g();
    OnnxModel::addNode(body->add_node(), "Neg", {"o"}, {"r"});
    body->add_output()->set_name("r");
  }
  TempDir dir;
  ASSERT_EQ(emit(m.save(dir), dir.path("out.onnx"), {{"layer", "h", "o"}}), "");
  auto proto = read(dir.path("out.onnx"));
  auto &last = proto.graph().node(proto.graph().node_size() - 1);
  EXPECT_EQ(last.attribute(0).g().node(0).input(0), "h");
  EXPECT_EQ(last.attribute(1).g().node(0).input(0), "h");
}

TEST(EmitOnnx, Refusals) {
  TempDir dir;
  std::string source = residual().save(dir);
  EXPECT_SAYS(emit(source, dir.path("out.onnx"), {{"layer", "h", "inner"}}), "tensor 'inner' is not in its graph");
  EXPECT_SAYS(emit(source, dir.path("out.onnx"), {{"layer", "h", "x"}}), "is not the result of a node");
  EXPECT_SAYS(emit(source, source, {}), "would overwrite its source");
  EXPECT_FALSE(fs::exists(dir.path("out.onnx")));
}

TEST(EmitOnnx, ExternalDataGoesAlong) {
  TempDir dir;
  OnnxModel m = residual();
  m.external("big", {4}, {{"location", "sub/w.bin"}});
  m.node("Add", {"h", "big"}, {"u"});
  m.output("u");
  dir.write("model/sub/w.bin", std::string(16, '\1'));
  std::string source = m.save(dir, "model/m.onnx");
  ASSERT_EQ(emit(source, dir.path("model/pruned.onnx"), {{"layer", "h", "o"}}), ""); // same folder: the reference is enough
  fs::create_directories(dir.path("other"));
  ASSERT_EQ(emit(source, dir.path("other/pruned.onnx"), {{"layer", "h", "o"}}), "");
  EXPECT_EQ(readFile(dir.path("other/sub/w.bin")), std::string(16, '\1'));
  EXPECT_EQ(imported(dir.path("other/pruned.onnx")).substr(0, 6), "module");
  ASSERT_EQ(emit(source, dir.path("other/again.onnx"), {}), ""); // the same bytes are there already
  dir.write("third/sub/w.bin", "something else");
  EXPECT_SAYS(emit(source, dir.path("third/pruned.onnx"), {}), "a different file of this name exists");
  EXPECT_FALSE(fs::exists(dir.path("third/pruned.onnx")));
}
