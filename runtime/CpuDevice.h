// Which machine code this CPU may run. In: the CPU's own words (CPUID, XGETBV) and an optional upper bound for tests. Out: a level; levels are ordered,
// each holds all before it. Shared with the tools (`tare inspect --kernels`).
#pragma once
#include "runtime/result.h"
#include <cstddef>

namespace tare {

enum class CpuLevel : int { None = 0, V3, V4, Avx512Bf16, Amx };

/// "x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"; "none" for None.
const char *cpuLevelName(CpuLevel level);
/// None for a name that is not a level.
CpuLevel cpuLevelFromName(const char *name);
/// What the hardware and the operating system support. AMX is included without asking for its permission (see requestAmx).
CpuLevel detectCpuLevel();
/// Asks Linux once per process for the AMX tile registers; false when it refuses.
bool requestAmx();
/// Physical cores among the CPUs that this process may use (at least 1).
int physicalCores();

/// The index of the best of `levels` that this CPU can run and that is not above `bound` (a level name, or null); asks for AMX when it is taken.
/// Error Environment names what is there and what the CPU has.
Result<size_t> chooseLevel(const char *const *levels, size_t count, const char *bound);

} // namespace tare
