// Images of CUDA kernels with a toolkit of our own: what is compiled, what a cache saves, what a failure leaves, what
// ptxas's words mean. No CUDA is needed.
#include "compiler/codegen/cuda/Images.h"
#include "compiler/graph/Failure.h"
#include "test/support/TempDir.h"
#include "gtest/gtest.h"
#include <filesystem>
#include <mutex>
#include <thread>

using namespace tare;
using namespace tare::cuda;
using tare::test::readFile;
using tare::test::TempDir;

namespace {
/// "Compiles" by hashing, and counts.
class Fake : public Toolkit {
public:
  Fake() { name = "fake 1.0", identity = "fake 1.0 flags", known = {"sm_80", "sm_90"}; }
  llvm::Expected<Outcome> compile(llvm::StringRef kernel, llvm::StringRef text,
                                  llvm::StringRef architecture) const override {
    std::lock_guard lock(mutex);
    ++calls;
    if (text.contains("broken")) return Outcome{false, "", "", "a note\nk.cu(3): error: no such thing\n"};
    std::string own = architecture.str() + std::to_string(llvm::hash_value(text));
    std::string cubin = "\x7f"
                        "ELF" +
                        own;
    return Outcome{true, text.contains("garbage") ? "?" : cubin,
                   text.contains("no ptx") ? "" : ".entry " + kernel.str() + " " + own,
                   "ptxas info    : Compiling entry function '" + kernel.str() +
                       "' for 'sm_80'\n    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\nptxas "
                       "info    : Used 40 registers, 2048 bytes smem\n"};
  }
  mutable unsigned calls = 0;
  mutable std::mutex mutex;
};

tare::cuda::Program programOf(std::vector<std::string> texts) {
  tare::cuda::Program program;
  for (auto &text : texts) {
    KernelText k;
    k.name = "kernel_" + std::to_string(program.kernels.size()), k.text = text;
    program.kernels.push_back(std::move(k));
  }
  return program;
}
std::vector<std::string> bytesOf(const tare::cuda::Program &program) {
  std::vector<std::string> all;
  for (auto &image : program.images)
    for (auto &binary : image.binaries)
      all.push_back(image.architecture + ":" + binary);
  return all;
}
Failure failureOf(llvm::Error error) {
  Failure failure(ExitCode::Ok, "no failure");
  llvm::handleAllErrors(std::move(error), [&](const Failure &f) { failure = f; });
  return failure;
}
const std::vector<std::string> kTexts = {"// one\n", "// two\n", "// three\n"};
} // namespace

TEST(CudaImages, OneCubinPerArchitectureAndThePtxOfTheLowest) {
  Fake toolkit;
  auto images = imagesFor({"sm_90", "sm_80"}, toolkit);
  ASSERT_TRUE(static_cast<bool>(images));
  EXPECT_EQ(*images, (std::vector<std::string>{"sm_80", "sm_90", "compute_80"}));
  EXPECT_EQ(*imagesFor({"sm_90"}, toolkit), (std::vector<std::string>{"sm_90", "compute_90"}));
  Failure old = failureOf(imagesFor({"sm_80", "sm_100"}, toolkit).takeError());
  EXPECT_EQ(old.code, ExitCode::Environment);
  EXPECT_EQ(old.message, "fake 1.0 cannot compile for sm_100; it knows sm_80, sm_90");
  EXPECT_NE(old.hint.find("CUDA Toolkit 12.8 or later"), std::string::npos) << old.hint;
  toolkit.known.clear(); // as clang: PTX of two architectures
  EXPECT_EQ(*imagesFor({"sm_86", "sm_89", "sm_100", "sm_120"}, toolkit),
            (std::vector<std::string>{"compute_80", "compute_90"}));
  EXPECT_EQ(*imagesFor({"sm_120"}, toolkit), (std::vector<std::string>{"compute_90"}));
}

