// Blocks from mmap (1 MiB and more, with huge pages where the kernel gives them) or from the C library.
#include "runtime/Memory.h"
#include <cstdlib>
#include <sys/mman.h>

namespace tare {
namespace {
constexpr size_t kLarge = size_t(1) << 20, kHuge = size_t(2) << 20;
}

Block &Block::operator=(Block &&other) noexcept {
  if (this != &other) {
    release();
    address = std::exchange(other.address, nullptr);
    size = std::exchange(other.size, 0);
  }
  return *this;
}

void Block::release() {
  if (size >= kLarge)
    munmap(address, size);
  else
    free(address);
  address = nullptr, size = 0;
}

Result<void> Block::reserve(size_t bytes, const char *what) {
  if (bytes <= size && address) return {};
  if (bytes > SIZE_MAX / 2) return Error::format(Status::Limit, "out of memory", "%zu bytes for %s", bytes, what);
  size_t unit = bytes >= kHuge ? kHuge : bytes >= kLarge ? 4096 : 64;
  size_t rounded = (bytes + unit - 1) / unit * unit;
  if (rounded == 0) rounded = 64;
  void *fresh;
  if (rounded >= kLarge) {
    fresh = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) fresh = nullptr;
    if (fresh && rounded >= kHuge) madvise(fresh, rounded, MADV_HUGEPAGE);
  } else {
    fresh = aligned_alloc(64, rounded);
  }
  if (!fresh) return Error::format(Status::Limit, "out of memory", "%zu bytes for %s", bytes, what);
  release();
  address = fresh, size = rounded;
  return {};
}

} // namespace tare
