// Safetensors that must be read: hand-written ones, the test models' files (written by the reference implementation), shards through an index,
// and the layout of the Hugging Face cache (links into one folder).
#include "compiler/import/Safetensors.h"
#include "test/support/SafetensorsBytes.h"
#include "test/support/TempDir.h"
#include <gtest/gtest.h>

using namespace tare;
using namespace tare::test;

TEST(Safetensors, ReadsHandWritten) {
  TempDir dir;
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "BF16", "[2]", 4, 8) + "," + entry("a", "F32", "[]", 0, 4) + "," + entry("e", "I64", "[0,3]", 4, 4) + "}   ";
  auto file = readSafetensors(dir.write("m.safetensors", safetensors(header, "abcdefgh")));
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->tensors["a"].bytes, "abcd");
  EXPECT_EQ(file->tensors["b"].bytes, "efgh");
  EXPECT_EQ(file->tensors["b"].dtype, 16);
  EXPECT_EQ(file->tensors["b"].shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(file->tensors["e"].bytes.size(), 0u);
}

TEST(Safetensors, ReadsTestModels) {
  auto bert = readCheckpoint(TARE_TEST_DATA "/bert-tiny");
  ASSERT_TRUE(bool(bert)) << llvm::toString(bert.takeError());
  EXPECT_EQ(bert->tensors.at("embeddings.word_embeddings.weight").shape, (std::vector<int64_t>{260, 96}));
  auto llama = readCheckpoint(TARE_TEST_DATA "/llama-pro-tiny");
  ASSERT_TRUE(bool(llama)) << llvm::toString(llama.takeError());
  EXPECT_EQ(llama->files.size(), 5u); // the index and four shards
  EXPECT_TRUE(llama->warnings.empty());
  uint64_t bytes = 0;
  for (auto &[name, view] : llama->tensors) bytes += view.bytes.size();
  EXPECT_EQ(bytes, 3020032u); // total_size of the index
}

TEST(Checkpoint, FollowsLinksOfTheCacheLayout) {
  TempDir dir;
  dir.write("blobs/aaaa", "{}");
  dir.write("blobs/bbbb", safetensors("{" + entry("w", "F32", "[1]", 0, 4) + "}", "1234"));
  std::filesystem::create_directories(dir.path("snapshots/x"));
  std::filesystem::create_symlink("../../blobs/aaaa", dir.path("snapshots/x/config.json"));
  std::filesystem::create_symlink("../../blobs/bbbb", dir.path("snapshots/x/model.safetensors"));
  auto read = readCheckpoint(dir.path("snapshots/x"));
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->tensors.at("w").bytes, "1234");
}

TEST(Checkpoint, IndexDecidesBetweenShards) {
  TempDir dir; // bugs B44 (3) and (4): the same tensor in both shards, and a file that the index does not list
  dir.write("model-1.safetensors", safetensors("{" + entry("v", "U8", "[1]", 0, 1) + "," + entry("w", "U8", "[1]", 1, 2) + "}", "v1"));
  dir.write("model-2.safetensors", safetensors("{" + entry("w", "U8", "[1]", 0, 1) + "}", "2"));
  dir.write("extra.safetensors", "not looked at");
  dir.write("model.safetensors.index.json", R"({"weight_map":{"v":"model-1.safetensors","w":"model-2.safetensors"}})");
  auto read = readCheckpoint(dir.path());
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->tensors.at("w").bytes, "2");
  ASSERT_EQ(read->warnings.size(), 1u);
  EXPECT_NE(read->warnings[0].find("extra.safetensors is not in the index"), std::string::npos);
}

TEST(Checkpoint, WithoutIndexTakesEveryFile) {
  TempDir dir; // bugs B44 (5)
  dir.write("a.safetensors", safetensors("{" + entry("v", "U8", "[1]", 0, 1) + "}", "v"));
  dir.write("b.safetensors", safetensors("{" + entry("w", "U8", "[1]", 0, 1) + "}", "w"));
  auto read = readCheckpoint(dir.path());
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->tensors.size(), 2u);
}
