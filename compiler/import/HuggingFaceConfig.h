// config.json of a Hugging Face folder, read and checked. In: a folder. Out: the numbers that a family's builder needs, or a refusal that names the
// field and its value (bad-inputs B46). Holds: every size is positive and below 2^31, heads divide what they must divide.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>

namespace tare::huggingface {

enum class Family { Bert, DistilBert, Llama };

/// How rotary frequencies are made from theta: unchanged, divided by a factor, or Llama 3's smooth blend of both.
struct Rope {
  enum class Kind { Default, Linear, Llama3 } kind = Kind::Default;
  double theta = 10000, factor = 1, lowFreqFactor = 1, highFreqFactor = 4, originalPositions = 8192;
};

struct Config {
  Family family = Family::Bert;
  std::string file, modelType;
  int64_t hidden = 0, layers = 0, heads = 0, kvHeads = 0, headDim = 0, intermediate = 0, vocabulary = 0, positions = 0, typeVocabulary = 0;
  double epsilon = 1e-12;
  std::string activation; ///< one of gelu, gelu_tanh, relu, silu
  bool qkvBias = false, outputBias = false, mlpBias = false, queryKeyNorm = false, tiedHead = false;
  Rope rope;
};

llvm::Expected<Config> readConfig(llvm::StringRef folder);

} // namespace tare::huggingface
