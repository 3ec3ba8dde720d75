// The network that proposes (docs/anchors.md, "The network"). In: matched characters around a place that could begin a designator. Out: whether one may stand
// there. Holds: integer arithmetic, so the answer is the same on every machine; the weights are data of tools/python/train_anchors.py, embedded at build time.
#pragma once
#include "runtime/anchors/Prepare.h"

namespace tare::anchors {

class Network {
public:
  static constexpr size_t kLeft = 12, kRight = 28, kSpan = kLeft + kRight, kClasses = 1024, kWidth = 16;
  static constexpr size_t kFirst = kSpan - 2, kPooled = kFirst / 2, kSecond = kPooled - 2;

  /// The class of a matched character: digits one, Chinese numerals one, other characters outside ASCII hashed.
  static uint16_t classOf(char32_t c);
  /// The logit of the window around `i`, in the weights' own scale; outside of [0, end) stands a line break.
  static int32_t logit(const Text &text, size_t i, size_t end);
  static bool proposes(const Text &text, size_t i, size_t end) { return logit(text, i, end) > threshold(); }

  static int32_t threshold();
  static uint32_t seed();
  /// SHA-256 of the scripts that made the weights: 32 bytes.
  static const uint8_t *scriptHash();
};

} // namespace tare::anchors
