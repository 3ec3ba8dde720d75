// A CUDA driver without a GPU, for tests: libfakecuda.so has the exported names of libcuda.so.1 that the runtime looks up (TARE_LIBCUDA names it). In: calls. Out:
// a log of them, a list of all that is still held, a list of misuses. "Device" memory is host memory under addresses that no host code can follow; work of a
// stream is done when the stream is waited for, not before. Kernels are executed for real when a library of host kernels (HostKernels.h: the kernels' own text,
// compiled as C++ against kernels/cuda/emu) is given; without one a launch does nothing. Any call can be made to fail.
#pragma once
#include <cstdint>

extern "C" {
/// What a test may set and see. Programs that run in another process set the same by environment: FAKE_CUDA_<KEY in capitals>, FAKE_CUDA_KERNELS, and
/// FAKE_CUDA_REFUSE ("cuStreamBeginCapture=801"); FAKE_CUDA_LOG names a file that gets log, misuses and what is still held when the process ends; FAKE_CUDA_RECORD: Record.h.
struct FakeCuda {
  /// Forgets the log and misuses and takes the settings of the environment again. What is held stays held.
  void (*reset)();
  /// capability (90), capability_1 and capability_2 (of devices 1 and 2; 0: as device 0), version (of the driver, 12040), devices (1), memory (bytes), fail_at (number of the call from 1, 0: none), fail_with (CUresult, 999), cubin_refused, ptx_refused.
  void (*set)(const char *key, int64_t value);
  void (*kernels)(const char *library);
  const char *(*log)();   ///< one call a line, "name arguments", since the reset
  const char *(*held)();  ///< memory, modules, streams, ... not given back: one a line; empty: none
  const char *(*wrong)(); ///< misuses: one a line; empty: none
  int64_t (*calls)();     ///< calls since the reset that could have failed
  int64_t (*launches)();  ///< kernels executed since the reset, from graphs too
  int (*depth)();         ///< contexts pushed by this thread and not popped
  void (*refuse)(const char *call, int code); ///< all calls of this name fail with `code` until the reset
};
__attribute__((visibility("default"))) const FakeCuda *fake_cuda();
}