TEST(CudaImages, ThreadsAndCacheChangeNothingButTheWork) {
  TempDir dir;
  Fake toolkit;
  auto first = programOf(kTexts), again = programOf(kTexts), plain = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(first, {"sm_80", "sm_90"}, toolkit, {1, dir.path("cache")})));
  EXPECT_EQ(toolkit.calls, 6u);
  EXPECT_EQ(first.images[2].binaries[0].back(), '\0'); // PTX ends with a zero
  ASSERT_TRUE(first.images[1].resources[2].has_value());
  EXPECT_FALSE(first.images[2].resources[0].has_value());
  EXPECT_FALSE(static_cast<bool>(compileImages(again, {"sm_80", "sm_90"}, toolkit, {3, dir.path("cache")})));
  EXPECT_EQ(toolkit.calls, 6u);
  EXPECT_EQ(again.compiled, 0u);
  EXPECT_EQ(again.reused, 9u);
  EXPECT_EQ(again.images[0].resources[1]->spillLoads, 12);
  EXPECT_FALSE(static_cast<bool>(compileImages(plain, {"sm_80", "sm_90"}, toolkit, {3, ""})));
  EXPECT_EQ(bytesOf(again), bytesOf(first));
  EXPECT_EQ(bytesOf(plain), bytesOf(first));
  toolkit.identity = "fake 1.1 flags"; // another compiler: nothing of the old one is taken
  auto newer = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(newer, {"sm_80"}, toolkit, {1, dir.path("cache")})));
  EXPECT_EQ(newer.compiled, 6u);
}

TEST(CudaImages, OneCallMakesACubinAndItsPtx) {
  TempDir dir;
  Fake toolkit;
  auto first = programOf(kTexts), again = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(first, {"sm_90"}, toolkit, {1, dir.path("cache")})));
  EXPECT_EQ(toolkit.calls, 3u);
  EXPECT_EQ(first.compiled, 6u);
  auto isOfKey = [&](const std::filesystem::directory_entry &entry) {
    return readFile(entry.path().string()).find(".entry kernel_1") != std::string::npos;
  };
  for (auto &entry : std::filesystem::directory_iterator(dir.path("cache")))
    if (isOfKey(entry)) std::filesystem::remove(entry.path()); // the PTX of one kernel is lost: its pair is made again
  EXPECT_FALSE(static_cast<bool>(compileImages(again, {"sm_90"}, toolkit, {1, dir.path("cache")})));
  EXPECT_EQ(toolkit.calls, 4u);
  EXPECT_EQ(again.reused, 4u);
  EXPECT_EQ(bytesOf(again), bytesOf(first));
  toolkit.known.clear(); // PTX only
  auto texts = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(texts, {"sm_80", "sm_90"}, toolkit, {2, ""})));
  EXPECT_EQ(toolkit.calls, 10u);
  ASSERT_EQ(texts.images.size(), 2u);
  EXPECT_EQ(texts.images[1].binaries[2].substr(0, 15), ".entry kernel_2");
}

TEST(CudaImages, EntriesOfOtherKeysAreRefusedAndRemade) {
  TempDir dir;
  Fake toolkit;
  auto first = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(first, {"sm_80"}, toolkit, {1, dir.path("cache")})));
  std::vector<std::filesystem::path> cubins; // two whole, good entries under each other's names
  for (auto &entry : std::filesystem::directory_iterator(dir.path("cache")))
    if (readFile(entry.path().string()).find("ELFsm_80") != std::string::npos) cubins.push_back(entry.path());
  ASSERT_EQ(cubins.size(), 3u);
  std::string a = readFile(cubins[0].string()), b = readFile(cubins[1].string());
  dir.write("cache/" + cubins[0].filename().string(), b), dir.write("cache/" + cubins[1].filename().string(), a);
  auto again = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(again, {"sm_80"}, toolkit, {1, dir.path("cache")})));
  EXPECT_EQ(again.compiled, 4u);
  EXPECT_EQ(bytesOf(again), bytesOf(first));
  EXPECT_EQ(readFile(cubins[0].string()), a);
  EXPECT_EQ(readFile(cubins[1].string()), b);
}

TEST(CudaImages, CompilesThatShareACacheAtTheSameTime) {
  TempDir dir;
  Fake toolkit;
  auto alone = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(alone, {"sm_80", "sm_90"}, toolkit, {1, ""})));
  for (int round = 0; round < 6; ++round) {
    tare::cuda::Program programs[4];
    std::vector<std::thread> threads;
    for (auto &program : programs)
      threads.emplace_back([&] {
        program = programOf(kTexts);
        EXPECT_FALSE(static_cast<bool>(compileImages(program, {"sm_80", "sm_90"}, toolkit, {2, dir.path("cache")})));
      });
    for (auto &thread : threads)
      thread.join();
    for (auto &program : programs) {
      EXPECT_EQ(bytesOf(program), bytesOf(alone));
      EXPECT_EQ(program.cacheTrouble, "");
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path("cache")), {}), 9); // no temporary file either
    if (round % 2) std::filesystem::remove_all(dir.path("cache"));
  }
}

