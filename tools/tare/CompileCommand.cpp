// tare compile MODEL: checkpoint in, engine out. In: the options of Options.cpp. Out: what Driver.cpp makes.
#include "tools/tare/Driver.h"
#include "tools/tare/Version.h"

namespace tare::cli {

static llvm::Expected<ExitCode> runWith(const RawOptions &raw, bool checkOnly, Console &console) {
  auto request = checkOptions(raw, checkOnly, console.json);
  if (!request) return request.takeError();
  if (request->supported) {
    console.out(supportedText(console.json));
    return ExitCode::Ok;
  }
  return request->dryRun ? runDryRun(*request, console) : runCompile(*request, console);
}

void addCompileCommand(CLI::App &app, Session &session) {
  auto raw = std::make_shared<RawOptions>();
  addCompileOptions(addCommand(app, session, "compile", "Find dead layers, prove and remove them, and write one engine file", [raw, &session] { return runWith(*raw, false, session.console); }), *raw, false);
}

void addCheckCommand(CLI::App &app, Session &session) {
  auto raw = std::make_shared<RawOptions>();
  addCompileOptions(addCommand(app, session, "check", "The checks and the report only; no engine", [raw, &session] { return runWith(*raw, true, session.console); }), *raw, true);
}

} // namespace tare::cli
