// Bad inputs B18 to B31 and the layouts that must work (spec 2; bugs B33, B35): external data never leads out of the model's directory.
#include "compiler/import/ModelFile.h"
#include "test/support/OnnxModels.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tare::test;
namespace fs = std::filesystem;
using Entries = std::vector<std::pair<std::string, std::string>>;

namespace {
OnnxModel with(const Entries &entries) {
  OnnxModel m;
  m.input("x").output("y");
  m.external("w", {4}, entries);
  m.node("Add", {"x", "w"}, {"y"}).set_name("add");
  return m;
}
const std::string kData(32, '\1');
/// The refusal of a model in folder/model whose data file w.bin lies beside it; `secret` lies one level up.
std::string refusedWith(const Entries &entries) {
  TempDir dir;
  dir.write("secret", kData);
  dir.write("model/w.bin", kData);
  return refusal(with(entries).save(dir, "model/m.onnx"));
}
std::string at(const std::string &location) { return refusedWith({{"location", location}}); }
} // namespace

TEST(BadExternal, TheGoodOneIsImported) {
  EXPECT_EQ(at("w.bin"), "imported");
  EXPECT_EQ(at("./w.bin"), "imported");
  EXPECT_EQ(refusedWith({{"location", "w.bin"}, {"offset", "16"}, {"length", "16"}}), "imported");
}

TEST(BadExternal, B18B19Escapes) {
  for (auto *location : {"../secret", "../../etc/passwd", "sub/../../x", "./../x", "a//../../x", ".."}) {
    std::string text = at(location);
    EXPECT_SAYS(text, "escapes the model's directory");
    EXPECT_SAYS(text, "exit 3");
    EXPECT_SAYS(text, "[tensor w]");
  }
}

TEST(BadExternal, B20ForeignPaths) {
  EXPECT_SAYS(at("/etc/passwd"), "is an absolute path");
  EXPECT_SAYS(at("C:\\x"), "is a foreign path");
  EXPECT_SAYS(at("C:x"), "is a foreign path");
  EXPECT_SAYS(at("..\\x"), "is a foreign path");
  EXPECT_SAYS(at("\\\\host\\share"), "is a foreign path");
}

TEST(BadExternal, B21LinksThatLeave) {
  TempDir dir;
  dir.write("outside/w.bin", kData);
  dir.write("outside2", kData);
  std::string path = with({{"location", "w.bin"}}).save(dir, "model/m.onnx");
  fs::create_symlink("../outside/w.bin", dir.path("model/w.bin"));
  EXPECT_SAYS(refusal(path), "is a symbolic link that leaves the model's directory");
  fs::create_symlink("../outside", dir.path("model/sub"));
  EXPECT_SAYS(refusal(with({{"location", "sub/w.bin"}}).save(dir, "model/n.onnx")), "is a symbolic link that leaves the model's directory");
  fs::create_directories(dir.path("model-evil")); // a prefix of the name is not the directory
  dir.write("model-evil/w.bin", kData);
  fs::create_symlink("../model-evil/w.bin", dir.path("model/p.bin"));
  EXPECT_SAYS(refusal(with({{"location", "p.bin"}}).save(dir, "model/p.onnx")), "leaves the model's directory");
}

TEST(BadExternal, LinksInsideWork) {
  TempDir dir;
  dir.write("model/data/w.bin", kData);
  fs::create_symlink("data/w.bin", dir.path("model/l.bin"));
  fs::create_symlink("data", dir.path("model/d"));
  EXPECT_EQ(refusal(with({{"location", "l.bin"}}).save(dir, "model/m.onnx")), "imported");
  EXPECT_EQ(refusal(with({{"location", "d/w.bin"}}).save(dir, "model/n.onnx")), "imported");
}

TEST(BadExternal, HuggingFaceCacheLayout) { // bugs B33
  TempDir dir;
  with({{"location", "w.bin"}}).save(dir, "blobs/AAAA");
  dir.write("blobs/BBBB", kData);
  fs::create_directories(dir.path("snapshots/x"));
  fs::create_symlink("../../blobs/AAAA", dir.path("snapshots/x/m.onnx"));
  fs::create_symlink("../../blobs/BBBB", dir.path("snapshots/x/w.bin"));
  EXPECT_EQ(refusal(dir.path("snapshots/x/m.onnx")), "imported");
  // From another working directory, and by a relative path.
  fs::path before = fs::current_path();
  fs::current_path("/");
  EXPECT_EQ(refusal(dir.path("snapshots/x/m.onnx")), "imported");
  fs::current_path(dir.path("snapshots/x"));
  EXPECT_EQ(refusal("m.onnx"), "imported");
  fs::current_path(before);
}

TEST(BadExternal, B22HardLinkIsAccepted) {
  TempDir dir;
  dir.write("other/w.bin", kData);
  std::string path = with({{"location", "w.bin"}}).save(dir, "model/m.onnx");
  ASSERT_EQ(::link(dir.path("other/w.bin").c_str(), dir.path("model/w.bin").c_str()), 0);
  EXPECT_EQ(refusal(path), "imported");
}

