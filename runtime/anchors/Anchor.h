// One anchor as the scanner reports it. In: nothing. Out: type, normalised value, half-open byte and code-point ranges into the original text.
#pragma once
#include <cstdint>
#include <string>

namespace tare::anchors {

/// Numbers equal tare_anchor_type.
enum class Type : uint8_t { Heading, Clause, Table, CrossReference, Annex, Outline };

struct Anchor {
  Type type;
  std::string value;
  uint64_t byteBegin, byteEnd, charBegin, charEnd;
};

} // namespace tare::anchors
