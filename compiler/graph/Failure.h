// What every library of the compiler returns when an input is refused: what, where, why, what to do (spec 12), with the exit code.
// Passes use emitError(location) instead; tools turn both into the same message and the same JSON.
#pragma once
#include "llvm/Support/Error.h"
#include <string>

namespace tare {

/// Exit codes of every tool (cli.md, spec 12).
enum class ExitCode { Ok = 0, Internal = 1, Usage = 2, Refused = 3, Gate = 4, Environment = 5, Io = 6, Limit = 7 };

class Failure : public llvm::ErrorInfo<Failure> {
public:
  static char ID;
  ExitCode code = ExitCode::Refused;
  std::string message;                ///< what and why, one line
  std::string file, node, tensor;     ///< where; empty when it does not apply
  std::string hint;                   ///< what to do; may be empty

  Failure(ExitCode code, std::string message) : code(code), message(std::move(message)) {}
  Failure &inFile(std::string f) { file = std::move(f); return *this; }
  Failure &atNode(std::string n) { node = std::move(n); return *this; }
  Failure &ofTensor(std::string t) { tensor = std::move(t); return *this; }
  Failure &withHint(std::string h) { hint = std::move(h); return *this; }
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

/// `return refuse("...").inFile(path).atNode(name);` inside a function that returns llvm::Error or llvm::Expected.
struct FailureBuilder : Failure {
  using Failure::Failure;
  FailureBuilder &inFile(std::string f) { Failure::inFile(std::move(f)); return *this; }
  FailureBuilder &atNode(std::string n) { Failure::atNode(std::move(n)); return *this; }
  FailureBuilder &ofTensor(std::string t) { Failure::ofTensor(std::move(t)); return *this; }
  FailureBuilder &withHint(std::string h) { Failure::withHint(std::move(h)); return *this; }
  operator llvm::Error() const { return llvm::make_error<Failure>(static_cast<const Failure &>(*this)); }
  template <typename T> operator llvm::Expected<T>() const { return llvm::Error(*this); }
};
inline FailureBuilder refuse(std::string message) { return FailureBuilder(ExitCode::Refused, std::move(message)); }
inline FailureBuilder fail(ExitCode code, std::string message) { return FailureBuilder(code, std::move(message)); }

} // namespace tare
