// Arrays that must be read and written: all dtypes, both orders, both byte orders, both compressions, samples by prefix and by folder.
// Oracles: bytes written out by hand, and files that NumPy wrote (the test models).
#include "compiler/import/TensorFiles.h"
#include "test/support/NpyBytes.h"
#include "test/support/TempDir.h"
#include <cstring>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

using namespace tare;
using namespace tare::test;

namespace {
template <typename T> std::string bytesOf(std::initializer_list<T> values) {
  std::string out;
  for (T v : values) out.append(reinterpret_cast<const char *>(&v), sizeof v);
  return out;
}
} // namespace

TEST(Npz, RoundTripsEveryDtypeAndShape) {
  TempDir dir;
  ArrayMap arrays;
  for (int dtype : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}) {
    Array a{uint8_t(dtype), {2, 3}, std::string(6 * dtypeSize(uint8_t(dtype)), '\1')};
    arrays["a" + std::to_string(dtype)] = a;
  }
  arrays["scalar"] = {1, {}, bytesOf<float>({2.5f})};
  arrays["vector"] = {7, {3}, bytesOf<int64_t>({-1, 0, 1})};
  arrays["empty"] = {1, {0, 4}, ""};
  arrays["/layers.0/out"] = {1, {1}, bytesOf<float>({1})};
  ASSERT_FALSE(bool(writeNpz(dir.path("x.npz"), arrays)));
  auto back = readNpz(dir.path("x.npz"));
  ASSERT_TRUE(bool(back)) << llvm::toString(back.takeError());
  ASSERT_EQ(back->size(), arrays.size());
  for (auto &[name, array] : arrays) {
    EXPECT_EQ((*back)[name].dtype, array.dtype) << name;
    EXPECT_EQ((*back)[name].shape, array.shape) << name;
    EXPECT_EQ((*back)[name].bytes, array.bytes) << name;
  }
}

TEST(Npz, WritesTheSameBytesTwice) {
  TempDir dir;
  ArrayMap arrays{{"x", {1, {2}, bytesOf<float>({1, 2})}}};
  ASSERT_FALSE(bool(writeNpz(dir.path("a.npz"), arrays)));
  ::setenv("TZ", "Pacific/Kiritimati", 1);
  ASSERT_FALSE(bool(writeNpz(dir.path("b.npz"), arrays)));
  ::unsetenv("TZ");
  EXPECT_EQ(readFile(dir.path("a.npz")), readFile(dir.path("b.npz")));
}

TEST(Npy, ConvertsFortranOrder) {
  // [[0,1,2],[3,4,5]] stored by columns.
  auto a = parseNpy(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", bytesOf<int32_t>({0, 3, 1, 4, 2, 5})), "f", "a");
  ASSERT_TRUE(bool(a)) << llvm::toString(a.takeError());
  EXPECT_EQ(a->bytes, bytesOf<int32_t>({0, 1, 2, 3, 4, 5}));
}

TEST(Npy, ConvertsBigEndianAndReadsVersions2And3) {
  for (int version : {1, 2, 3}) {
    auto a = parseNpy(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", std::string("\x01\x02\xff\xfe", 4), version), "f", "a");
    ASSERT_TRUE(bool(a)) << llvm::toString(a.takeError());
    EXPECT_EQ(a->bytes, bytesOf<int16_t>({0x0102, -2}));
  }
}

TEST(Npz, ReadsWhatNumPyWrote) {
  auto arrays = readNpz(TARE_TEST_DATA "/contract-lm/cases/one.npz");
  ASSERT_TRUE(bool(arrays)) << llvm::toString(arrays.takeError());
  ASSERT_TRUE(arrays->count("input_ids") && arrays->count("logits"));
  EXPECT_EQ((*arrays)["input_ids"].shape, (std::vector<int64_t>{1, 1}));
  int64_t start;
  std::memcpy(&start, (*arrays)["input_ids"].bytes.data(), 8);
  EXPECT_EQ(start, 256); // the start token
}

TEST(TensorFiles, SplitsSamplesByPrefix) {
  auto samples = readSamples(TARE_TEST_DATA "/contract-lm/calibration.npz");
  ASSERT_TRUE(bool(samples)) << llvm::toString(samples.takeError());
  ASSERT_GE(samples->size(), 2u);
  EXPECT_EQ((*samples)[0].label, "sample_0");
  EXPECT_TRUE((*samples)[0].arrays.count("input_ids"));
  EXPECT_TRUE((*samples)[0].arrays.count("anchors"));
}

TEST(TensorFiles, FoldersAndProtos) {
  TempDir dir;
  onnx::TensorProto proto;
  proto.set_name("x");
  proto.set_data_type(1);
  proto.add_dims(2);
  proto.add_float_data(1);
  proto.add_float_data(-2);
  dir.write("test_data_set_0/input_0.pb", proto.SerializeAsString());
  dir.write("y.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", bytesOf<float>({3})));
  ASSERT_FALSE(bool(writeNpz(dir.path("a.npz"), {{"z", {7, {1}, bytesOf<int64_t>({5})}}})));
  std::vector<std::string> files;
  auto samples = readSamples(dir.path(), &files);
  ASSERT_TRUE(bool(samples)) << llvm::toString(samples.takeError());
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_EQ(files.size(), 3u);
  EXPECT_TRUE((*samples)[0].arrays.count("z"));
  EXPECT_EQ((*samples)[1].arrays.at("x").bytes, bytesOf<float>({1, -2}));
  EXPECT_TRUE((*samples)[2].arrays.count("y"));
}
