// Fidelity checks as MLIR text for tests. In: weights as numbers. Out: constants and the op; every number exact.
#pragma once
#include "compiler/checks/CheckWeights.h"
#include "llvm/ADT/StringExtras.h"
#include <random>
#include <string>

namespace tare::checks {

inline std::string hex(const std::vector<float> &values) {
  return "dense<\"0x" + llvm::toHex(llvm::StringRef(reinterpret_cast<const char *>(values.data()), values.size() * 4)) + "\">";
}

/// `%name = graph.fidelity_check %h, ...` with the constants in front of it.
inline std::string checkText(const std::string &name, const std::string &h, const CheckWeights &w) {
  std::string k = std::to_string(w.heads), r = std::to_string(w.rank), d = std::to_string(w.width), f = std::to_string(w.columns), types;
  std::string text;
  auto constant = [&](const char *part, const std::vector<float> &values, const std::string &shape) {
    std::string type = "tensor<" + shape + "xf32>";
    text += "%" + name + part + " = graph.constant \"" + name + "." + part + "\" " + hex(values) + " : " + type + " -> " + type + "\n";
    types += ", " + type;
  };
  constant("W", w.w, k + "x" + r + "x" + d), constant("p", w.p, k + "x" + r), constant("tau", w.tau, k), constant("E", w.e, k + "x" + f);
  return text + "%" + name + " = graph.fidelity_check %" + h + ", %" + name + "W, %" + name + "p, %" + name + "tau, %" + name + "E {graph.check = \"" + name + "\"} : (TYPE" + types + ") -> TYPE\n";
}

/// 8 heads of rank 4; thresholds are set later. E adds a little to every column.
inline CheckWeights randomWeights(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  CheckWeights w{8, 4, 16, 16, {}, {}, std::vector<float>(8, 100.f), std::vector<float>(8 * 16, 0.1f)};
  for (int i = 0; i < 8 * 4 * 16; ++i) w.w.push_back(normal(random));
  for (int i = 0; i < 8 * 4; ++i) w.p.push_back(normal(random));
  return w;
}

} // namespace tare::checks
