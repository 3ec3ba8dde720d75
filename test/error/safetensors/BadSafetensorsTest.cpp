// One file that must be refused per rule (bad-inputs B32 to B43), with the word that the message must hold. Nothing may crash or take long.
#include "compiler/import/Safetensors.h"
#include "test/support/SafetensorsBytes.h"
#include "test/support/TempDir.h"
#include <chrono>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace tare;
using namespace tare::test;

namespace {
class BadSafetensors : public ::testing::Test {
protected:
  TempDir dir;
  void refused(const std::string &bytes, const std::string &word) {
    std::string message = messageOf(readSafetensors(dir.write("m.safetensors", bytes)));
    EXPECT_NE(message.find(word), std::string::npos) << "expected '" << word << "', got '" << message << "'";
  }
  void header(const std::string &text, const std::string &word, size_t data = 8) { refused(safetensors(text, std::string(data, 'x')), word); }
};
} // namespace

TEST_F(BadSafetensors, HeaderLengthB32B33) {
  refused("", "header length");
  refused("1234567", "header length");
  refused(std::string(8, '\0') + "{}", "header length is 0");
  refused(safetensors("{}", "", 1000), "header length 1000 reaches past the end");
  refused(safetensors("{}", "", uint64_t(1) << 63), "header length");
  refused(safetensors("{}", "", 101'000'000), "above the limit of 100 MB");
}

TEST_F(BadSafetensors, JsonB34) {
  header("[]", "does not begin with '{'", 0);
  header("{\"\xff\xfe\":1}", "ill-formed UTF-8", 0);
  header("{} x", "at byte 4", 0);
  header("{\"a\":", "malformed JSON", 0);
  header("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", "nesting deeper than", 0);
  header("{\"a\":" + std::string(100000, '{'), "malformed JSON", 0);
}

TEST_F(BadSafetensors, DuplicatesB35) {
  header("{" + entry("w", "F32", "[1]", 0, 4) + "," + entry("w", "F32", "[1]", 4, 8) + "}", "duplicate key \"w\"");
  header(R"({"w":{"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]}})", "duplicate key \"dtype\"");
}

TEST_F(BadSafetensors, RangesB36B37B38B41) {
  header("{" + entry("a", "U8", "[5]", 0, 5) + "," + entry("b", "U8", "[5]", 3, 8) + "}", "tensor 'b': overlaps tensor 'a'");
  header("{" + entry("a", "U8", "[2]", 0, 2) + "," + entry("b", "U8", "[4]", 4, 8) + "}", "2 unreferenced bytes before it");
  header("{" + entry("a", "U8", "[2]", 0, 2) + "}", "6 unreferenced bytes after");
  header("{" + entry("a", "U8", "[2]", 6, 8) + "}", "6 unreferenced bytes before it");
  header("{" + entry("a", "U8", "[2]", 4, 2) + "}", "begins at 4 and ends at 2");
  header("{" + entry("a", "U8", "[16]", 0, 16) + "}", "ends at 16, the file has 8");
  header("{" + entry("a", "U8", "[8]", 0, 8) + "," + entry("z", "U8", "[0]", 3, 3) + "}", "only a boundary is allowed");
}

TEST_F(BadSafetensors, ShapesB39B40) {
  header("{" + entry("w", "F32", "[4194305,4194305,211106198978564]", 0, 8) + "}", "overflows");
  header("{" + entry("w", "F32", "[3]", 0, 8) + "}", "needs 12 bytes, its range has 8");
  header("{" + entry("w", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) + "}", "the limit is 8");
}

TEST_F(BadSafetensors, FieldsB42) {
  header("{" + entry("w", "F4", "[2]", 0, 8) + "}", "dtype \"F4\"");
  header("{" + entry("w", "F8_E4M3", "[8]", 0, 8) + "}", "dtype \"F8_E4M3\"");
  for (std::string shape : {"[-1]", "[1.5]", "[\"4\"]", "[1e3]", "[true]", "[null]", "[18446744073709551615]"})
    header("{" + entry("w", "F32", shape, 0, 8) + "}", "shape has the entry");
  header("{" + entry("w", "F32", "2", 0, 8) + "}", "is not an array");
  header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}})", "are not two integers");
  header(R"({"w":{"dtype":"F32","shape":[2]}})", "\"data_offsets\" is missing");
  header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"__class__":"x"}})", "unknown field \"__class__\"");
  header(R"({"w":7})", "is not an object");
  header(R"({"__metadata__":{"a":1}})", "is not a string", 0);
  header("{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "has a NUL");
}

TEST_F(BadSafetensors, MillionTensorsB43) {
  std::string text = "{";
  for (int i = 0; i < 1000000; ++i) text += (i ? "," : "") + entry("t" + std::to_string(i), "U8", "[1]", uint64_t(i), uint64_t(i) + 1);
  auto start = std::chrono::steady_clock::now();
  header(text + "}", "the limit is 262144 tensors", 1000000);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5.0);
}

TEST_F(BadSafetensors, OddFiles) {
  EXPECT_NE(messageOf(readSafetensors(dir.path("absent"))).find("No such file"), std::string::npos);
  EXPECT_NE(messageOf(readSafetensors(dir.path())).find("not a regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_NE(messageOf(readSafetensors(dir.path("pipe"))).find("not a regular file"), std::string::npos);
}

TEST_F(BadSafetensors, EveryTruncationOfAGoodFileIsRefused) {
  std::string good = safetensors("{" + entry("a", "F32", "[2]", 0, 8) + "," + entry("b", "U8", "[3]", 8, 11) + "}", "0123456789a");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(messageOf(readSafetensors(dir.write("cut", good.substr(0, length)))).empty()) << "cut at " << length;
}
