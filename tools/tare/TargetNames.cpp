// Names of targets by likeness (TargetNames.h).
#include "tools/tare/TargetNames.h"
#include "compiler/codegen/cuda/Toolkit.h"
#include "tools/tare/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>
#include <optional>

namespace tare::cli {
namespace {

/// A GPU's number and what follows it: "sm_90a", "SM-90", "compute_90", "9.0", "90".
struct WrittenNumber {
  int number = 0;
  bool isPtx = false, hasSuffix = false;
};
std::optional<WrittenNumber> numberIn(llvm::StringRef word) {
  std::string lower = word.lower();
  llvm::StringRef rest = lower;
  WrittenNumber w;
  if (!rest.consume_front("sm")) w.isPtx = rest.consume_front("compute");
  rest = rest.ltrim("_- ");
  w.hasSuffix = rest.consume_back("a") || rest.consume_back("f");
  std::string digits;
  for (char c : rest) {
    if (c == '.') continue;
    if (!llvm::isDigit(c)) break; // "9O" is "9"
    digits += c;
  }
  if (llvm::StringRef(digits).getAsInteger(10, w.number)) return std::nullopt;
  return w;
}

bool isKnown(int number) {
  return llvm::any_of(cuda::knownArchitectures(), [&](auto &a) { return cuda::architectureNumber(a.name) == number; });
}
std::string nameOf(int number) { return fmt::format("sm_{}", number); }

/// The newest known GPU before this one, of the same major number when there is one: its code runs here.
int nearestBefore(int number) {
  int best = 0;
  for (auto &a : cuda::knownArchitectures())
    if (int n = cuda::architectureNumber(a.name); n < number) best = n;
  return best;
}
} // namespace

std::string architectureHint(llvm::StringRef word) {
  auto written = numberIn(word);
  if (!written) return "";
  int n = written->number;
  if (!isKnown(n) && isKnown(10 * n)) n *= 10;
  if (isKnown(n)) {
    std::string why = written->hasSuffix ? fmt::format(" (the kernels use nothing that only {} has)", word.str()) : written->isPtx ? " (every engine has PTX of its lowest architecture, too)" : "";
    return fmt::format("did you mean {}?{}", nameOf(n), why);
  }
  int oldest = cuda::architectureNumber(cuda::knownArchitectures().front().name);
  if (n < oldest) return n < 20 ? "" : fmt::format("GPUs before {} are not supported; a CPU target runs without one", nameOf(oldest));
  int before = nearestBefore(n);
  return fmt::format("take {}: its {} on sm_{}", nameOf(before), before / 10 == n / 10 ? "code runs" : "PTX runs", n);
}

std::string meantTarget(llvm::StringRef word) {
  static const std::string targets[] = {"cpu", "cuda-emu"};
  std::string lower = word.lower();
  llvm::StringRef text = lower;
  if (text.contains("emu")) return "cuda-emu";
  for (llvm::StringRef level : {"x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"})
    if (text.contains(level)) return ("cpu:" + level).str();
  bool isGpu = llvm::any_of(llvm::ArrayRef<llvm::StringRef>{"cuda", "sm", "compute", "gpu", "nvidia"}, [&](auto name) { return text.starts_with(name); });
  if (!isGpu && !llvm::all_of(text, llvm::isDigit)) return nearest(text, targets).value_or("");
  auto written = numberIn(text.starts_with("cuda") ? text.drop_front(4).ltrim(":=-_ ") : text);
  int n = written ? written->number : 0;
  if (!isKnown(n)) n = isKnown(10 * n) ? 10 * n : 90;
  return "cuda:" + nameOf(n);
}

} // namespace tare::cli
