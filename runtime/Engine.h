// An opened engine: verified file, validated plan, chosen machine code. In: a path or bytes, and options. Out: immutable data that any number of
// contexts share.
#pragma once
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
  /// "" when no code fits this CPU.
  const char *level() const { return levelName; }

private:
  Result<void> takeCode(const char *bound);
  static Result<std::shared_ptr<const Engine>> make(Result<EngineFile> file, const tare_options &options);
  std::unique_ptr<EngineFile> source;
  const fb::Plan *planView = nullptr;
  const uint8_t *weightData = nullptr;
  const char *levelName = "";
  Mapping code;
  Error noCode{Status::Environment, "no machine code for this CPU"};
};

} // namespace tare
