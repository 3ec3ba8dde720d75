// The runtime's own declarations of the CUDA driver (runtime/CudaDriver.h) against NVIDIA's header. In: cuda.h of a toolkit. Out: it compiles, or the compiler says which
// function or number differs. Must hold: every parameter has the size and kind (pointer or value) of the real one under the exported name that is looked up.
#define __CUDA_API_VERSION_INTERNAL // declares old names as they are, without renaming them to new ones
#include "runtime/CudaDriver.h"
#include <cuda.h>
#include <type_traits>

namespace {
template <class Ours, class Theirs> constexpr bool isAlike = sizeof(Ours) == sizeof(Theirs) && std::is_pointer<Ours>::value == std::is_pointer<Theirs>::value;
template <class Ours, class Theirs> struct Signature;
template <class R, class... A, class Q, class... B> struct Signature<R (*)(A...), Q (*)(B...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(A) == sizeof...(B)) return isAlike<R, Q> && (isAlike<A, B> && ...);
    else return false;
  }
};
} // namespace

#define TARE_COMPARE(member, name, parameters) static_assert(Signature<decltype(tare::driver::Driver::member), decltype(&name)>::compare(), #name);
TARE_DRIVER_FUNCTIONS(TARE_COMPARE)

using namespace tare::driver;
static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1) && offsetof(KernelNode, sharedBytes) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes) &&
              offsetof(KernelNode, arguments) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams));
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && kNoDevice == CUDA_ERROR_NO_DEVICE && kNoBinary == CUDA_ERROR_NO_BINARY_FOR_GPU && kUnsupportedPtx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(kCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR && kCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kMaxDynamicShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && kJitErrorLog == CU_JIT_ERROR_LOG_BUFFER && kJitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(kNonBlocking == CU_STREAM_NON_BLOCKING && kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && kCaptureActive == CU_STREAM_CAPTURE_STATUS_ACTIVE);
