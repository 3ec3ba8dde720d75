// Folders that must be refused: an index and shards that disagree, paths that leave the folder, pickles only (bad-inputs B44, B45; bugs B44).
#include "compiler/import/Safetensors.h"
#include "test/support/SafetensorsBytes.h"
#include "test/support/TempDir.h"
#include <gtest/gtest.h>

using namespace tare;
using namespace tare::test;

namespace {
class BadFolder : public ::testing::Test {
protected:
  TempDir dir;
  void refused(const std::string &word) {
    std::string message = messageOf(readCheckpoint(dir.path()));
    EXPECT_NE(message.find(word), std::string::npos) << "expected '" << word << "', got '" << message << "'";
  }
  void index(const std::string &map) { dir.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}"); }
  void shard(const std::string &name, const std::string &tensor) { dir.write(name, safetensors("{" + entry(tensor, "U8", "[1]", 0, 1) + "}", "x")); }
};
} // namespace

TEST_F(BadFolder, IndexB44) {
  shard("a.safetensors", "v");
  for (std::string name : {"../x.safetensors", "/x.safetensors", "sub/x.safetensors", "..", "", "C:x.safetensors", "..\\\\x.safetensors"}) {
    index("\"v\":\"" + name + "\"");
    refused("is not a plain file name");
  }
  index(R"("v":"a.safetensors","w":"b.safetensors")");
  refused("shard 'b.safetensors' is missing; tensor 'w'");
  index(R"("v":"a.safetensors","w":"a.safetensors")");
  refused("tensor 'w' is not in shard 'a.safetensors'");
  index(R"("v":"a.safetensors","v":"a.safetensors")");
  refused("duplicate key \"v\"");
  index(R"("v":"a.bin")");
  refused("is not a .safetensors file");
  index(R"("v":7)");
  refused("is not a file name");
  index("");
  refused("weight_map is empty");
  dir.write("model.safetensors.index.json", "[]");
  refused("no object \"weight_map\"");
  dir.write("model.safetensors.index.json", "{\"weight_map\":{\"v\":\"a.safe");
  refused("malformed JSON");
}

TEST_F(BadFolder, OneTensorInTwoFilesWithoutIndex) {
  shard("a.safetensors", "v");
  shard("b.safetensors", "v");
  refused("tensor 'v' is also in");
}

TEST_F(BadFolder, PicklesB45) {
  dir.write("pytorch_model.bin", "PK\3\4");
  refused("pickle is never loaded");
}

TEST_F(BadFolder, EmptyOrAbsent) {
  refused("no .safetensors file");
  EXPECT_NE(messageOf(readCheckpoint(dir.path("absent"))).find("cannot list"), std::string::npos);
}

TEST_F(BadFolder, LinksOut) {
  TempDir outside;
  outside.write("w.safetensors", safetensors("{" + entry("v", "U8", "[1]", 0, 1) + "}", "x"));
  std::filesystem::create_symlink(outside.path("w.safetensors"), dir.path("model.safetensors"));
  refused("leaves the model's folder");
  std::filesystem::remove(dir.path("model.safetensors"));
  std::filesystem::create_symlink("model.safetensors", dir.path("model.safetensors"));
  refused("loop of links");
}
