// Memory that the runtime owns: one block, aligned to 64 bytes, from mmap when large. In: sizes that were computed with checks. Out: a block or
// Error Limit that says how much was asked for what. Growing keeps no contents.
#pragma once
#include "runtime/result.h"
#include <cstddef>

namespace tare {

class Block {
public:
  Block() = default;
  Block(Block &&other) noexcept : address(other.address), size(other.size) { other.address = nullptr, other.size = 0; }
  Block &operator=(Block &&other) noexcept;
  ~Block() { release(); }
  void *data() const { return address; }
  size_t capacity() const { return size; }
  /// Makes the capacity at least `bytes`; does nothing when it already is. `what` (static) is named in the error.
  Result<void> reserve(size_t bytes, const char *what);
  void release();

private:
  void *address = nullptr;
  size_t size = 0;
};

} // namespace tare
