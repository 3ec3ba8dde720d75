// Bad inputs B01 to B17 (file level, ONNX and protobuf): each is refused with exit 3 and says what and where; nothing hangs, nothing is printed.
#include "test/support/OnnxModels.h"
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace tare::test;

namespace {
OnnxModel good() {
  OnnxModel m;
  m.input("x").output("y");
  m.floats("w", {1, 2, 3, 4}, {4});
  m.node("Add", {"x", "w"}, {"y"}).set_name("add");
  return m;
}
std::string refusedBytes(const std::string &bytes) {
  TempDir dir;
  return refusal(dir.write("m.onnx", bytes));
}
} // namespace

TEST(BadOnnx, TheGoodModelIsImported) { EXPECT_EQ(refusal(good()), "imported"); }

TEST(BadOnnx, B01Empty) { EXPECT_SAYS(refusedBytes(""), "exit 3: no graph in the model"); }

TEST(BadOnnx, B02Random) {
  for (unsigned seed = 0; seed < 64; ++seed) {
    std::mt19937 random(seed);
    std::string bytes(4096, 0);
    for (char &c : bytes) c = static_cast<char>(random());
    std::string text = refusedBytes(bytes);
    EXPECT_EQ(text.substr(0, 7), "exit 3:") << "seed " << seed << ": " << text;
    EXPECT_SAYS(text, "byte");
  }
}

TEST(BadOnnx, B03TruncatedAnywhere) {
  testing::internal::CaptureStderr();
  std::string bytes = good().bytes();
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    std::string text = refusedBytes(bytes.substr(0, cut));
    EXPECT_EQ(text.substr(0, 7), "exit 3:") << "cut at " << cut << ": " << text;
  }
  EXPECT_SAYS(refusedBytes(bytes.substr(0, bytes.size() / 2)), "the file is truncated");
  EXPECT_SAYS(refusedBytes(bytes.substr(0, bytes.size() / 2)), "at byte");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), ""); // protobuf keeps quiet
}

