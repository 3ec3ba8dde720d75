// The forms of a report. In: a Report. Out: one string each, deterministic. Everything that comes from the model (names may hold any UTF-8, control
// characters, markup) is escaped for its form. fromJson reads what toJson wrote and refuses anything else with a Failure.
#pragma once
#include "compiler/report/Report.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tare::report {

enum class Format { Text, Json, Html, JUnit, Sarif };
/// "text", "json", "html", "junit", "sarif".
std::optional<Format> formatOf(llvm::StringRef name);
/// By the ending of a file name: .txt .json .html .xml .sarif.
std::optional<Format> formatOfFile(llvm::StringRef path);

std::string write(const Report &report, Format format);
std::string toText(const Report &report);
/// The CUDA part of it: images, and a table of what each kernel takes.
std::string cudaText(const Cuda &cuda);
std::string toJson(const Report &report);
std::string toHtml(const Report &report);
std::string toJUnit(const Report &report);
std::string toSarif(const Report &report);

/// `file` only names the source in errors (exit 3).
llvm::Expected<Report> fromJson(llvm::StringRef text, llvm::StringRef file);

/// The engine's configuration (cli.md): pruned_layers, rejected_layers, frozen_layers, policy, target, precision as YAML.
std::string toConfiguration(const Report &report);

/// Printable on a terminal: control characters as \xNN, everything else as it is.
std::string escapeTerminal(llvm::StringRef text);
/// For text and attribute values of HTML and XML; control characters that XML cannot hold become their visible \xNN form.
std::string escapeMarkup(llvm::StringRef text);
/// A YAML flow scalar: plain where that is safe, else double-quoted with escapes.
std::string yamlScalar(llvm::StringRef text);

/// One difference between two reports; `kind` is newly-rejected, newly-pruned, appeared, disappeared, larger, smaller, slower, faster,
/// newly-dense, lower-fidelity or changed.
struct Difference {
  std::string kind, subject, text;
};
std::vector<Difference> compare(const Report &before, const Report &after);

} // namespace tare::report
