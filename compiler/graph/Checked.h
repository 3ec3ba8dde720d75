// Checked arithmetic for numbers that come out of a file: every product and sum of sizes goes through here (house rule 8).
#pragma once
#include <cstdint>
#include <optional>

namespace tare {
inline std::optional<uint64_t> checkedMul(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional<uint64_t>(r);
}
inline std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional<uint64_t>(r);
}
/// Product of non-negative dims; nothing on overflow or a negative entry.
template <typename Range> std::optional<uint64_t> checkedProduct(const Range &dims) {
  uint64_t product = 1;
  for (auto d : dims) {
    if (static_cast<int64_t>(d) < 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(d), &product)) return std::nullopt;
  }
  return product;
}
} // namespace tare
