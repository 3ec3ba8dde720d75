// dlopen, one dlsym per function, and the driver's own words for its errors.
#include "runtime/CudaDriver.h"
#include <cstdlib>
#include <dlfcn.h>

namespace tare::driver {

Result<Driver> Driver::load(int needed) {
  const char *own = secure_getenv("TARE_LIBCUDA"), *name = own && *own ? own : "libcuda.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return Error::format(Status::Environment, "no CUDA driver on this machine",
                         "%s; the GPU target needs an NVIDIA driver for CUDA %d.%d or later; install one, or run with --target cpu when the engine has code for it", why ? why : name,
                         needed / 1000, needed % 1000 / 10);
  }
  Driver d;
  const char *missing = nullptr;
#define TARE_DRIVER_FIND(member, name, parameters)                                                                     \
  if (void *found = dlsym(library, #name)) d.member = reinterpret_cast<Code(*) parameters>(found);                     \
  else if (!missing) missing = #name;
  TARE_DRIVER_FUNCTIONS(TARE_DRIVER_FIND)
#undef TARE_DRIVER_FIND
  bool isNamed = d.driverVersion && d.errorName && d.errorString;
  if (isNamed) TARE_TRY(d.check(d.driverVersion(&d.version), "the CUDA driver does not say its version"));
  if (!isNamed || missing || d.version < kOldestVersion)
    return Error::format(Status::Environment, "the CUDA driver is too old", "it is for CUDA %d.%d%s%s, CUDA %d.%d or later is needed; update the NVIDIA driver", d.version / 1000,
                         d.version % 1000 / 10, missing ? " and lacks " : "", missing ? missing : "", needed / 1000, needed % 1000 / 10);
  TARE_TRY(d.check(d.init(0), "the CUDA driver does not start"));
  return d;
}

bool Driver::refusesGraphsOnly(Code code) {
  return code == kOutOfMemory || code == 800 || code == 801 || // not permitted, not supported
         (code >= 900 && code <= 908) || code == 910;          // CUDA_ERROR_STREAM_CAPTURE_*, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
}

static Error describe(Code code, const char *what, const char *name, const char *text, int version) {
  if (code == kOutOfMemory) return Error::format(Status::Limit, what, "%s (%s); free memory of the GPU or use smaller inputs", name, text);
  switch (code) {
  case 3: case 34: case 35: case 46: case 99: case kNoDevice: case 101: case 803: case 804: // not initialised, stub, old, busy, none, mismatch
  case kNoBinary: case 200: case 218: case 221: case kUnsupportedPtx: case 802: case 214:   // image or device will not do
    return Error::format(Status::Environment, what, "%s (%s); driver for CUDA %d.%d; see what nvidia-smi says", name, text, version / 1000, version % 1000 / 10);
  default:
    return Error::format(Status::Internal, what, "%s (%s); after a fault of a kernel the process must be started anew; CUDA_LAUNCH_BLOCKING=1 in the environment names the step", name, text);
  }
}

Error Driver::error(Code code, const char *what) const {
  const char *name = nullptr, *text = nullptr;
  if (errorName(code, &name) != 0 || !name) name = "unknown error";
  if (errorString(code, &text) != 0 || !text) text = "no text";
  Error error = describe(code, what, name, text, version);
  error.driverCode = code;
  return error;
}

} // namespace tare::driver
