// Output and errors of every command (Console.h). In: text. Out: bytes on descriptors 1 and 2, written completely or given up on.
#include "tools/tare/Console.h"
#include "compiler/report/Writers.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tare::cli {

static bool writeAll(int descriptor, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return errno == EPIPE; // the reader went away: nobody is left to tell
    text = text.drop_front(static_cast<size_t>(written));
  }
  return true;
}

void Console::out(llvm::StringRef text) {
  if (writeAll(STDOUT_FILENO, text)) return;
  if (!outputFailed) writeAll(STDERR_FILENO, std::string("tare: error: cannot write to stdout: ") + std::strerror(errno) + "\n");
  outputFailed = true;
}

void Console::note(llvm::StringRef line) {
  if (!quiet) writeAll(STDERR_FILENO, ("tare: " + line + "\n").str());
}

int Console::report(const Failure &failure) {
  writeAll(STDERR_FILENO, renderFailure(failure));
  if (json) out(renderFailureJson(failure));
  return static_cast<int>(failure.code);
}

Failure failureOf(llvm::Error error) {
  Failure result(ExitCode::Internal, "");
  bool first = true;
  llvm::handleAllErrors(
      std::move(error),
      [&](const Failure &f) {
        if (first) result = f;
        else result.message += "\n  " + f.message;
        first = false;
      },
      [&](const llvm::ErrorInfoBase &info) {
        bool io = info.convertToErrorCode().category() == std::generic_category();
        if (first) result = Failure(io ? ExitCode::Io : ExitCode::Internal, info.message());
        else result.message += "\n  " + info.message();
        first = false;
      });
  return result;
}

static const char *kindOf(ExitCode code) {
  switch (code) {
  case ExitCode::Ok: return "ok";
  case ExitCode::Internal: return "internal";
  case ExitCode::Usage: return "usage";
  case ExitCode::Refused: return "refused";
  case ExitCode::Gate: return "gate";
  case ExitCode::Environment: return "environment";
  case ExitCode::Io: return "io";
  case ExitCode::Limit: return "limit";
  }
  return "internal";
}

std::string renderFailure(const Failure &f) {
  auto lines = [](const std::string &message) {
    // Our own line breaks stay; everything else that controls a terminal is made visible.
    std::string result;
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(message).rtrim().split(parts, '\n');
    for (auto part : parts) result += (result.empty() ? "" : "\n") + report::escapeTerminal(part);
    return result;
  };
  std::string text = "tare: error: " + std::string(f.code == ExitCode::Internal ? "internal error: " : "") + lines(f.message) + "\n";
  auto place = [&](const char *what, const std::string &value) {
    if (!value.empty()) text += std::string("  ") + what + ": " + report::escapeTerminal(value) + "\n";
  };
  place("file", f.file), place("node", f.node), place("tensor", f.tensor);
  if (!f.hint.empty()) text += "  hint: " + lines(f.hint) + "\n";
  if (f.code == ExitCode::Internal) text += "  this is a bug of tare: please report it with the command and, if you can, the model\n";
  return text;
}

std::string renderFailureJson(const Failure &f) {
  auto text = [](const std::string &value) { return value.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value); };
  nlohmann::ordered_json error = {{"code", static_cast<int>(f.code)}, {"kind", kindOf(f.code)}, {"message", f.message}, {"file", text(f.file)},
                                  {"node", text(f.node)}, {"tensor", text(f.tensor)}, {"hint", text(f.hint)}};
  return nlohmann::ordered_json{{"error", error}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void guardStandardStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN); // a file size limit becomes EFBIG, which is an I/O failure like any other
  for (int descriptor = 0; descriptor < 3; descriptor++)
    if (::fcntl(descriptor, F_GETFD) < 0) (void)!::open("/dev/null", descriptor == 0 ? O_RDONLY : O_WRONLY);
}

} // namespace tare::cli
