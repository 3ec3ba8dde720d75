// The certificate against its source (Certificate.h).
#include "tools/tare/Certificate.h"
#include "tools/tare/Console.h"
#include "tools/tare/EngineHandle.h"

namespace tare::cli {

llvm::Expected<ExitCode> verifyCertificateOf(const std::string &path, const std::string &model, Console &console) {
  auto engine = EngineHandle::open(path);
  if (!engine) return engine.takeError();
  auto text = engine->section("certificate");
  if (!text) return text.takeError();
  return fail(ExitCode::Internal, "the certificate checker is not linked into this build").inFile(path);
}

} // namespace tare::cli
