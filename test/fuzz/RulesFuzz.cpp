// libFuzzer target: bytes as a rules file (YAML) and as a JSON document of a checkpoint. In: any bytes. Must hold: read or refused with a Failure; rules that were read can
// be asked about any path.
#include "compiler/checks/Rules.h"
#include "compiler/import/StrictJson.h"
#include "test/fuzz/Bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  tare::fuzz::finished(tare::checks::parseRules(text, "rules.yaml"));
  tare::fuzz::finished(tare::parseStrictJson(text, "config.json", "config.json"));
  return 0;
}
