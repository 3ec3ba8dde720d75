// Who touched what, when: the shadow of shared memory (two bytes per cell) and of global buffers (one element per cell). In: accesses with their place in the
// text. Out: nothing, or a fault. A tag is (barrier epoch, warp epoch, thread): two accesses by different threads are ordered when their barrier epochs differ,
// or when both threads are of one warp and a sync_warp lies between them. Source of the rule: CUDA C++ programming guide, "Synchronization functions".
#pragma once
#include "kernels/cuda/emu/machine.h"

namespace tare::emu {

constexpr u32 kGranule = 2;
constexpr u64 kInFlight = 1ull << 11, kSeveral = 1ull << 12; // beside the thread in a tag's low 13 bits: bits 0..10
constexpr u64 tagOf(u32 epoch, u32 warpEpoch, u32 thread) { return static_cast<u64>(epoch) << 32 | static_cast<u64>(warpEpoch & 0x7ffff) << 13 | thread; }
constexpr u32 epochOf(u64 tag) { return static_cast<u32>(tag >> 32); }
constexpr u32 warpEpochOf(u64 tag) { return static_cast<u32>(tag >> 13) & 0x7ffff; }
constexpr u32 threadOf(u64 tag) { return static_cast<u32>(tag) & 0x7ff; }

/// True when an access by another thread under `tag` is not ordered before what `f` does now.
inline bool unordered(const Machine &m, const Fiber &f, u64 tag) {
  if (epochOf(tag) != m.epoch) return false;
  u32 other = threadOf(tag);
  if (other == f.tid && !(tag & kSeveral)) return false;
  if (other / kWarp != f.warp) return true;
  return warpEpochOf(tag) == (m.warps[f.warp].epoch & 0x7ffff);
}

inline void checkShared(Machine &m, u32 at, u32 bytes, u32 width, Site site, const char *what) {
  if (at + static_cast<u64>(bytes) > m.sharedBytes) fault(Fault::OutOfBounds, site, what, " of shared memory at byte ", at, ", which has ", m.sharedBytes);
  if (at % width) fault(Fault::Misaligned, site, what, " of ", width, " bytes of shared memory at byte ", at);
}

inline void noteRead(u32 at, u32 bytes, u32 width, Site site) {
  Fiber &f = self();
  Machine &m = *f.machine;
  checkShared(m, at, bytes, width, site, "read");
  u64 mine = tagOf(m.epoch, m.warps[f.warp].epoch, f.tid);
  for (u32 c = at / kGranule; c < (at + bytes + kGranule - 1) / kGranule; ++c) {
    Cell &cell = m.shadow[c];
    if (cell.write & kInFlight && epochOf(cell.write) >= m.firstEpoch)
      fault(Fault::NotArrived, site, "reads shared byte ", c * kGranule, ", which a cp.async of thread ", threadOf(cell.write), " has not delivered yet");
    if (epochOf(cell.write) < m.firstEpoch) fault(Fault::Uninitialised, site, "reads shared byte ", c * kGranule, ", which this block has not written");
    if (unordered(m, f, cell.write)) fault(Fault::Race, site, "reads shared byte ", c * kGranule, ", written by thread ", threadOf(cell.write), " without a barrier between");
    // Readers so far: one, several of one warp (the flag, the latest warp epoch), or of several warps (the flag, thread 0x7ff).
    u64 old = cell.read;
    if (epochOf(old) != m.epoch || old == mine) cell.read = mine;
    else if (threadOf(old) / kWarp != f.warp) cell.read = tagOf(m.epoch, 0, 0x7ff) | kSeveral;
    else cell.read = warpEpochOf(old) == warpEpochOf(mine) && (old & kSeveral || threadOf(old) != f.tid) ? mine | kSeveral : mine;
  }
}

inline void noteWrite(u32 at, u32 bytes, u32 width, Site site, bool inFlight = false) {
  Fiber &f = self();
  Machine &m = *f.machine;
  checkShared(m, at, bytes, width, site, "write");
  u64 mine = tagOf(m.epoch, m.warps[f.warp].epoch, f.tid);
  for (u32 c = at / kGranule; c < (at + bytes + kGranule - 1) / kGranule; ++c) {
    Cell &cell = m.shadow[c];
    if (cell.write & kInFlight && epochOf(cell.write) >= m.firstEpoch)
      fault(Fault::NotArrived, site, "writes shared byte ", c * kGranule, ", the target of a cp.async of thread ", threadOf(cell.write), " in flight");
    if (unordered(m, f, cell.write)) fault(Fault::Race, site, "writes shared byte ", c * kGranule, ", written by thread ", threadOf(cell.write), " without a barrier between");
    if (unordered(m, f, cell.read)) {
      if (threadOf(cell.read) == 0x7ff) fault(Fault::Race, site, "writes shared byte ", c * kGranule, ", read by several warps without a barrier between");
      fault(Fault::Race, site, "writes shared byte ", c * kGranule, ", read by thread ", threadOf(cell.read), " or its warp without a barrier between");
    }
    cell.write = inFlight ? mine | kInFlight : mine;
  }
}

/// Shadow of a global buffer: one cell per element, zero before the launch. Tags: block + 1 in the upper half, then epoch within the block, then thread.
/// Cells are shared between host threads: every access is atomic, a lost update can hide a race but never invents one.
constexpr u64 globalTag(u32 block, u32 epoch, u32 thread) { return static_cast<u64>(block + 1) << 32 | static_cast<u64>(epoch & 0x1fffff) << 11 | thread; }
constexpr u64 kManyBlocks = ~0ull;

inline void noteGlobal(Cell *cells, i64 first, i64 count, bool writes, const char *name, Site site) {
  if (!cells) return;
  Fiber &f = self();
  Machine &m = *f.machine;
  u32 block = (m.block.z * m.gridDim.y + m.block.y) * m.gridDim.x + m.block.x;
  u64 mine = globalTag(block, m.epoch - m.firstEpoch, f.tid);
  auto conflicts = [&](u64 tag) {
    if (tag == 0 || tag == mine) return false;
    if (tag >> 32 != mine >> 32) return true;
    return tag >> 11 == mine >> 11; // same block, same epoch, another thread
  };
  for (i64 i = first; i < first + count; ++i) {
    u64 written = __atomic_load_n(&cells[i].write, __ATOMIC_RELAXED), read = __atomic_load_n(&cells[i].read, __ATOMIC_RELAXED);
    if (conflicts(written) || (writes && conflicts(read)))
      fault(Fault::GlobalRace, site, writes ? "writes " : "reads ", name, "[", i, "], ", conflicts(written) ? "written" : "read", " by another thread or block of this launch");
    if (writes) __atomic_store_n(&cells[i].write, mine, __ATOMIC_RELAXED);
    else __atomic_store_n(&cells[i].read, read == 0 || read >> 32 == mine >> 32 ? mine : kManyBlocks, __ATOMIC_RELAXED);
  }
}

} // namespace tare::emu
