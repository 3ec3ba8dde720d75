// Damaged engine files (bad-inputs B70, B71, B73; faults F01, F03, F06, F07, F14): every byte flipped, every cut, other formats and versions; and the write recipe.
#include "runtime/EngineReader.h"
#include "test/support/TestEngine.h"
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tare::test;
using tare::format::Header;

namespace {
/// The error message for these bytes; "" when they open.
std::string refusal(const std::string &bytes, tare_error &error) {
  tare_engine_t *engine = tare_engine_open_memory(bytes.data(), bytes.size(), nullptr, &error);
  tare_engine_close(engine);
  return engine ? "" : error.message;
}
std::string fileRefusal(const std::string &path, tare_status expected = TARE_REFUSED) {
  tare_error error;
  tare_engine_t *engine = tare_engine_open(path.c_str(), nullptr, &error);
  tare_engine_close(engine);
  EXPECT_EQ(error.code, expected) << error.message;
  return engine ? "" : error.message;
}
std::vector<std::string> filesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (auto &entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}
} // namespace

TEST(EngineFile, EveryFlippedByteIsRefused) {
  const std::string good = engineBytes();
  tare_error error;
  ASSERT_EQ(refusal(good, error), "");
  for (size_t at = 0; at < good.size(); ++at)
    for (char flip : {1, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      std::string message = refusal(bad, error);
      ASSERT_NE(message, "") << "byte " << at;
      ASSERT_EQ(error.code, TARE_REFUSED) << message;
      if (at >= sizeof(Header)) ASSERT_TRUE(message.rfind("hash mismatch: ", 0) == 0 || message.rfind("padding is not zero: ", 0) == 0) << at << ": " << message;
    }
  std::string bad = good;
  bad[tare::format::kPage] ^= 4; // the first weight
  EXPECT_EQ(refusal(bad, error), "hash mismatch: section weights was changed in its chunk 0 of 1 MiB (at byte 4096)");
  EXPECT_EQ(error.offset, 4096);
}

TEST(EngineFile, EveryCutIsRefusedAndNamesTheSection) {
  std::string good = engineBytes();
  tare_error error;
  for (size_t size = 0; size < good.size(); ++size) ASSERT_NE(refusal(good.substr(0, size), error), "") << size;
  for (uint32_t i = 0; i < header(good).sectionCount; ++i) {
    auto entry = table(good)[i];
    for (int64_t shift : {-1, 0, 1}) {
      auto size = static_cast<size_t>(static_cast<int64_t>(entry.offset + entry.bytes) + shift);
      if (size >= good.size()) continue;
      std::string message = refusal(good.substr(0, size), error);
      EXPECT_EQ(message.rfind("engine is cut off: " + std::to_string(size) + " of " + std::to_string(good.size()) + " bytes; section ", 0), 0u) << message;
    }
  }
  std::string message = refusal(good.substr(0, table(good)[0].offset + 3), error);
  EXPECT_NE(message.find("section 0 (weights)"), std::string::npos) << message;
  EXPECT_EQ(refusal(good.substr(0, 40), error), "engine is cut off: 40 bytes, the header alone has 64");
  message = refusal(good + "x", error);
  EXPECT_EQ(message.rfind("trailing bytes after the engine: ", 0), 0u) << message;
}

TEST(EngineFile, OtherVersionsByteOrdersAndFormats) {
  std::string good = engineBytes();
  tare_error error;
  auto changed = [&](auto change) {
    std::string bytes = good;
    change(header(bytes));
    rehashHeader(bytes);
    return refusal(bytes, error);
  };
  EXPECT_EQ(changed([](Header &h) { h.major = 2; }), "engine format is not readable by this runtime: the file has v2.2, this runtime reads v1.0 to v1.2; update the runtime or compile "
                                                     "with an older tare (at byte 8)");
  EXPECT_NE(changed([](Header &h) { h.major = 0; }).find("compile the model again"), std::string::npos);
  EXPECT_NE(changed([](Header &h) { h.minor = 3; }).find("the file has v1.3"), std::string::npos);
  EXPECT_EQ(changed([](Header &h) { h.endianness = 0x04030201; }).rfind("engine was made for another byte order", 0), 0u);
  TempDir dir;
  EXPECT_NE(fileRefusal(dir.write("m.onnx", std::string("\x08\x08\x12\x07pytorch", 11))).find("it looks like an ONNX model: make an engine of it with `tare compile`"), std::string::npos);
  EXPECT_NE(fileRefusal(dir.write("z", std::string("PK\3\4aaaaaaaa"))).find("zip archive"), std::string::npos);
  EXPECT_EQ(fileRefusal(dir.write("empty", "")), "not a Tare engine: " + dir.path("empty") + " is empty");
  EXPECT_EQ(fileRefusal(dir.path()), "not a regular file: " + dir.path());
  EXPECT_EQ(fileRefusal(dir.path("none"), TARE_IO), "cannot open engine: " + dir.path("none") + ": No such file or directory");
  ASSERT_EQ(mkfifo(dir.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(fileRefusal(dir.path("fifo")), "not a regular file: " + dir.path("fifo")); // and does not hang
}

TEST(EngineFile, WritingIsDeterministicAndReplacesAtomically) {
  TempDir a, b;
  writeTestEngine(a.path("e.tare"));
  mode_t before = umask(077);
  writeTestEngine(b.path("name with space é.tare"));
  umask(before);
  EXPECT_EQ(readFile(a.path("e.tare")), readFile(b.path("name with space é.tare")));
  struct stat info;
  ASSERT_EQ(stat(b.path("name with space é.tare").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // An engine that is in use keeps its bytes when its file is replaced (F10).
  tare_error error;
  tare_engine_t *engine = tare_engine_open(a.path("e.tare").c_str(), nullptr, &error);
  ASSERT_NE(engine, nullptr);
  writeTestEngine(a.path("e.tare"), {nullptr, std::string(16, '\1'), {}});
  EXPECT_EQ(tare_engine_verify(engine, &error), TARE_OK) << error.message;
  tare_engine_close(engine);
  EXPECT_EQ(filesIn(a.path()), std::vector<std::string>{"e.tare"});
}

TEST(EngineFile, FailuresLeaveTheOldFileAndNoTemporaryOne) {
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  const std::string good = readFile(dir.path("e.tare"));
  // A plan that does not verify: the writer reads back what it wrote and refuses (a bug would look like this).
  {
    auto file = tare::SectionWriter::create(dir.path("e.tare"));
    ASSERT_TRUE(static_cast<bool>(file));
    ASSERT_TRUE(static_cast<bool>(file->add(tare::format::SectionKind::Plan, 64, "nonsense")));
    EXPECT_EQ(llvm::toString(file->finish()).rfind("the written engine does not verify: ", 0), 0u);
  }
  // A full disk (file size limit).
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{6000, 6000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto file = tare::SectionWriter::create(dir.path("e.tare"));
    if (!file) _exit(9);
    auto error = file->begin(tare::format::SectionKind::Weights, 4096);
    if (error) _exit(8);
    error = file->append(std::string(10000, 'w'));
    std::string text = llvm::toString(std::move(error));
    { auto gone = std::move(*file); }
    _exit(text.find("cannot write: File too large") == 0 ? 0 : 7);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(readFile(dir.path("e.tare")), good);
  EXPECT_EQ(filesIn(dir.path()), std::vector<std::string>{"e.tare"});
  // Targets that are not plain files.
  ASSERT_EQ(symlink("e.tare", dir.path("link").c_str()), 0);
  EXPECT_EQ(messageOf(tare::SectionWriter::create(dir.path("link"))), "the output is a symbolic link, which is not followed");
  EXPECT_EQ(messageOf(tare::SectionWriter::create("/dev/full")), "the output exists and is not a regular file");
  EXPECT_EQ(messageOf(tare::SectionWriter::create(dir.path("no/such/e.tare"))), "cannot open the output folder: No such file or directory");
  EXPECT_EQ(messageOf(tare::SectionWriter::create(dir.path() + "/")), "not a file name");
}

TEST(EngineFile, ABitThatFlipsInMemoryAfterTheLoadIsFound) { // F08: paranoid users verify again before a run
  TempDir dir;
  writeTestEngine(dir.path("e.tare"));
  std::string bytes = readFile(dir.path("e.tare"));
  uint64_t weights = 0;
  for (uint32_t i = 0; i < header(bytes).sectionCount; ++i)
    if (table(bytes)[i].kind == static_cast<uint32_t>(tare::format::SectionKind::Weights)) weights = table(bytes)[i].offset;
  std::vector<char> aligned(bytes.size() + 64);
  char *base = aligned.data() + (64 - reinterpret_cast<uintptr_t>(aligned.data()) % 64);
  memcpy(base, bytes.data(), bytes.size());
  tare_options options{};
  options.struct_bytes = sizeof options, options.paranoid = 1;
  tare_error error;
  tare_engine_t *inMemory = tare_engine_open_memory(base, bytes.size(), &options, &error), *mapped = tare_engine_open(dir.path("e.tare").c_str(), &options, &error);
  ASSERT_TRUE(inMemory && mapped) << error.message;
  EXPECT_EQ(tare_engine_verify(inMemory, &error), TARE_OK);
  EXPECT_EQ(tare_engine_verify(mapped, &error), TARE_OK);
  base[weights + 5] ^= 0x10;
  int file = open(dir.path("e.tare").c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(file, base + weights + 5, 1, static_cast<off_t>(weights + 5)), 1);
  close(file);
  for (tare_engine_t *engine : {inMemory, mapped}) {
    EXPECT_EQ(tare_engine_verify(engine, &error), TARE_REFUSED);
    EXPECT_EQ(std::string(error.message), "hash mismatch: section weights was changed (SHA-256) (at byte " + std::to_string(weights) + ")");
    tare_engine_close(engine);
  }
}

TEST(EngineFile, SignalsRemoveTheTemporaryFile) {
  for (int signal : {SIGINT, SIGTERM}) {
    TempDir dir;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
      auto file = tare::SectionWriter::create(dir.path("e.tare"));
      char ok = file ? 'y' : 'n';
      if (write(ready[1], &ok, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char ok = 0;
    ASSERT_EQ(read(ready[0], &ok, 1), 1);
    EXPECT_EQ(ok, 'y');
    EXPECT_EQ(filesIn(dir.path()).size(), 1u);
    kill(child, signal);
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(filesIn(dir.path()).size(), 0u);
    close(ready[0]), close(ready[1]);
  }
}
