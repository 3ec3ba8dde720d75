// CPU feature detection. A level counts only when CPUID has every feature of it and the operating system saves its registers (XGETBV).
#include "runtime/CpuDevice.h"
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tare {
namespace {
constexpr const char *kNames[] = {"none", "x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"};

#if defined(__x86_64__)
uint64_t savedRegisters() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}
constexpr bool has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }
#endif

/// The lowest CPU number of the physical core that `cpu` belongs to; `cpu` itself when the kernel does not say.
int firstSibling(int cpu) {
  char path[96], text[64] = {0};
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  FILE *file = fopen(path, "re");
  if (!file) return cpu;
  int first = cpu;
  if (!fgets(text, sizeof text, file) || sscanf(text, "%d", &first) != 1) first = cpu;
  fclose(file);
  return first;
}
} // namespace

const char *cpuLevelName(CpuLevel level) { return kNames[static_cast<int>(level)]; }

CpuLevel cpuLevelFromName(const char *name) {
  for (int i = 1; i < 5; ++i)
    if (strcmp(name, kNames[i]) == 0) return static_cast<CpuLevel>(i);
  return CpuLevel::None;
}

CpuLevel detectCpuLevel() {
#if defined(__x86_64__)
  uint32_t a, b1, c1, d1, b7, c7, d7, a71, b, c, d;
  if (!__get_cpuid(1, &a, &b1, &c1, &d1) || !has(c1, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_POPCNT | bit_SSE4_2))
    return CpuLevel::None;
  uint64_t saved = savedRegisters();
  if (!has(uint32_t(saved), 0x6) || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return CpuLevel::None;
  constexpr uint32_t lzcnt = 1u << 5;
  if (!has(b7, bit_AVX2 | bit_BMI | bit_BMI2)) return CpuLevel::None;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has(c, lzcnt)) return CpuLevel::None;
  constexpr uint32_t v4 = bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
  if (!has(b7, v4) || !has(uint32_t(saved), 0xe6)) return CpuLevel::V3;
  if (!__get_cpuid_count(7, 1, &a71, &b, &c, &d)) a71 = 0;
  constexpr uint32_t vnni = 1u << 11, bf16 = 1u << 5;
  if (!has(c7, vnni) || !has(a71, bf16)) return CpuLevel::V4;
  constexpr uint32_t tiles = 1u << 24 | 1u << 25 | 1u << 22; // AMX-TILE, AMX-INT8, AMX-BF16
  constexpr uint64_t tileState = uint64_t(3) << 17;
  return has(d7, tiles) && (saved & tileState) == tileState ? CpuLevel::Amx : CpuLevel::Avx512Bf16;
#else
  return CpuLevel::None;
#endif
}

bool requestAmx() {
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

int physicalCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  int cores = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    int first = firstSibling(cpu); // counted once: at its first allowed sibling
    bool counted = false;
    for (int other = first; other < cpu && !counted; ++other)
      counted = CPU_ISSET(other, &allowed) && firstSibling(other) == first;
    cores += !counted;
  }
  return cores ? cores : 1;
}

Result<size_t> chooseLevel(const char *const *levels, size_t count, const char *bound) {
  CpuLevel limit = detectCpuLevel();
  // The CUDA emulator: CUDA text compiled for the lowest level; taken when asked for, or when there is nothing else.
  auto isEmulator = [](const char *name) { return strcmp(name, "cuda-emu") == 0; };
  bool onlyEmulator = count == 1 && isEmulator(levels[0]), asks = bound && isEmulator(bound);
  for (size_t i = 0; (asks || (onlyEmulator && !(bound && *bound))) && i < count; ++i)
    if (isEmulator(levels[i]) && limit >= CpuLevel::V3) return i;
  if (asks)
    return Error::format(Status::Environment, "no code for the CUDA emulator", "%s; compile again with --target cuda-emu",
                         limit >= CpuLevel::V3 ? "the engine has none" : "it needs a CPU with AVX2 (x86-64-v3)");
  if (bound && *bound && strcmp(bound, "cpu") != 0) {
    CpuLevel asked = cpuLevelFromName(bound);
    if (asked == CpuLevel::None && strcmp(bound, "none") != 0)
      return Error::format(Status::Usage, "unknown CPU level", "'%s'; known: cpu, x86-64-v3, x86-64-v4, avx512-bf16, amx, cuda, cuda-emu", bound);
    if (asked < limit) limit = asked;
  }
  for (CpuLevel level = limit; level > CpuLevel::None; level = static_cast<CpuLevel>(static_cast<int>(level) - 1))
    for (size_t i = 0; i < count; ++i)
      if (cpuLevelFromName(levels[i]) == level && (level != CpuLevel::Amx || requestAmx())) return i;
  char have[160] = {0};
  for (size_t i = 0, used = 0; i < count && used + 20 < sizeof have; ++i)
    used += snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", levels[i]);
  return Error::format(Status::Environment, "no machine code for this CPU", "the engine has code for %s; this CPU runs %s; compile again with --target cpu:%s",
                       have, cpuLevelName(limit), limit == CpuLevel::None ? "LEVEL" : cpuLevelName(limit));
}

} // namespace tare
