// Tests' side of the fake CUDA driver (test/support/fakecuda). In: TARE_FAKE_CUDA, the library, and a library of host kernels. Out: a driver that the runtime finds
// through TARE_LIBCUDA, its log and its complaints. Must hold: at the end of every test nothing is held and nothing was misused.
// With TARE_REAL_GPU in the environment there is no fake: tests that can, run on the machine's own driver.
#pragma once
#include "test/support/fakecuda/FakeDriver.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <dlfcn.h>
#include <sstream>
#include <string>
#include <vector>

namespace tare::test {

class FakeCudaTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (getenv("TARE_REAL_GPU")) return; // tools/gpu-check.sh: the same test on a GPU
    setenv("TARE_LIBCUDA", TARE_FAKE_CUDA, 1);
    void *library = dlopen(TARE_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    auto find = reinterpret_cast<const FakeCuda *(*)()>(dlsym(library, "fake_cuda"));
    ASSERT_NE(find, nullptr);
    fake = find();
    fake->reset();
  }
  void TearDown() override {
    if (fake) expectClean("at the end of the test");
  }
  void expectClean(const std::string &when) {
    EXPECT_STREQ(fake->held(), "") << when;
    EXPECT_STREQ(fake->wrong(), "") << when;
    EXPECT_EQ(fake->depth(), 0) << when;
  }
  std::vector<std::string> log() const {
    std::vector<std::string> lines;
    std::istringstream text(fake->log());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  size_t count(const std::string &call) const {
    size_t n = 0;
    for (auto &line : log()) n += line.compare(0, call.size(), call) == 0;
    return n;
  }
  const FakeCuda *fake = nullptr; ///< null on a real GPU
};

} // namespace tare::test
