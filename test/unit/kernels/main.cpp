// Runs the kernel tests of one level, or says that this CPU lacks it (exit 77: skipped). In: TARE_LEVEL from CMake.
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>

static bool cpuHas(const char *level) {
  if (!strcmp(level, "x86-64-v3")) return __builtin_cpu_supports("x86-64-v3");
  if (!strcmp(level, "x86-64-v4")) return __builtin_cpu_supports("x86-64-v4");
  if (!strcmp(level, "avx512-bf16")) return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
  return cpuHas("avx512-bf16") && __builtin_cpu_supports("amx-int8");
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!cpuHas(TARE_LEVEL)) {
    printf("skipped: this CPU lacks level %s\n", TARE_LEVEL);
    return 77;
  }
  return RUN_ALL_TESTS();
}
