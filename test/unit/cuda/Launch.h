// Runs a kernel on the emulator from a test. In: geometry, a callable that is the kernel. Out: the report, and the table of memory instructions on request.
// Blocks run on two host threads. TARE_SEED changes the order of warps; every failure prints the seed.
#pragma once
#include "kernels/cuda/emu/launch.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tare::test {

inline uint64_t seed() {
  const char *text = getenv("TARE_SEED");
  return text ? strtoull(text, nullptr, 10) : 20260401;
}

/// Device memory with exact bounds, aligned as cudaMalloc does, and a shadow.
template <class T> struct Buffer {
  explicit Buffer(size_t count, const char *name = "buffer") : name(name), count(count), bytes(count * sizeof(T) + 512), cells(count) {
    data = reinterpret_cast<T *>((reinterpret_cast<uint64_t>(bytes.data()) + 255) / 256 * 256);
  }
  Buffer(const std::vector<T> &values, const char *name = "buffer") : Buffer(values.size(), name) { std::copy(values.begin(), values.end(), data); }
  T &operator[](size_t i) { return data[i]; }
  operator global<T>() { return {data, static_cast<i64>(count), name, cells.data()}; }
  operator global<const T>() { return {data, static_cast<i64>(count), name, cells.data()}; }
  void forget() { std::fill(cells.begin(), cells.end(), emu::Cell{}); } // before the next launch
  const char *name;
  size_t count;
  std::vector<unsigned char> bytes;
  std::vector<emu::Cell> cells;
  T *data;
};

struct Outcome {
  emu::Report report;
  std::unique_ptr<emu::Stats> stats;
  emu::Fault fault() const { return report.kind(); }
  std::string text() const { return report.text; }
  const emu::Line *line(emu::Access access, unsigned width) const {
    for (unsigned i = 0; i < stats->lineCount; ++i)
      if (stats->lines[i].access == access && stats->lines[i].width == width) return &stats->lines[i];
    return nullptr;
  }
};

template <class Kernel> Outcome run(const char *name, emu::Geometry g, Kernel kernel, bool counted = false, uint64_t withSeed = seed()) {
  constexpr unsigned parts = 2;
  Outcome outcome;
  std::unique_ptr<emu::Stats> stats[parts];
  auto body = [&](unsigned part) {
    auto memory = std::make_unique_for_overwrite<unsigned char[]>(emu::machineBytes(std::min(g.block.x * g.block.y * g.block.z, emu::kMaxThreads), g.sharedBytes));
    if (counted) stats[part] = std::make_unique<emu::Stats>();
    emu::launch(memory.get(), g, name, withSeed, outcome.report, part, parts, kernel, stats[part].get());
  };
  std::thread second(body, 1);
  body(0);
  second.join();
  if (counted) {
    emu::mergeStats(*stats[0], *stats[1]);
    outcome.stats = std::move(stats[0]);
  }
  return outcome;
}

/// One line per memory instruction: what conflicts and bad coalescing cost.
inline void print(const char *name, const Outcome &outcome) {
  printf("%s\n", name);
  for (unsigned i = 0; i < outcome.stats->lineCount; ++i) {
    char text[400];
    emu::Text t(text, sizeof text);
    emu::describe(t, outcome.stats->lines[i]);
    puts(text);
  }
  if (outcome.stats->lost) printf("  (%u accesses more than the table holds are not counted)\n", outcome.stats->lost);
}

} // namespace tare::test
