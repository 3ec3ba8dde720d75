// Launches written to a file, for test/tools/ptx/replay.py: FAKE_CUDA_RECORD names a folder, every process writes PID.launches there. In: a launch, before and after it
// was executed. Out, little endian, strings with their length in front (u64):
//   'M' module (u64), its image                                     before the module's first launch
//   'L' module (u64), kernel, grid and block (u32 x 3 each), dynamic shared bytes (u32), count and bytes of the parameters, count of allocations and (u64 address, u64
//       bytes) of each, what device memory was: writes
//   'E' what the launch changed: writes
// Writes are a count and (u64 address, bytes) of pieces that differ from what the file says so far; new allocations are zeros until they are written.
#pragma once
#include "World.h"

namespace tare::fakecuda {

/// Before and after a launch; both do nothing without FAKE_CUDA_RECORD.
void recordLaunch(const FakeKernel &kernel);
void recordEnd();

} // namespace tare::fakecuda
