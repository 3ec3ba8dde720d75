// What a command prints and where. In: text and failures. Out: stdout holds the asked output only, stderr everything else; errors as one message or, with
// --json, as one object on stdout. Holds: a closed or broken stdout never kills a command nor changes its exit code; a full disk is exit 6.
#pragma once
#include "compiler/graph/Failure.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tare::cli {

struct Console {
  bool json = false, quiet = false;
  bool outputFailed = false; ///< stdout refused bytes for a reason other than a closed pipe

  /// The asked output.
  void out(llvm::StringRef text);
  /// One line for a person on stderr; nothing with --quiet.
  void note(llvm::StringRef line);
  /// A warning: also with --quiet nothing, it never changes an exit code.
  void warn(llvm::StringRef line) { note(("warning: " + line).str()); }
  /// Prints the failure in the form that was asked for and returns its exit code.
  int report(const Failure &failure);
};

/// All failures inside an error as one: the first one leads, further messages follow in its text. Errors of LLVM become internal or I/O failures.
Failure failureOf(llvm::Error error);
/// A failure about the command line, exit 2.
inline FailureBuilder usage(std::string message) { return FailureBuilder(ExitCode::Usage, std::move(message)); }
/// "tare: error: ..." with where and what to do, ready for stderr.
std::string renderFailure(const Failure &failure);
/// {"error": {code, kind, message, file, node, tensor, hint}} and a newline; absent places are null.
std::string renderFailureJson(const Failure &failure);

/// Opens /dev/null on closed standard descriptors (else the next file opened would be "stdout") and ignores SIGPIPE.
void guardStandardStreams();

} // namespace tare::cli
