// Arrays that must be refused, each with a message that says what is wrong: cut files, pickles, lying sizes, zip bombs, FIFOs, double keys.
// No input here may crash, hang or allocate what it merely claims.
#include "compiler/graph/Failure.h"
#include "compiler/import/TensorFiles.h"
#include "test/support/NpyBytes.h"
#include "test/support/TempDir.h"
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <zip.h>

using namespace tare;
using namespace tare::test;

namespace {
std::string refusal(const std::string &bytes) { return messageOf(parseNpy(bytes, "in.npz", "x")); }

struct Entry {
  std::string name, bytes;
  int method = ZIP_CM_STORE;
};
std::string zipOf(const TempDir &dir, const std::vector<Entry> &entries) {
  std::string path = dir.path("made.npz");
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  for (const Entry &e : entries) {
    zip_int64_t index = zip_file_add(archive, e.name.c_str(), zip_source_buffer(archive, e.bytes.data(), e.bytes.size(), 0), 0);
    zip_set_file_compression(archive, zip_uint64_t(index), e.method, 9);
  }
  zip_close(archive);
  return path;
}
const std::string kGood = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", std::string(8, '\0'));
} // namespace

TEST(BadNpy, Header) {
  EXPECT_NE(refusal("").find("not a .npy array"), std::string::npos);
  EXPECT_NE(refusal("PK\3\4 something").find("not a .npy array"), std::string::npos);
  EXPECT_NE(refusal(npy("{}", "", 9)).find(".npy version 9"), std::string::npos);
  std::string cut = kGood.substr(0, 20);
  EXPECT_NE(refusal(cut).find("reaches past the end"), std::string::npos);
  auto header = [&](const std::string &dict) { return refusal(npy(dict, std::string(8, '\0'))); };
  EXPECT_NE(header("{'descr': '<f4', 'fortran_order': False}").find("is missing"), std::string::npos);
  EXPECT_NE(header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}").find("given twice"), std::string::npos);
  EXPECT_NE(header("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}").find("neither True nor False"), std::string::npos);
  EXPECT_NE(header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}").find("not an integer"), std::string::npos);
  EXPECT_NE(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), '__class__': 'x'}").find("unknown key '__class__'"), std::string::npos);
  EXPECT_NE(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x").find("bytes after"), std::string::npos);
  EXPECT_NE(header("{'descr': '<f4").find("not closed"), std::string::npos);
  EXPECT_NE(header("import os").find("not a dictionary"), std::string::npos);
}

