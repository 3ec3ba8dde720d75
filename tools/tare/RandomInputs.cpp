// Makes inputs for an engine (RandomInputs.h). In: tensor infos with dims as formulas, the report's bounds of ids. Out: arrays.
#include "tools/tare/RandomInputs.h"
#include "compiler/graph/Dim.h"
#include "tools/tare/Console.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <random>

namespace tare::cli {

using Symbols = std::map<std::string, int64_t>;

static std::string dimsText(const tare_tensor_info &info) {
  std::string text;
  for (int i = 0; i < info.rank; i++) text += (i ? " x " : "") + std::string(info.dims[i]);
  return text.empty() ? "a scalar" : text;
}

static std::optional<int64_t> evaluate(const char *text, const Symbols &symbols, bool defaults = false) {
  auto dim = Dim::parse(text);
  if (!dim) return std::nullopt;
  return dim->evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto found = symbols.find(name.str());
    if (found != symbols.end()) return found->second;
    if (name.contains_insensitive("past")) return defaults ? 16 : 0;
    return defaults ? std::optional<int64_t>(name.contains_insensitive("batch") ? 1 : 64) : std::nullopt;
  });
}

static llvm::Error bindShape(const tare_tensor_info &info, const NamedShape &shape, Symbols &symbols) {
  auto misfit = [&](const std::string &why) -> llvm::Error {
    return usage(fmt::format("--shape {}={}: {}", shape.name, fmt::join(shape.dims, "x"), why)).withHint(fmt::format("the engine's {} is {}", info.name, dimsText(info)));
  };
  if (static_cast<size_t>(info.rank) != shape.dims.size()) return misfit(fmt::format("{} dimensions, the engine has {}", shape.dims.size(), info.rank));
  for (int i = 0; i < info.rank; i++) {
    auto dim = Dim::parse(info.dims[i]);
    auto names = dim ? dim->symbols() : std::vector<std::string>();
    if (names.size() == 1 && names.front() == info.dims[i]) {
      auto [known, fresh] = symbols.insert({names.front(), shape.dims[i]});
      if (!fresh && known->second != shape.dims[i]) return misfit(fmt::format("{} is {} here and {} elsewhere", names.front(), shape.dims[i], known->second));
    } else if (auto value = evaluate(info.dims[i], symbols); value && *value != shape.dims[i]) {
      return misfit(fmt::format("dimension {} must be {}", i, *value));
    }
  }
  return llvm::Error::success();
}

/// Values by the input's kind, seen from its name and dtype as calibration does (spec 3).
static Array fill(const tare_tensor_info &info, const std::vector<int64_t> &shape, int64_t below, std::mt19937_64 &random) {
  Array array{static_cast<uint8_t>(info.dtype), shape, {}};
  size_t count = 1, size = dtypeSize(array.dtype);
  for (int64_t d : shape) count *= static_cast<size_t>(d);
  array.bytes.assign(count * size, '\0');
  llvm::StringRef name(info.name);
  bool mask = name.contains_insensitive("mask"), types = name.contains_insensitive("token_type") || name.contains_insensitive("segment"), positions = name.contains_insensitive("position");
  size_t row = shape.empty() ? 1 : static_cast<size_t>(std::max<int64_t>(shape.back(), 1));
  for (size_t i = 0; i < count; i++) {
    char *at = array.bytes.data() + i * size;
    if (info.dtype == TARE_F32 || info.dtype == TARE_F64) {
      // Box-Muller on the generator's raw bits: std::normal_distribution differs between libraries.
      double u = static_cast<double>((random() >> 11) + 1) * 0x1p-53, v = static_cast<double>(random() >> 11) * 0x1p-53;
      double value = mask ? 1 : std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
      float narrow = static_cast<float>(value);
      std::memcpy(at, info.dtype == TARE_F32 ? static_cast<const void *>(&narrow) : &value, size);
    } else if (info.dtype == TARE_F16 || info.dtype == TARE_BF16) {
      // Small numbers of both signs: a random mantissa under the exponent of one half.
      uint16_t bits = static_cast<uint16_t>(info.dtype == TARE_F16 ? 0x3800 | (random() & 0x83ff) : 0x3f00 | (random() & 0x807f));
      std::memcpy(at, &bits, size);
    } else {
      int64_t value = info.dtype == TARE_BOOL || mask ? 1 : types ? 0 : positions ? static_cast<int64_t>(i % row) : static_cast<int64_t>(random() % static_cast<uint64_t>(below));
      std::memcpy(at, &value, size); // little-endian: the low bytes
    }
  }
  return array;
}

llvm::Expected<ArrayMap> randomInputs(const EngineHandle &engine, const std::vector<NamedShape> &shapes, uint64_t seed, bool defaults) {
  auto inputs = engine.inputs();
  auto report = engine.report();
  if (!report) return report.takeError();
  Symbols symbols;
  std::string known;
  for (auto &input : inputs) known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", input.name, dimsText(input));
  for (auto &shape : shapes) {
    auto found = llvm::find_if(inputs, [&](auto &i) { return shape.name == i.name; });
    if (found == inputs.end()) return usage(fmt::format("--shape names '{}', which is no input", shape.name)).withHint("the engine's inputs are: " + known);
    if (auto error = bindShape(*found, shape, symbols)) return error;
  }
  ArrayMap arrays;
  std::mt19937_64 random(seed);
  for (auto &input : inputs) {
    auto named = llvm::find_if(shapes, [&](auto &s) { return s.name == input.name; });
    if (named == shapes.end() && input.optional) continue;
    std::vector<int64_t> shape;
    if (named != shapes.end()) shape = named->dims;
    else
      for (int i = 0; i < input.rank; i++) {
        auto size = evaluate(input.dims[i], symbols, defaults);
        if (!size) return usage(fmt::format("the shape of input {} is not decided: it is {}", input.name, dimsText(input))).withHint(fmt::format("add --shape {}=...", input.name));
        shape.push_back(*size);
      }
    auto bound = report->idsBelow.find(input.name);
    arrays[input.name] = fill(input, shape, bound == report->idsBelow.end() ? 2 : std::max<int64_t>(bound->second, 1), random);
  }
  return arrays;
}

} // namespace tare::cli