TEST(CudaImages, ADamagedCacheIsNone) {
  TempDir dir;
  Fake toolkit;
  auto first = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(first, {"sm_80"}, toolkit, {1, dir.path("cache")})));
  size_t entries = 0;
  for (auto &entry : std::filesystem::directory_iterator(dir.path("cache"))) {
    std::string bytes = readFile(entry.path().string());
    if (entries++ % 2)
      bytes.back() ^= 1;
    else
      bytes.resize(bytes.size() / 2);
    dir.write("cache/" + entry.path().filename().string(), bytes);
  }
  EXPECT_EQ(entries, 6u);
  auto again = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(again, {"sm_80"}, toolkit, {1, dir.path("cache")})));
  EXPECT_EQ(again.reused, 0u);
  EXPECT_EQ(bytesOf(again), bytesOf(first));
  auto third = programOf(kTexts); // and was written anew
  EXPECT_FALSE(static_cast<bool>(compileImages(third, {"sm_80"}, toolkit, {1, dir.path("cache")})));
  EXPECT_EQ(third.reused, 6u);
  dir.write("file", "no folder");
  auto nowhere = programOf(kTexts);
  EXPECT_FALSE(static_cast<bool>(compileImages(nowhere, {"sm_80"}, toolkit, {1, dir.path("file")})));
  EXPECT_EQ(nowhere.cacheTrouble.rfind("kernels were not kept in the cache: ", 0), 0u) << nowhere.cacheTrouble;
  EXPECT_TRUE(nowhere.warnings.empty()); // those go into the engine
}

TEST(CudaImages, ATextThatDoesNotCompileIsKept) {
  Fake toolkit;
  for (unsigned threads : {1u, 3u}) {
    auto program = programOf({"// one\n", "broken\n"});
    Failure failure = failureOf(compileImages(program, {"sm_80"}, toolkit, {threads, ""}));
    EXPECT_EQ(failure.code, ExitCode::Environment);
    EXPECT_EQ(failure.message,
              "fake 1.0 failed on the generated kernel kernel_1 for sm_80: k.cu(3): error: no such thing");
    EXPECT_NE(readFile(failure.file).find("broken"), std::string::npos);
    std::filesystem::path folder = std::filesystem::path(failure.file).parent_path();
    EXPECT_NE(readFile((folder / "log").string()).find("a note"), std::string::npos);
    EXPECT_NE(failure.hint.find(folder.string()), std::string::npos);
    std::filesystem::remove_all(folder);
  }
  auto program = programOf({"garbage\n"});
  Failure failure = failureOf(compileImages(program, {"sm_80"}, toolkit, {1, ""}));
  EXPECT_NE(failure.message.find("neither a cubin nor PTX"), std::string::npos) << failure.message;
  std::filesystem::remove_all(std::filesystem::path(failure.file).parent_path());
  auto half = programOf({"no ptx\n"});
  failure = failureOf(compileImages(half, {"sm_80"}, toolkit, {1, ""}));
  EXPECT_NE(failure.message.find("the compiler left no result"), std::string::npos) << failure.message;
  std::filesystem::remove_all(std::filesystem::path(failure.file).parent_path());
}

TEST(CudaImages, WordsOfPtxas) {
  const char *log = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'a' for 'sm_90'\nptxas "
                    "info    : Function properties for a\n"
                    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 128 "
                    "registers, used 1 barriers\n"
                    "ptxas info    : Compiling entry function 'ab' for 'sm_90'\n    328 bytes stack frame, 96 bytes "
                    "spill stores, 108 bytes spill loads\n"
                    "ptxas info    : Used 32 registers, used 1 barriers, 328 bytes cumulative stack size, 4096 bytes "
                    "smem, 400 bytes cmem[0]\n";
  auto a = parseResources(log, "a"), ab = parseResources(log, "ab");
  ASSERT_TRUE(a && ab);
  EXPECT_EQ(a->registers, 128);
  EXPECT_EQ(a->spillStores + a->spillLoads + a->sharedBytes + a->stackBytes, 0);
  EXPECT_EQ(ab->registers, 32);
  EXPECT_EQ(ab->sharedBytes, 4096);
  EXPECT_EQ(ab->stackBytes, 328);
  EXPECT_EQ(ab->spillStores, 96);
  EXPECT_EQ(ab->spillLoads, 108);
  EXPECT_FALSE(parseResources(log, "b"));
  EXPECT_FALSE(parseResources("", "a"));
}
