// NVIDIA's driver, found at run time: libcuda.so.1 and the functions of it that the runtime calls, by their exported names; no header and no library of CUDA is
// needed to build. In: a machine with or without a driver. Out: a table of functions, or Error Environment that says what is missing. TARE_LIBCUDA may name
// another file (tests; ignored in set-user-ID programs). Must hold: nothing of the driver is touched by programs that ask for no GPU.
#pragma once
#include "runtime/result.h"
#include <cstddef>

namespace tare::driver {

using Code = int; // CUresult: 0 is success
using Device = int;
using Address = uint64_t; // CUdeviceptr
using Context = struct ContextOpaque *;
using Module = struct ModuleOpaque *;
using Function = struct FunctionOpaque *;
using Stream = struct StreamOpaque *;
using Event = struct EventOpaque *;
using Graph = struct GraphOpaque *;
using GraphNode = struct GraphNodeOpaque *;
using GraphExec = struct GraphExecOpaque *;

struct KernelNode { // CUDA_KERNEL_NODE_PARAMS_v1
  Function function;
  unsigned grid[3], block[3], sharedBytes;
  void **arguments, **extra;
};

// Numbers of cuda.h's enumerations.
inline constexpr Code kOutOfMemory = 2, kNoDevice = 100, kNoBinary = 209, kUnsupportedPtx = 222, kCaptureInvalidated = 901;
inline constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76; // CUdevice_attribute
inline constexpr int kMaxDynamicShared = 8;                                               // CUfunction_attribute
inline constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;                             // CUjit_option
inline constexpr unsigned kNonBlocking = 1;                                               // CU_STREAM_NON_BLOCKING
inline constexpr int kCaptureThreadLocal = 1, kCaptureActive = 1;                         // CUstreamCaptureMode, CUstreamCaptureStatus
/// CUDA 11.4, the first driver that has every function below.
inline constexpr int kOldestVersion = 11040;

// member, exported name, parameters. The exported names never change their meaning; newer forms get newer names.
#define TARE_DRIVER_FUNCTIONS(X)                                                                                       \
  X(init, cuInit, (unsigned flags))                                                                                    \
  X(driverVersion, cuDriverGetVersion, (int *version))                                                                 \
  X(errorName, cuGetErrorName, (Code code, const char **name))                                                         \
  X(errorString, cuGetErrorString, (Code code, const char **text))                                                     \
  X(deviceCount, cuDeviceGetCount, (int *count))                                                                       \
  X(deviceGet, cuDeviceGet, (Device * device, int ordinal))                                                            \
  X(deviceName, cuDeviceGetName, (char *name, int bytes, Device device))                                               \
  X(deviceAttribute, cuDeviceGetAttribute, (int *value, int attribute, Device device))                                 \
  X(contextRetain, cuDevicePrimaryCtxRetain, (Context * context, Device device))                                       \
  X(contextRelease, cuDevicePrimaryCtxRelease_v2, (Device device))                                                     \
  X(contextPush, cuCtxPushCurrent_v2, (Context context))                                                               \
  X(contextPop, cuCtxPopCurrent_v2, (Context * context))                                                               \
  X(memoryInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                        \
  X(memoryAlloc, cuMemAlloc_v2, (Address * address, size_t bytes))                                                     \
  X(memoryFree, cuMemFree_v2, (Address address))                                                                       \
  X(hostAlloc, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                         \
  X(hostFree, cuMemFreeHost, (void *address))                                                                          \
  X(copyToDevice, cuMemcpyHtoD_v2, (Address to, const void *from, size_t bytes))                                       \
  X(copyToDeviceAsync, cuMemcpyHtoDAsync_v2, (Address to, const void *from, size_t bytes, Stream stream))              \
  X(copyToHostAsync, cuMemcpyDtoHAsync_v2, (void *to, Address from, size_t bytes, Stream stream))                      \
  X(moduleLoad, cuModuleLoadDataEx, (Module * module, const void *image, unsigned count, int *options, void **values)) \
  X(moduleUnload, cuModuleUnload, (Module module))                                                                     \
  X(moduleFunction, cuModuleGetFunction, (Function * function, Module module, const char *name))                       \
  X(functionSet, cuFuncSetAttribute, (Function function, int attribute, int value))                                    \
  X(launch, cuLaunchKernel,                                                                                            \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,              \
     unsigned blockZ, unsigned sharedBytes, Stream stream, void **arguments, void **extra))                            \
  X(streamCreate, cuStreamCreate, (Stream * stream, unsigned flags))                                                   \
  X(streamDestroy, cuStreamDestroy_v2, (Stream stream))                                                                \
  X(streamSynchronize, cuStreamSynchronize, (Stream stream))                                                           \
  X(captureBegin, cuStreamBeginCapture_v2, (Stream stream, int mode))                                                  \
  X(captureInfo, cuStreamGetCaptureInfo_v2,                                                                            \
    (Stream stream, int *status, uint64_t *id, Graph *graph, const GraphNode **last, size_t *count))                   \
  X(captureEnd, cuStreamEndCapture, (Stream stream, Graph *graph))                                                     \
  X(graphInstantiate, cuGraphInstantiateWithFlags, (GraphExec * exec, Graph graph, unsigned long long flags))          \
  X(graphSetKernel, cuGraphExecKernelNodeSetParams, (GraphExec exec, GraphNode node, const KernelNode *parameters))    \
  X(graphLaunch, cuGraphLaunch, (GraphExec exec, Stream stream))                                                       \
  X(graphExecDestroy, cuGraphExecDestroy, (GraphExec exec))                                                            \
  X(graphDestroy, cuGraphDestroy, (Graph graph))                                                                       \
  X(eventCreate, cuEventCreate, (Event * event, unsigned flags))                                                       \
  X(eventRecord, cuEventRecord, (Event event, Stream stream))                                                          \
  X(eventElapsed, cuEventElapsedTime, (float *milliseconds, Event from, Event to))                                     \
  X(eventDestroy, cuEventDestroy_v2, (Event event))

struct Driver {
#define TARE_DRIVER_MEMBER(member, name, parameters) Code(*member) parameters = nullptr;
  TARE_DRIVER_FUNCTIONS(TARE_DRIVER_MEMBER)
#undef TARE_DRIVER_MEMBER
  int version = 0; ///< 1000 * major + 10 * minor of the newest CUDA that the driver knows

  /// Opens the library, checks the version, calls cuInit. The library stays in the process (it has threads of its own). `needed`: the CUDA version that errors ask for.
  static Result<Driver> load(int needed = kOldestVersion);
  /// True for codes with which a driver refuses a graph (capture, instantiation, new parameters, its memory) and takes plain launches all the same.
  static bool refusesGraphsOnly(Code code);
  /// What a failed call means: out of memory is Limit; a driver or device that will not do is Environment; all else Internal. `what` (static) says what was tried.
  Error error(Code code, const char *what) const;
  Result<void> check(Code code, const char *what) const {
    if (code == 0) return {};
    return error(code, what);
  }
};

} // namespace tare::driver