TEST(BadNpy, Dtypes) {
  auto dtype = [&](const std::string &descr) { return refusal(npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (2,)}", std::string(8, '\0'))); };
  EXPECT_NE(dtype("'|O'").find("pickle"), std::string::npos);
  EXPECT_NE(dtype("'<c8'").find("'<c8' is not supported"), std::string::npos);
  EXPECT_NE(dtype("'<U4'").find("is not supported"), std::string::npos);
  EXPECT_NE(dtype("[('a', '<f4')]").find("structured"), std::string::npos);
  EXPECT_NE(refusal(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\x07")).find("bool element with the byte 7"), std::string::npos);
}

TEST(BadNpy, Sizes) {
  auto shape = [&](const std::string &text) { return refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + text + "}", std::string(8, '\0'))); };
  EXPECT_NE(shape("(3,)").find("needs 12 bytes of data, the file has 8"), std::string::npos);
  EXPECT_NE(shape("(1,)").find("needs 4 bytes of data, the file has 8"), std::string::npos);
  EXPECT_NE(shape("(4194305, 4194305, 211106198978564)").find("overflows"), std::string::npos);
  EXPECT_NE(shape("(9223372036854775807, 2)").find("overflows"), std::string::npos);
  EXPECT_NE(shape("(99999999999999999999,)").find("not an integer"), std::string::npos);
}

TEST(BadNpz, Container) {
  TempDir dir;
  EXPECT_NE(messageOf(readNpz(dir.path("absent.npz"))).find("No such file"), std::string::npos);
  EXPECT_NE(messageOf(readNpz(dir.path())).find("not a regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_NE(messageOf(readNpz(dir.path("pipe"))).find("not a regular file"), std::string::npos);
  EXPECT_NE(messageOf(readNpz("/dev/zero")).find("not a regular file"), std::string::npos);
  EXPECT_NE(messageOf(readNpz(dir.write("empty.npz", ""))).find("not a readable .npz"), std::string::npos);
  EXPECT_NE(messageOf(readNpz(dir.write("text.npz", "hello, I am no zip"))).find("not a readable .npz"), std::string::npos);
  EXPECT_NE(messageOf(readNpz(zipOf(dir, {{"x.txt", "hi"}}))).find("'x.txt' is not a .npy array"), std::string::npos);
  EXPECT_NE(messageOf(readNpz(zipOf(dir, {{"../x.npy", kGood}}))).find("unsafe path"), std::string::npos);
  EXPECT_NE(messageOf(readNpz(zipOf(dir, {{"a\\..\\x.npy", kGood}}))).find("unsafe path"), std::string::npos);
  auto odd = readNpz(zipOf(dir, {{"a\\b.npy", kGood}})); // a tensor may be called so
  EXPECT_TRUE(static_cast<bool>(odd)) << messageOf(std::move(odd));
  EXPECT_NE(messageOf(readNpz(zipOf(dir, {{"x.npy", kGood, ZIP_CM_BZIP2}}))).find("stored and deflated"), std::string::npos);
}

TEST(BadNpz, EveryTruncationIsRefused) {
  TempDir dir;
  std::string good = readFile(zipOf(dir, {{"x.npy", kGood}, {"y.npy", kGood, ZIP_CM_DEFLATE}}));
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(messageOf(readNpz(dir.write("cut.npz", good.substr(0, length)))).empty()) << "cut at " << length;
}

TEST(BadNpz, FlippedBytesNeverCrashAndDataFlipsAreSeen) {
  TempDir dir;
  std::string good = readFile(zipOf(dir, {{"x.npy", kGood}}));
  size_t data = good.find("\x93NUMPY");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = char(bad[i] ^ 0x41);
    std::string message = messageOf(readNpz(dir.write("flip.npz", bad)));
    if (i >= data && i < data + kGood.size()) EXPECT_FALSE(message.empty()) << "flip in the data at " << i; // CRC
  }
}

TEST(BadNpz, BombsStopAtTheLimit) {
  TempDir dir;
  std::string zeros(1 << 20, '\0');
  std::string big = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1048576,)}", zeros);
  std::string path = zipOf(dir, {{"a.npy", big, ZIP_CM_DEFLATE}, {"b.npy", big, ZIP_CM_DEFLATE}});
  auto result = readNpz(path, /*limit=*/(1 << 20) + 4096);
  ASSERT_FALSE(bool(result));
  llvm::handleAllErrors(result.takeError(), [](const Failure &f) {
    EXPECT_EQ(f.code, ExitCode::Limit);
    EXPECT_NE(f.message.find("unpacks to more than"), std::string::npos);
  });
}

TEST(BadTensorFiles, ProtosAndFolders) {
  TempDir dir;
  EXPECT_NE(messageOf(readTensors(dir.write("x.pb", "\xff\xff\xff\xff"))).find("not an ONNX TensorProto"), std::string::npos);
  EXPECT_NE(messageOf(readTensors(dir.write("x.bin", "1"))).find("neither .npz, .npy nor .pb"), std::string::npos);
  TempDir empty;
  EXPECT_NE(messageOf(readTensors(empty.path())).find("no .npz, .npy or .pb"), std::string::npos);
  // data_type 7, dims 2^40, two bytes of data
  EXPECT_NE(messageOf(readTensors(dir.write("y.pb", std::string("\x08\x80\x80\x80\x80\x80\x20\x10\x07\x4a\x02zz", 13)))).find("the file has 2"), std::string::npos);
  EXPECT_NE(messageOf(readSamples(zipOf(dir, {{"sample_0.x.npy", kGood}, {"x.npy", kGood}}))).find("no sample_N. prefix"), std::string::npos);
}
