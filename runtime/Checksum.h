// XXH3-64 of each 1 MiB chunk of the weights. In: bytes and the expected list. Out: the first chunk that differs. Large weights are split over a
// few short-lived threads, so that loading runs at the speed of memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tare {

/// XXH3-64 of one chunk.
uint64_t chunkChecksum(const void *data, size_t bytes);
/// Index of the first chunk whose checksum differs from `expected` (little-endian words, any alignment); -1 when all agree.
int64_t firstWrongChunk(const uint8_t *data, uint64_t bytes, const uint8_t *expected);

} // namespace tare
