// Numbers and lists from the command line. In: the text after a flag. Out: checked values, or exit 2 that says which flag, what it holds, what it takes.
// Holds: the same in every locale (std::from_chars), whole text or nothing, no NaN, no overflow.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tare::cli {

/// A finite number above 0.
llvm::Expected<double> parsePositive(llvm::StringRef flag, llvm::StringRef text);
/// A percentage from 0 to 100, zero included.
llvm::Expected<double> parsePercent(llvm::StringRef flag, llvm::StringRef text);
/// An unsigned decimal number in [low, high].
llvm::Expected<uint64_t> parseCount(llvm::StringRef flag, llvm::StringRef text, uint64_t low, uint64_t high);
/// A number of bytes: decimal digits, optionally with K, M or G (powers of 1024).
llvm::Expected<uint64_t> parseBytes(llvm::StringRef flag, llvm::StringRef text);
/// Comma-separated words, each one of `known`.
llvm::Expected<std::vector<std::string>> parseWords(llvm::StringRef flag, llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> known);
/// One of `known`.
llvm::Error checkWord(llvm::StringRef flag, llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> known);
/// The nearest of `known` when it is near enough to be meant.
std::optional<std::string> nearest(llvm::StringRef text, llvm::ArrayRef<std::string> known);

/// A named shape: `input_ids=1x128`.
struct NamedShape {
  std::string name;
  std::vector<int64_t> dims;
};
/// `name=1x128[,name=AxB...]`, sizes in decimal, each name once; `flags` are the values of all repetitions of --shape.
llvm::Expected<std::vector<NamedShape>> parseShapes(llvm::ArrayRef<std::string> flags);

/// All `--target`s as CompileOptions::levels has them: `cpu`, with the levels that follow (none: all); `cuda:` with GPU architectures ("sm_90"), ascending; `cuda-emu`
/// last. Without any: all CPU levels.
llvm::Expected<std::vector<std::string>> parseTargets(llvm::ArrayRef<std::string> flags);

/// Physical cores that this process may run on; at least 1.
unsigned physicalCores();

} // namespace tare::cli
