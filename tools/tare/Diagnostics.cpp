// The diagnostic handler of the driver (Diagnostics.h). In: mlir::Diagnostic. Out: Failure with message, node, hint (the notes), exit code.
// An error that a verifier or a phase contract raised is a bug of ours (exit 1); every other one refuses the input (exit 3).
#include "tools/tare/Diagnostics.h"
#include "compiler/graph/Graph.h"
#include "tools/tare/Console.h"

namespace tare::cli {

/// Verifier messages start with the op's quoted name; contracts and proofs say "internal error" themselves.
static bool isInternal(llvm::StringRef message) {
  return message.contains("internal error") || (message.starts_with("'") && message.contains("' op "));
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext &context, Console &console, std::string file)
    : context(context), console(console), file(std::move(file)) {
  context.printOpOnDiagnostic(false); // a note with the whole op is no hint for a user
  handler = context.getDiagEngine().registerHandler([this](mlir::Diagnostic &d) {
    std::lock_guard lock(mutex);
    std::string node = graph::nodeName(d.getLocation()), notes;
    for (auto &note : d.getNotes()) notes += (notes.empty() ? "" : "; ") + note.str();
    if (d.getSeverity() == mlir::DiagnosticSeverity::Error) {
      Failure f(isInternal(d.str()) ? ExitCode::Internal : ExitCode::Refused, d.str());
      llvm::StringRef text(f.message);
      if (text.consume_front("internal error: ")) f.message = text.str();
      errors.push_back(f.inFile(this->file).atNode(node).withHint(notes));
    } else if (d.getSeverity() == mlir::DiagnosticSeverity::Warning) {
      this->console.warn((node.empty() ? "" : node + ": ") + d.str() + (notes.empty() ? "" : " (" + notes + ")"));
    }
    return mlir::success();
  });
}

DiagnosticCollector::~DiagnosticCollector() { context.getDiagEngine().eraseHandler(handler); }

Failure DiagnosticCollector::takeFailure(llvm::StringRef step) {
  std::lock_guard lock(mutex);
  if (errors.empty()) return Failure(ExitCode::Internal, (step + " failed without a message").str()).inFile(file);
  Failure result = errors.front();
  for (size_t i = 1; i < errors.size(); i++) result.message += "\n  " + (errors[i].node.empty() ? "" : errors[i].node + ": ") + errors[i].message;
  errors.clear();
  return result;
}

} // namespace tare::cli