TEST(BadExternal, B23MissingEmptyDirectory) {
  EXPECT_SAYS(at("none.bin"), "cannot open \"none.bin\": No such file or directory");
  EXPECT_SAYS(at(""), "is empty");
  EXPECT_SAYS(at("."), "names a directory");
  EXPECT_SAYS(at("sub/"), "names a directory");
  EXPECT_SAYS(refusedWith({{"offset", "0"}}), "external data without a location");
  TempDir dir;
  fs::create_directories(dir.path("sub"));
  EXPECT_SAYS(refusal(with({{"location", "sub"}}).save(dir)), "is a directory, not a regular file");
}

TEST(BadExternal, B24Keys) {
  EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {"__class__", "x"}}), "unknown key \"__class__\"");
  EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {"location", "w.bin"}}), "duplicate key \"location\"");
}

TEST(BadExternal, B25Numbers) {
  for (auto *number : {"-1", "abc", "0x10", " 4", "4 ", "1e3", "+4", "", "18446744073709551616", "\xd9\xa3"})
    for (auto *key : {"offset", "length"})
      EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {key, number}}), std::string("external data: ") + key + " \"" + number + "\" is not a decimal number below 2^64");
}

TEST(BadExternal, B26Ranges) {
  EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {"offset", "17"}}), "bytes 17 + 16 lie past the end of \"w.bin\" (32 bytes)");
  EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {"offset", "18446744073709551615"}}), "lie past the end");
  EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {"offset", "4294967296"}}), "lie past the end");
}

TEST(BadExternal, OffsetsAbove32Bits) { // bugs B35
  TempDir dir;
  std::string path = with({{"location", "w.bin"}, {"offset", "4294967296"}}).save(dir);
  dir.write("w.bin", "");
  ASSERT_EQ(::truncate(dir.path("w.bin").c_str(), (4LL << 30) + 16), 0); // sparse
  EXPECT_EQ(refusal(path), "imported");
}

TEST(BadExternal, B27Length) {
  EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {"length", "15"}}), "length 15, but shape and type need 16 bytes");
  EXPECT_SAYS(refusedWith({{"location", "w.bin"}, {"length", "32"}}), "length 32, but shape and type need 16 bytes");
}

TEST(BadExternal, B28NotARegularFile) {
  TempDir dir;
  std::string path = with({{"location", "w.bin"}}).save(dir);
  ASSERT_EQ(::mkfifo(dir.path("w.bin").c_str(), 0600), 0);
  ::alarm(20);
  EXPECT_SAYS(refusal(path), "is not a regular file");
  ::alarm(0);
}

TEST(BadExternal, B29ConflictingStorage) {
  TempDir dir;
  dir.write("w.bin", kData);
  OnnxModel m = with({{"location", "w.bin"}});
  m.proto.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(16, 0));
  EXPECT_SAYS(refusal(m.save(dir)), "conflicting storage: raw_data and external_data are both set");
  OnnxModel typed;
  typed.input("x").output("y");
  typed.floats("w", {1, 2, 3, 4}, {4}).add_int32_data(1);
  typed.node("Add", {"x", "w"}, {"y"});
  EXPECT_SAYS(refusal(typed), "conflicting storage: float_data and int32_data are both set");
}

TEST(BadExternal, B30Checksum) {
  TempDir dir;
  dir.write("w.bin", kData);
  std::string right = tare::sha1Hex(llvm::ArrayRef<char>(kData.data(), kData.size()));
  EXPECT_EQ(refusal(with({{"location", "w.bin"}, {"checksum", right}}).save(dir)), "imported");
  std::string wrong = right;
  wrong[0] = wrong[0] == '0' ? '1' : '0';
  EXPECT_SAYS(refusal(with({{"location", "w.bin"}, {"checksum", wrong}}).save(dir)), "checksum mismatch");
}

TEST(BadExternal, B31NestedTensors) {
  TempDir dir;
  OnnxModel m;
  m.input("x").output("y");
  auto &node = m.node("If", {"x"}, {"y"});
  auto *inner = attribute(node, "then_branch", onnx::AttributeProto::GRAPH).mutable_g();
  auto *t = inner->add_initializer();
  t->set_name("deep");
  t->set_data_type(1);
  t->set_data_location(onnx::TensorProto::EXTERNAL);
  auto *entry = t->add_external_data();
  entry->set_key("location"), entry->set_value("../secret");
  EXPECT_SAYS(refusal(m.save(dir)), "escapes the model's directory");
  OnnxModel constant;
  constant.output("y");
  auto &c = constant.node("Constant", {}, {"y"});
  *attribute(c, "value", onnx::AttributeProto::TENSOR).mutable_t() = *t;
  EXPECT_SAYS(refusal(constant.save(dir)), "escapes the model's directory");
}
