// Parsing of values from the command line (Numbers.h). In: text. Out: values or usage failures. No exceptions, no locale.
#include "tools/tare/Numbers.h"
#include "compiler/codegen/cuda/Toolkit.h"
#include "compiler/graph/Checked.h"
#include "tools/tare/Console.h"
#include "tools/tare/TargetNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <sched.h>
#include <set>

namespace tare::cli {

static std::string list(llvm::ArrayRef<llvm::StringRef> words) { return llvm::join(words, ", "); }

llvm::Expected<double> parsePositive(llvm::StringRef flag, llvm::StringRef text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error == std::errc::result_out_of_range) return usage(fmt::format("{} {}: out of the range of a double", flag.str(), text.str())).withHint("give a number like 1e-6");
  if (error != std::errc() || end != text.end() || !std::isfinite(value) || value <= 0)
    return usage(fmt::format("{} '{}' is no finite number above 0", flag.str(), text.str())).withHint("give a number like 1e-6");
  return value;
}

llvm::Expected<double> parsePercent(llvm::StringRef flag, llvm::StringRef text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || !(value >= 0 && value <= 100))
    return usage(fmt::format("{} '{}' is no percentage from 0 to 100", flag.str(), text.str())).withHint("0.1 means 0.1%");
  return value;
}

llvm::Expected<uint64_t> parseCount(llvm::StringRef flag, llvm::StringRef text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || value < low || value > high)
    return usage(fmt::format("{} '{}' is no whole number from {} to {}", flag.str(), text.str(), low, high));
  return value;
}

llvm::Expected<uint64_t> parseBytes(llvm::StringRef flag, llvm::StringRef text) {
  llvm::StringRef digits = text.rtrim("KMG");
  uint64_t unit = digits.size() == text.size() ? 1 : text.back() == 'K' ? 1u << 10 : text.back() == 'M' ? 1u << 20 : 1u << 30;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  auto bytes = checkedMul(value, unit);
  if (text.size() > digits.size() + 1 || error != std::errc() || end != digits.end() || !bytes)
    return usage(fmt::format("{} '{}' is no number of bytes", flag.str(), text.str())).withHint("give digits, optionally with K, M or G: 1048576 or 1M");
  return *bytes;
}

std::optional<std::string> nearest(llvm::StringRef text, llvm::ArrayRef<std::string> known) {
  std::optional<std::string> best;
  unsigned bestDistance = std::max<unsigned>(2, static_cast<unsigned>(text.size()) / 3) + 1;
  for (auto &word : known) {
    unsigned distance = text.edit_distance(word, true, bestDistance);
    // A prefix of at least three letters beyond the dashes is meant, too.
    if (text.size() >= 5 && llvm::StringRef(word).starts_with(text)) distance = std::min(distance, 1u);
    if (distance < bestDistance) bestDistance = distance, best = word;
  }
  return best;
}

llvm::Error checkWord(llvm::StringRef flag, llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> known) {
  if (llvm::is_contained(known, text)) return llvm::Error::success();
  std::vector<std::string> words(known.begin(), known.end());
  auto meant = nearest(text, words);
  return usage(fmt::format("{} '{}' is not known; it takes {}", flag.str(), text.str(), list(known))).withHint(meant ? "did you mean " + *meant + "?" : "");
}

llvm::Expected<std::vector<std::string>> parseWords(llvm::StringRef flag, llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> known) {
  std::vector<std::string> words;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (auto part : parts) {
    if (auto error = checkWord(flag, part, known)) return error;
    words.push_back(part.str());
  }
  return words;
}

