// Places arena buffers. In: sizes and lifetimes. Out: offsets such that no two buffers that are alive in one step overlap, and the total. First fit,
// largest first; deterministic. After construction nothing is allocated.
#pragma once
#include "runtime/result.h"
#include <cstdint>
#include <vector>

namespace tare {

class Layout {
public:
  struct Item { uint64_t bytes = 0; uint32_t first = 0, last = 0; uint64_t offset = 0; };
  static constexpr uint64_t kAlignment = 64;

  explicit Layout(size_t count) : items(count) { order.reserve(count), placed.reserve(count); }
  std::vector<Item> items; ///< the caller fills all but `offset`
  /// Sets every offset; the result is the arena's size. Error Limit when sizes overflow.
  Result<uint64_t> place();

private:
  std::vector<uint32_t> order, placed;
};

} // namespace tare
