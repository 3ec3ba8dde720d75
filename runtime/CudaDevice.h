// The GPU side of an opened engine: driver, device, the image that fits it, kernels and weights in device memory, shared by all contexts. In: an engine file with
// Plan.cuda. Out: functions and addresses to launch with. Must hold: opening costs no device memory; that comes with the first context (load), once, and a failed
// load can be tried again; all of it is given back when the engine is closed; the caller's own current CUDA context is untouched by every call.
#pragma once
#include "runtime/CudaDriver.h"
#include "runtime/EngineReader.h"
#include "runtime/Validate.h"
#include <memory>
#include <mutex>
#include <vector>

namespace tare {

/// An architecture by its name: "sm_90" is a cubin for 9.0, "compute_80" PTX for 8.0 and later, "sm_90a" a cubin for 9.0 alone.
struct CudaArchitecture {
  bool isPtx = false, isExact = false;
  int capability = 0; ///< 10 * major + minor
  static CudaArchitecture of(const char *name);
  /// CUDA's rule: a cubin runs on the same major and its own or a later minor version, PTX on its own or any later one.
  bool runsOn(int device) const;
};

class CudaDevice {
public:
  /// `asked`: "" or the name of one image ("sm_90"). `ordinal`: the device's number, as CUDA_VISIBLE_DEVICES leaves them. Error Environment: no driver, an old one, no
  /// device of that number, no image that fits (it says which are there).
  static Result<std::unique_ptr<CudaDevice>> open(const EngineFile &file, const fb::Plan &plan, const char *asked, int ordinal);
  ~CudaDevice();
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  /// "cuda:sm_90": the image that was taken.
  const char *level() const { return name; }
  /// Modules and weights onto the device, by whoever comes first.
  Result<void> load();
  const driver::Driver &api() const { return driver; }
  /// After load.
  driver::Function function(uint32_t kernel) const { return functions[kernel]; }
  /// Of a Weight buffer of the plan that a kernel uses, or that is an input's default; after load.
  driver::Address weight(uint32_t buffer) const;
  /// Free and whole memory of the device; zeros when the driver does not say. A device context must be current.
  void memory(size_t &free, size_t &total) const;
  driver::Context context() const { return primary; }

private:
  struct Range { uint64_t begin, end, at; }; // of the weights section; `at`: in device memory
  CudaDevice(const EngineFile &file, const fb::Plan &plan) : file(file), plan(plan) {}
  Result<void> checkAsked(const char *asked) const;
  Result<void> findDevice(int ordinal);
  Error noSuchDevice(int ordinal, int count) const;
  Result<void> chooseImage(const char *asked);
  Error noImage(const char *asked) const;
  int versionOfImage(const fb::CudaImage &image) const;
  int oldestVersion() const;
  Result<void> loadKernels();
  Result<void> loadWeights();
  Result<void> loadKernel(uint32_t kernel, const fb::CudaImage &image);
  void findWeights();
  void unload();

  const EngineFile &file;
  const fb::Plan &plan;
  driver::Driver driver;
  driver::Device device = 0;
  int capability = 0;
  char name[32] = {0}, deviceName[96] = {0};
  const fb::CudaImage *image = nullptr, *fallback = nullptr; // PTX, when the driver refuses the cubin
  std::mutex loading;
  bool loaded = false;
  driver::Context primary = nullptr;
  std::vector<driver::Module> modules;
  std::vector<driver::Function> functions;
  std::vector<Range> ranges; // ascending, disjoint
  driver::Address weights = 0;
};

/// The device's context as this thread's current one, for a scope. `insist`: tried twice, for those who give something back and have nobody to tell.
class CudaCurrent {
public:
  CudaCurrent(const driver::Driver &api, driver::Context context, bool insist = false) : api(api), code(api.contextPush(context)) {
    if (code != 0 && insist) code = api.contextPush(context);
  }
  ~CudaCurrent() {
    driver::Context popped;
    if (code == 0) (void)api.contextPop(&popped);
  }
  CudaCurrent(const CudaCurrent &) = delete;
  CudaCurrent &operator=(const CudaCurrent &) = delete;
  Result<void> good() const { return api.check(code, "the CUDA context cannot be made current"); }

private:
  const driver::Driver &api;
  driver::Code code;
};

} // namespace tare
