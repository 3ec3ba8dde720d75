// Runs a grid of blocks on the emulator. In: a kernel body, geometry, memory (machineBytes per host thread) and a seed. Out: a Report. Blocks are dealt out to
// host threads by number, and each block's order of warps comes from the seed and its number alone: results do not depend on the number of host threads.
#pragma once
#include "kernels/cuda/emu/warp.h"

namespace tare::emu {

struct Geometry {
  Dim3 grid, block;
  u32 sharedBytes = 0;
};

constexpr u64 alignUp(u64 v, u64 to) { return (v + to - 1) / to * to; }
/// Bytes that one host thread needs to run blocks of this geometry: stacks, shared memory, shadow.
constexpr u64 machineBytes(u32 threads, u32 sharedBytes) {
  return kStack /* alignment */ + threads * kStack + alignUp(sharedBytes, 64) + alignUp(sharedBytes, 64) / kGranule * sizeof(Cell) + sizeof(Machine) + 64;
}

/// Lays a machine out in `memory` (zeroed or not). Null, with the report filled, when the geometry is not one a GPU takes.
inline Machine *prepare(void *memory, const Geometry &g, const char *name, u64 seed, Report &report, Body body, void *environment) {
  u64 threads = static_cast<u64>(g.block.x) * g.block.y * g.block.z;
  u64 base = alignUp(reinterpret_cast<u64>(memory), kStack), shared = base + threads * kStack, shadow = shared + alignUp(g.sharedBytes, 64);
  u64 place = alignUp(shadow + alignUp(g.sharedBytes, 64) / kGranule * sizeof(Cell), 64);
  if (threads == 0 || threads > kMaxThreads || threads % kWarp || g.sharedBytes > 227 * 1024 || g.grid.y > 65535 || g.grid.z > 65535) {
    report.fault = static_cast<u32>(Fault::BadLaunch);
    Text(report.text, sizeof report.text) << name << ": no GPU takes " << threads << " threads per block, " << g.sharedBytes << " bytes of shared memory, grid " << g.grid;
    return nullptr;
  }
  Machine &m = *reinterpret_cast<Machine *>(place);
  __builtin_memset(reinterpret_cast<void *>(shadow), 0, alignUp(g.sharedBytes, 64) / kGranule * sizeof(Cell));
  m.block = {}, m.blockDim = g.block, m.gridDim = g.grid;
  m.threads = static_cast<u32>(threads), m.sharedBytes = g.sharedBytes;
  m.stacks = reinterpret_cast<u8 *>(base), m.sharedMemory = reinterpret_cast<u8 *>(shared), m.shadow = reinterpret_cast<Cell *>(shadow);
  for (Warp &w : m.warps) w.arrived = w.operation = 0, w.epoch = 1, w.alive = kWarp, w.site = {nullptr, 0, 0};
  m.epoch = m.firstEpoch = 1, m.atBarrier = 0, m.barrier = {nullptr, 0, 0}, m.seed = seed, m.name = name, m.report = &report, m.scheduler = nullptr;
  m.body = body, m.environment = environment, m.stats = nullptr, m.failed = false;
  return &m;
}

/// Host thread `part` of `parts` runs its blocks until one of them fails.
inline void runPart(Machine &m, u32 part, u32 parts) {
  u64 blocks = static_cast<u64>(m.gridDim.x) * m.gridDim.y * m.gridDim.z;
  for (u64 b = part; b < blocks && m.report->kind() == Fault::None; b += parts) {
    m.random = (m.seed ^ (b + 1) * 0x9e3779b97f4a7c15ull) | 1;
    runBlock(m, {static_cast<u32>(b % m.gridDim.x), static_cast<u32>(b / m.gridDim.x % m.gridDim.y), static_cast<u32>(b / m.gridDim.x / m.gridDim.y)});
  }
}

/// Calls `kernel()` as every thread of the grid, on this host thread.
template <class Kernel> void launch(void *memory, const Geometry &g, const char *name, u64 seed, Report &report, u32 part, u32 parts, const Kernel &kernel, Stats *stats = nullptr) {
  Body body = [](void *environment) { (*static_cast<const Kernel *>(environment))(); };
  Machine *m = prepare(memory, g, name, seed, report, body, const_cast<void *>(static_cast<const void *>(&kernel)));
  if (!m) return;
  m->stats = stats;
  runPart(*m, part, parts);
}

} // namespace tare::emu