TEST(BadOnnx, MutationsNeverCrash) {
  // Random changes of a model with shape chains and typed data: imported or refused, never a crash, a hang or output of its own.
  OnnxModel m = good();
  m.ints("zero", {0}), m.ints("shape", {0, 2, 2}), m.ints("last", {1});
  m.node("Shape", {"x"}, {"s"});
  m.node("Slice", {"s", "zero", "last"}, {"rows"});
  set(m.node("Concat", {"rows", "shape"}, {"long"}), "axis", int64_t(0));
  m.node("Reshape", {"x", "shape"}, {"r"});
  set(m.node("Transpose", {"r"}, {"t"}), "perm", Ints{2, 0, 1});
  set(m.node("Softmax", {"t"}, {"p"}), "axis", int64_t(1));
  m.output("p").output("long");
  std::string bytes = m.bytes();
  ASSERT_EQ(refusal(m), "imported");
  testing::internal::CaptureStderr();
  std::random_device seeds;
  unsigned seed = seeds(), refused = 0;
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  TempDir dir;
  for (int i = 0; i < 4000; ++i) {
    std::string changed = bytes;
    for (unsigned k = random() % 3 + 1; k > 0; --k) {
      size_t at = random() % changed.size();
      switch (random() % 4) {
      case 0: changed[at] = static_cast<char>(random()); break;
      case 1: changed[at] ^= static_cast<char>(1 << random() % 8); break;
      case 2: changed.erase(at, random() % 8 + 1); break;
      default: changed.insert(at, changed.substr(random() % changed.size(), random() % 16)); break;
      }
    }
    std::string text = refusal(dir.write("m.onnx", changed));
    if (text == "imported") continue;
    ++refused;
    EXPECT_EQ(text.substr(0, 5), "exit ") << text;
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "seed " << seed;
}

TEST(BadOnnx, B04BadLengths) {
  EXPECT_SAYS(refusedBytes("\x3a" + std::string(10, '\xff')), "bad length at byte 0");
  EXPECT_SAYS(refusedBytes("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "bad length 9223372036854775807 at byte 0");
  EXPECT_SAYS(refusedBytes("\x08" + std::string(11, '\xff')), "bad number");
}

TEST(BadOnnx, B05NestedGroups) { EXPECT_SAYS(refusedBytes(std::string(100000, '\x0b')), "nesting limit of 64"); }

TEST(BadOnnx, B06NestedTypes) {
  OnnxModel m = good();
  std::string type; // sequence of sequence of ... : TypeProto{4: Sequence{1: TypeProto}}
  auto wrap = [](int field, const std::string &inner) {
    std::string out(1, static_cast<char>(field << 3 | 2));
    for (size_t n = inner.size();; n >>= 7) {
      out += static_cast<char>(n > 127 ? (n & 127) | 128 : n);
      if (n <= 127) break;
    }
    return out + inner;
  };
  for (int i = 0; i < 10000; ++i) type = wrap(4, wrap(1, type));
  std::string info = wrap(1, "q") + wrap(2, type);
  EXPECT_SAYS(refusedBytes(m.bytes() + wrap(7, wrap(11, info))), "nesting limit of 64");
}

TEST(BadOnnx, B07AboveProtobufsLimit) {
  TempDir dir;
  std::string path = good().save(dir);
  ASSERT_EQ(::truncate(path.c_str(), 3LL << 30), 0); // sparse
  EXPECT_SAYS(refusal(path), "protobuf's limit is 2 GiB");
}

TEST(BadOnnx, B08OtherFormats) {
  EXPECT_SAYS(refusedBytes("PK\x03\x04xxxxxxxxxxxxxxxxxxxx"), "this is a zip archive");
  EXPECT_SAYS(refusedBytes(std::string("\x1f\x8b\x08\0", 4) + "xxxxxx"), "this is a gzip file");
  EXPECT_SAYS(refusedBytes("\x80\x04\x95xxxxxxx"), "Python pickle");
  EXPECT_SAYS(refusedBytes("GGUFxxxxxxxxxxx"), "GGUF");
  EXPECT_SAYS(refusedBytes(std::string("\x10\0\0\0\0\0\0\0{\"a\":1}        ", 24)), "safetensors");
}

TEST(BadOnnx, B09NotARegularFile) {
  TempDir dir;
  ASSERT_EQ(::mkfifo(dir.path("fifo.onnx").c_str(), 0600), 0);
  ::alarm(20); // a hang ends the test
  EXPECT_SAYS(refusal(dir.path("fifo.onnx")), "is not a regular file");
  EXPECT_SAYS(refusal("/dev/zero"), "is not a regular file");
  int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  std::strncpy(address.sun_path, dir.path("s.onnx").c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(descriptor, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
  EXPECT_SAYS(refusal(dir.path("s.onnx")), "cannot open the file: No such device or address");
  ::close(descriptor);
  ::alarm(0);
}

TEST(BadOnnx, B10Links) {
  TempDir dir;
  std::filesystem::create_symlink("a.onnx", dir.path("a.onnx"));
  std::filesystem::create_symlink("nowhere", dir.path("b.onnx"));
  EXPECT_SAYS(refusal(dir.path("a.onnx")), "Too many levels of symbolic links");
  EXPECT_SAYS(refusal(dir.path("b.onnx")), "No such file or directory");
}

TEST(BadOnnx, B11Permissions) {
  TempDir dir;
  std::string path = good().save(dir);
  EXPECT_SAYS(refusal(path + "/inner.onnx"), "Not a directory");
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  ::chmod(path.c_str(), 0);
  EXPECT_SAYS(refusal(path), "Permission denied");
}

TEST(BadOnnx, B12Names) {
  for (std::string name : {std::string("a\xff\xfe"), std::string("a\0b", 3), std::string("\xc0\xaf"), std::string("\xed\xa0\x80")}) {
    OnnxModel m = good();
    m.node("Neg", {"x"}, {name});
    std::string text = refusal(m);
    EXPECT_SAYS(text, name.find('\0') == std::string::npos ? "is not valid UTF-8" : "contains a NUL character");
    EXPECT_SAYS(text, "at byte");
  }
  OnnxModel odd = good(); // legal, and to be escaped by whoever prints it
  odd.node("Neg", {"x"}, {"\x1b[31m\n<script>"}).set_name("<b>\t</b>");
  EXPECT_EQ(refusal(odd), "imported");
}

TEST(BadOnnx, B13LongTexts) {
  OnnxModel m = good();
  m.node("Neg", {"x"}, {std::string(64 << 20, 'n')});
  EXPECT_SAYS(refusal(m), "above the limit of 4096");
  OnnxModel documented = good();
  documented.proto.set_doc_string(std::string(256 << 20, 'd'));
  EXPECT_EQ(refusal(documented), "imported");
}

TEST(BadOnnx, B14IrVersions) {
  OnnxModel m = good();
  for (int version : {0, 2, 15, 99, 999}) {
    m.proto.set_ir_version(version);
    EXPECT_SAYS(refusal(m), "ir_version " + std::to_string(version) + " is not supported: 3 to 14 are");
  }
  m.proto.clear_ir_version();
  EXPECT_SAYS(refusal(m), "ir_version is missing");
}

TEST(BadOnnx, B15Opsets) {
  for (int version : {0, 6, 29, 9999}) {
    OnnxModel m = good();
    m.proto.mutable_opset_import(0)->set_version(version);
    EXPECT_SAYS(refusal(m), "imports opset " + std::to_string(version) + " of the default domain; supported: 7 to 28");
  }
  OnnxModel missing = good();
  missing.proto.clear_opset_import();
  EXPECT_SAYS(refusal(missing), "opset_import is missing");
  EXPECT_SAYS(refusal(good().import("ai.onnx", 13)), "imports opset domain '' twice, with versions 17 and 13");
  EXPECT_SAYS(refusal(good().import("", 17)), "twice");
}

TEST(BadOnnx, B16UnsupportedOpsAllAtOnce) {
  OnnxModel m = good().import("com.acme", 1);
  m.node("FrobOp", {"x"}, {"a"}, "com.acme").set_name("frob");
  m.node("Gelu", {"x"}, {"b"}, "com.microsoft").set_name("ms");
  m.node("Gelu", {"x"}, {"c"}).set_name("early");
  m.node("Conv", {"x", "w"}, {"d"}).set_name("conv");
  std::string text = refusal(m);
  EXPECT_SAYS(text, "exit 3: 4 operators are not supported");
  EXPECT_SAYS(text, "com.acme::FrobOp (opset 1, node 'frob'): not in the op table");
  EXPECT_SAYS(text, "com.microsoft::Gelu (opset not imported, node 'ms'): the model imports no opset for domain 'com.microsoft'");
  EXPECT_SAYS(text, "ai.onnx::Gelu (opset 17, node 'early'): exists from version 20 on, the model imports 17");
  EXPECT_SAYS(text, "ai.onnx::Conv (opset 17, node 'conv')");
}

TEST(BadOnnx, B17NothingToCompile) {
  OnnxModel empty;
  EXPECT_SAYS(refusal(empty), "nothing to compile");
  OnnxModel training;
  training.proto.clear_graph();
  training.proto.add_training_info()->mutable_algorithm()->add_node()->set_op_type("Neg");
  EXPECT_SAYS(refusal(training), "no graph in the model");
}

TEST(BadOnnx, ModelFromStandardInput) { EXPECT_SAYS(refusal("-"), "cannot be read from standard input"); } // bugs B36
