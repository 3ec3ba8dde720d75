// What a kernel's memory instructions would cost: bank conflicts of shared memory, bytes that global sectors carry in vain, per instruction. In: every access of
// every lane, in order. Out: a table per kernel. The n-th time that the lanes of a warp pass one place between two meetings counts as one warp instruction.
// Model (CUDA programming guide, compute capability 8.x): 32 banks of 4 bytes, 8- and 16-byte accesses in 2 and 4 phases; global memory in sectors of 32 bytes.
#pragma once
#include "kernels/cuda/emu/machine.h"

namespace tare::emu {

enum class Access : u32 { SharedLoad, SharedStore, GlobalLoad, GlobalStore };

constexpr u32 kSites = 256, kGroups = 1024; // instructions of a kernel; warp instructions between two meetings (more are not counted, and that is said)

struct Line { // one instruction
  Site site;
  Access access;
  u32 width;
  u64 issues, cycles, ideal;  // shared: phases with and without conflicts
  u64 sectors, useful;        // global: sectors of 32 bytes moved, bytes asked for
};
struct Group { // one warp instruction being collected
  u32 site, occurrence, lanes; // lanes: a bit for each that came
  u64 address[kWarp];
};
struct Table { // of a kernel, over any number of launches
  Line lines[kSites];
  u32 lineCount, lost;
};
struct WarpTrace {
  Group groups[kGroups];
  u32 count;
  u16 slots[2 * kGroups]; // open addressing: group + 1
  u16 seen[kWarp][kSites];
};
struct Stats : Table {
  WarpTrace warps[kMaxThreads / kWarp]; // last: memory for the warps that a launch has is enough
};
constexpr u64 statsBytes(u32 warps) { return sizeof(Stats) - (kMaxThreads / kWarp - warps) * sizeof(WarpTrace); }

/// Before a launch of `warps` warps per block.
inline void clear(Stats &s, u32 warps) {
  s.lineCount = s.lost = 0;
  for (u32 i = 0; i < warps; ++i) {
    WarpTrace &w = s.warps[i];
    w.count = 0;
    for (u16 &slot : w.slots) slot = 0;
    for (auto &lane : w.seen)
      for (u16 &n : lane) n = 0;
  }
}

inline u32 lineOf(Table &s, Site site, Access access, u32 width) {
  for (u32 i = 0; i < s.lineCount; ++i)
    if (s.lines[i].site == site && s.lines[i].access == access && s.lines[i].width == width) return i;
  if (s.lineCount == kSites) return kSites;
  s.lines[s.lineCount] = {site, access, width, 0, 0, 0, 0, 0};
  return s.lineCount++;
}

inline void noteAccess(Access access, u64 address, u32 width, Site site) {
  Fiber &f = self();
  if (!f.machine->stats) return;
  Stats &s = *f.machine->stats;
  WarpTrace &w = s.warps[f.warp];
  u32 line = lineOf(s, site, access, width);
  if (line == kSites) return void(++s.lost);
  u32 occurrence = w.seen[f.lane][line]++;
  for (u32 h = (line * 2654435761u ^ occurrence * 40503u) % (2 * kGroups);; h = (h + 1) % (2 * kGroups)) {
    if (!w.slots[h]) {
      if (w.count == kGroups) return void(++s.lost);
      w.groups[w.count] = {line, occurrence, 0, {}};
      w.slots[h] = static_cast<u16>(++w.count);
    }
    Group &g = w.groups[w.slots[h] - 1];
    if (g.site != line || g.occurrence != occurrence) continue;
    g.lanes |= 1u << f.lane;
    g.address[f.lane] = address;
    return;
  }
}

/// Phases of one shared access: in each phase, the most loaded bank decides; lanes that read the same word share it.
inline u32 phasesOf(const Group &g, u32 width, u32 &ideal) {
  u32 lanesPerPhase = width <= 4 ? 32 : width == 8 ? 16 : 8, total = 0;
  ideal = 0;
  for (u32 first = 0; first < kWarp; first += lanesPerPhase) {
    if (!(g.lanes >> first & (lanesPerPhase == 32 ? ~0u : (1u << lanesPerPhase) - 1))) continue;
    u64 words[64];
    u32 count = 0, most = 1;
    u8 load[32] = {};
    for (u32 i = first; i < first + lanesPerPhase; ++i)
      for (u64 b = 0; b < (width + 3) / 4 && g.lanes >> i & 1; ++b) {
        u64 word = g.address[i] / 4 + b;
        bool known = false;
        for (u32 k = 0; k < count && !known; ++k) known = words[k] == word;
        if (known || count == 64) continue;
        words[count++] = word;
        u32 now = ++load[word % 32];
        if (now > most) most = now;
      }
    total += most;
    ++ideal;
  }
  return total;
}

inline void finish(Line &line, const Group &g) {
  ++line.issues;
  if (line.access == Access::SharedLoad || line.access == Access::SharedStore) {
    u32 ideal;
    line.cycles += phasesOf(g, line.width, ideal);
    line.ideal += ideal;
    return;
  }
  u64 sectors[2 * kWarp], bytes[kWarp];
  u32 count = 0, distinct = 0;
  for (u32 i = 0; i < kWarp; ++i) {
    if (!(g.lanes >> i & 1)) continue;
    bool repeated = false;
    for (u32 k = 0; k < distinct && !repeated; ++k) repeated = bytes[k] == g.address[i];
    if (!repeated) bytes[distinct++] = g.address[i], line.useful += line.width;
    for (u64 s = g.address[i] / 32; s <= (g.address[i] + line.width - 1) / 32; ++s) {
      bool known = false;
      for (u32 k = 0; k < count && !known; ++k) known = sectors[k] == s;
      if (!known && count < 2 * kWarp) sectors[count++] = s;
    }
  }
  line.sectors += count;
}

/// The lanes of a warp have met: what they did since the last meeting is complete.
inline void flushStats(Machine &m, u32 warp) {
  Stats &s = *m.stats;
  WarpTrace &w = s.warps[warp];
  if (!w.count) return;
  for (u32 i = 0; i < w.count; ++i) finish(s.lines[w.groups[i].site], w.groups[i]);
  w.count = 0;
  for (u16 &slot : w.slots) slot = 0;
  for (auto &lane : w.seen)
    for (u16 &n : lane) n = 0;
}

/// Adds the lines of one host thread, or of one launch, to another's.
inline void mergeStats(Table &into, const Table &from) {
  into.lost += from.lost;
  for (u32 i = 0; i < from.lineCount; ++i) {
    const Line &l = from.lines[i];
    u32 at = lineOf(into, l.site, l.access, l.width);
    if (at == kSites) continue;
    Line &to = into.lines[at];
    to.issues += l.issues, to.cycles += l.cycles, to.ideal += l.ideal, to.sectors += l.sectors, to.useful += l.useful;
  }
}

/// One line of the table as text, without its end.
inline void describe(Text &t, const Line &l) {
  const char *const kinds[] = {"shared load", "shared store", "global load", "global store"};
  const char *file = l.site.file ? l.site.file : "?";
  for (const char *c = file; *c; ++c)
    if (*c == '/') file = c + 1;
  auto hundredths = [&](u64 part, u64 whole) {
    const u64 v = whole ? (part * 100 + whole / 2) / whole : 0;
    t << v / 100 << "." << v / 10 % 10 << v % 10;
  };
  t << "  " << file << ":" << l.site.line << ":" << l.site.column << " " << kinds[static_cast<int>(l.access)] << " of " << l.width
    << " bytes: " << l.issues << " warp instructions, ";
  if (l.access == Access::SharedLoad || l.access == Access::SharedStore) {
    hundredths(l.cycles, l.issues);
    t << " phases each where ";
    hundredths(l.ideal, l.issues);
    t << " would do";
  } else {
    t << l.sectors * 32 << " bytes moved for " << l.useful << " used (" << (l.sectors ? (100 * l.useful + 16 * l.sectors) / (32 * l.sectors) : 100) << "%)";
  }
}

} // namespace tare::emu
