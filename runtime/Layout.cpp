// First fit over lifetimes: buffers in order of falling size, each at the lowest offset that is free during its whole life.
#include "runtime/Layout.h"
#include <algorithm>

namespace tare {

Result<uint64_t> Layout::place() {
  order.clear(), placed.clear(); // `placed` is kept sorted by offset
  for (uint32_t i = 0; i < items.size(); ++i) {
    uint64_t &bytes = items[i].bytes;
    if (bytes > UINT64_MAX / 4) return Error::format(Status::Limit, "buffer is too large", "%llu bytes", static_cast<unsigned long long>(bytes));
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return items[a].bytes != items[b].bytes ? items[a].bytes > items[b].bytes : a < b;
  });
  uint64_t total = 0;
  for (uint32_t i : order) {
    Item &item = items[i];
    uint64_t offset = 0;
    for (uint32_t other : placed) {
      const Item &there = items[other];
      if (there.last < item.first || item.last < there.first) continue;
      if (there.offset >= offset && there.offset - offset >= item.bytes) break; // the gap before it is large enough
      offset = std::max(offset, there.offset + there.bytes);
    }
    item.offset = offset;
    uint64_t end;
    if (__builtin_add_overflow(offset, item.bytes, &end) || end > UINT64_MAX / 4) return Error(Status::Limit, "arena is too large");
    total = std::max(total, end);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, [this](uint32_t a, uint32_t b) { return items[a].offset < items[b].offset; }), i);
  }
  return total;
}

} // namespace tare
