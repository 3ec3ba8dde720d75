// Weight checksums, on up to four threads. When a thread cannot be started the calling thread does its part.
#include "runtime/Checksum.h"
#include "runtime/format.h"
#include <atomic>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tare {
namespace {
struct Work {
  const uint8_t *data, *expected;
  uint64_t bytes;
  std::atomic<uint64_t> next{0}, wrong{UINT64_MAX};
};

void *checkChunks(void *argument) {
  auto &work = *static_cast<Work *>(argument);
  constexpr uint64_t batch = 4;
  uint64_t chunks = (work.bytes + format::kChunk - 1) / format::kChunk;
  for (uint64_t from; (from = work.next.fetch_add(batch)) < chunks;)
    for (uint64_t i = from; i < chunks && i < from + batch; ++i) {
      uint64_t start = i * format::kChunk, expected;
      memcpy(&expected, work.expected + 8 * i, 8);
      if (chunkChecksum(work.data + start, work.bytes - start < format::kChunk ? work.bytes - start : format::kChunk) == expected) continue;
      uint64_t before = work.wrong.load();
      while (i < before && !work.wrong.compare_exchange_weak(before, i)) {}
    }
  return nullptr;
}
} // namespace

uint64_t chunkChecksum(const void *data, size_t bytes) { return XXH3_64bits(data, bytes); }

int64_t firstWrongChunk(const uint8_t *data, uint64_t bytes, const uint8_t *expected) {
  Work work{data, expected, bytes};
  cpu_set_t allowed;
  int cpus = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  int helpers = bytes < (uint64_t(16) << 20) ? 0 : (cpus < 4 ? cpus : 4) - 1;
  pthread_t threads[3];
  int started = 0;
  while (started < helpers && pthread_create(&threads[started], nullptr, checkChunks, &work) == 0) ++started;
  checkChunks(&work);
  for (int i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
  return work.wrong.load() == UINT64_MAX ? -1 : static_cast<int64_t>(work.wrong.load());
}

} // namespace tare
