// An opened engine: verified file, validated plan, chosen code (this CPU's or a GPU's). In: a path or bytes, and options. Out: immutable data that any number of
// contexts share.
#pragma once
#include "runtime/CudaDevice.h"
#include "runtime/EngineReader.h"
#include "runtime/Validate.h"
#include "runtime/code_abi.h"
#include "runtime/tare.h"
#include <memory>

namespace tare {

class Engine {
public:
  static Result<std::shared_ptr<const Engine>> open(const char *path, const tare_options &options);
  static Result<std::shared_ptr<const Engine>> fromMemory(const void *data, size_t bytes, const tare_options &options);

  const fb::Plan &plan() const { return *planView; }
  const EngineFile &file() const { return *source; }
  const uint8_t *weights() const { return weightData; }
  /// The code for this CPU, or why there is none: an engine for other CPUs can be inspected and verified, but not run.
  Result<tare_code_entry> entry() const;
  /// The GPU whose code was chosen; null when it is the CPU's.
  CudaDevice *gpu() const { return device.get(); }
  /// "x86-64-v4", "cuda:sm_90", ...: what was chosen; "" when nothing fits this machine.
  const char *level() const { return levelName; }

private:
  Result<void> takeCode(const char *asked, int cudaDevice);
  Result<void> takeCpuCode(const char *bound);
  static Result<std::shared_ptr<const Engine>> make(Result<EngineFile> file, const tare_options &options);
  std::unique_ptr<EngineFile> source;
  const fb::Plan *planView = nullptr;
  const uint8_t *weightData = nullptr;
  const char *levelName = "";
  Mapping code;
  std::unique_ptr<CudaDevice> device; // reads file and plan: goes first
  Error noCode{Status::Environment, "no machine code for this CPU"};
};

} // namespace tare
