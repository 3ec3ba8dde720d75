// The hashed anchor vector for retrieval (docs/anchors.md, "Retrieval"). In: a text, e.g. a question or a passage. Out: 128 numbers whose Euclidean norm is
// the weight: 0.8 when the text names an anchor, 0.3 when only its words decide, 0 when it has none. Holds: depends on the text alone, on every machine.
#pragma once
#include <cstddef>

namespace tare::anchors {

inline constexpr size_t kVector = 128;
inline constexpr float kNamed = 0.8f, kUnnamed = 0.3f;

/// Fills `vector[kVector]` and returns the weight.
float anchorVector(const char *text, size_t size, float *vector);

} // namespace tare::anchors