llvm::Expected<std::vector<NamedShape>> parseShapes(llvm::ArrayRef<std::string> flags) {
  std::vector<NamedShape> shapes;
  const char *hint = "write NAME=AxBxC, several with commas: input_ids=1x128,attention_mask=1x128";
  for (auto &flag : flags) {
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(flag).split(parts, ',');
    for (auto part : parts) {
      auto [name, sizes] = part.rsplit('=');
      if (!part.contains('=') || name.empty()) return usage(fmt::format("--shape '{}': '{}' has no NAME=", flag, part.str())).withHint(hint);
      NamedShape shape{name.str(), {}};
      llvm::SmallVector<llvm::StringRef> dims;
      sizes.split(dims, 'x');
      for (auto dim : dims) {
        uint64_t size = 0;
        auto [end, error] = std::from_chars(dim.begin(), dim.end(), size);
        if (dim.empty() || error != std::errc() || end != dim.end() || size > (uint64_t(1) << 40))
          return usage(fmt::format("--shape '{}': '{}' of {} is no size", flag, dim.str(), name.str())).withHint(hint);
        shape.dims.push_back(static_cast<int64_t>(size));
      }
      auto elements = checkedProduct(shape.dims);
      if (!elements || *elements > (uint64_t(1) << 40)) return usage(fmt::format("--shape '{}': {} has more than 2^40 elements", flag, name.str())).withHint("give sizes that fit into memory");
      if (shape.dims.size() > 8) return usage(fmt::format("--shape '{}': {} has more than 8 dimensions", flag, name.str())).withHint(hint);
      if (llvm::any_of(shapes, [&](auto &s) { return s.name == shape.name; })) return usage(fmt::format("--shape names {} twice", name.str())).withHint(hint);
      shapes.push_back(shape);
    }
  }
  return shapes;
}

/// A word that begins no target, or an architecture that is not known.
static llvm::Error badTarget(const std::string &flag, llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> levels, llvm::ArrayRef<llvm::StringRef> gpus) {
  std::string meant = meantTarget(word);
  return usage(fmt::format("--target '{}': '{}' is no target", flag, word.str()))
      .withHint((meant.empty() ? "" : "did you mean " + meant + "? ") + "targets: cpu[:" + list(levels) + "], cuda:" + list(gpus) + ", cuda-emu[:stats]");
}
static llvm::Error badArchitecture(const std::string &flag, llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> gpus) {
  return usage(fmt::format("--target {}: architecture '{}' is not known; it takes {}", flag, word.str(), list(gpus))).withHint(architectureHint(word));
}

llvm::Expected<std::vector<std::string>> parseTargets(llvm::ArrayRef<std::string> flags) {
  static const llvm::StringRef known[] = {"x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"};
  llvm::SmallVector<llvm::StringRef> gpus;
  for (auto &architecture : cuda::knownArchitectures()) gpus.push_back(architecture.name);
  std::set<llvm::StringRef> chosen;
  bool all = flags.empty();
  std::string emulator;
  for (auto &flag : flags) {
    llvm::ArrayRef<llvm::StringRef> words = known; // what may follow the target that was begun
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(flag).split(parts, ',');
    for (size_t i = 0; i < parts.size(); i++) {
      llvm::StringRef part = parts[i];
      bool starts = i == 0 || part == "cpu" || part.starts_with("cpu:") || part == "cuda" || part.starts_with("cuda:") || part.starts_with("cuda-emu");
      if (starts && part == "cpu") { all = true, words = known; continue; }
      if (starts && (part == "cuda-emu" || part == "cuda-emu:stats")) { emulator = part.str(), words = known; continue; }
      if (starts && part.consume_front("cpu:")) words = known;
      else if (starts && part.consume_front("cuda:")) words = gpus;
      else if (starts && part == "cuda") return usage(fmt::format("--target '{}': cuda needs an architecture", flag)).withHint("cuda:sm_90, or several: cuda:sm_80,sm_90; known are " + list(gpus));
      else if (starts) return badTarget(flag, part, known, gpus);
      if (words.data() != known && !llvm::is_contained(words, part)) return badArchitecture(flag, part, gpus);
      if (auto error = checkWord("--target " + flag + ": level", part, words)) return error;
      chosen.insert(part);
    }
  }
  std::vector<std::string> levels;
  for (auto level : known)
    if (all || chosen.count(level)) levels.push_back(level.str());
  for (auto gpu : gpus)
    if (chosen.count(gpu)) levels.push_back(gpu.str());
  if (!emulator.empty()) levels.push_back(emulator);
  return levels;
}

unsigned physicalCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &set)) continue;
    // Hyper-threads of one core list the same siblings.
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string siblings;
    if (!std::getline(file, siblings)) siblings = std::to_string(cpu);
    cores.insert(siblings);
  }
  return std::max<unsigned>(1, static_cast<unsigned>(cores.size()));
}

} // namespace tare::cli
