// Warp operations of the emulator: barriers, shuffles, votes, ldmatrix, mma.sync and cp.async, with the fragment layouts of the PTX ISA (sections "Matrix
// fragments for mma.m16n8k16", "... for mma.m16n8k8" and "ldmatrix"). In: each lane's part. Out: each lane's result. The last lane to come computes for all. Products are summed in f32,
// in order of k: a tensor core rounds otherwise, so comparisons with a GPU need a tolerance.
#pragma once
#include "kernels/cuda/emu/memory.h"

namespace tare {

struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
inline float to_float(f16 h) { return static_cast<float>(emu::bitsOf<_Float16>(h.bits)); }
inline float to_float(bf16 h) { return emu::bitsOf<float>(static_cast<u32>(h.bits) << 16); }
inline float to_float(float x) { return x; }
template <class T> T from_float(float x);
template <> inline float from_float<float>(float x) { return x; }
template <> inline f16 from_float<f16>(float x) { return {emu::bitsOf<u16>(static_cast<_Float16>(x))}; }
template <> inline bf16 from_float<bf16>(float x) {
  u32 bits = emu::bitsOf<u32>(x);
  if (x != x) return {static_cast<u16>((bits | 0x400000u) >> 16)};
  return {static_cast<u16>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
/// x in TF32, to nearest, ties away from zero: half of the last place that stays is added to the magnitude, the rest cut.
inline u32 to_tf32(float x) {
  u32 bits = emu::bitsOf<u32>(x);
  if (x != x) bits |= 0x400000u; // stays a NaN
  else if ((bits & 0x7f800000u) != 0x7f800000u) bits += 0x1000u;
  return bits & 0xffffe000u;
}

inline u32 thread_index() { return emu::self().tid; }
inline u32 lane_index() { return emu::self().lane; }
inline u32 block_index_x() { return emu::self().machine->block.x; }
inline u32 block_index_y() { return emu::self().machine->block.y; }
inline u32 block_index_z() { return emu::self().machine->block.z; }
inline u32 grid_size_x() { return emu::self().machine->gridDim.x; }

inline void sync_threads(emu::Site site = emu::here()) { emu::barrier(site); }
/// A barrier that tells every thread whether `vote` held in all of them.
inline bool sync_threads_all(bool vote, emu::Site site = emu::here()) {
  emu::Fiber &f = emu::self();
  f.vote = vote;
  emu::barrier(site);
  return f.verdict;
}
inline void sync_warp(emu::Site site = emu::here()) {
  u32 nothing = 0;
  emu::collective<u32>(1, site, nothing, [](emu::Machine &, emu::Warp &w, u32 *const *) { ++w.epoch; });
}

namespace emu {
template <class T> struct Shuffle {
  T value, result;
  u32 source;
};
template <class T> T shuffle(T value, u32 source, Site site) {
  Shuffle<T> mine{value, value, source};
  collective<Shuffle<T>>(2, site, mine, [](Machine &, Warp &, Shuffle<T> *const *lanes) {
    for (u32 l = 0; l < kWarp; ++l)
      if (lanes[l]->source < kWarp) lanes[l]->result = lanes[lanes[l]->source]->value;
  });
  return mine.result;
}
struct Vote {
  u32 value, result;
};
} // namespace emu

template <class T> T shuffle_xor(T v, u32 mask, emu::Site site = emu::here()) { return emu::shuffle(v, lane_index() ^ mask, site); }
template <class T> T shuffle_up(T v, u32 delta, emu::Site site = emu::here()) { return emu::shuffle(v, lane_index() - delta, site); }
template <class T> T shuffle_from(T v, u32 lane, emu::Site site = emu::here()) { return emu::shuffle(v, lane % emu::kWarp, site); }
inline u32 ballot(bool vote, emu::Site site = emu::here()) {
  emu::Vote mine{vote, 0};
  emu::collective<emu::Vote>(3, site, mine, [](emu::Machine &, emu::Warp &, emu::Vote *const *lanes) {
    u32 all = 0;
    for (u32 l = 0; l < emu::kWarp; ++l) all |= lanes[l]->value << l;
    for (u32 l = 0; l < emu::kWarp; ++l) lanes[l]->result = all;
  });
  return mine.result;
}
/// Four of the eight bytes of (high, low), one per hexadecimal digit of `select`: 0 to 3 are those of `low`, 4 to 7 those of `high`.
inline u32 byte_permute(u32 low, u32 high, u32 select) {
  const u64 bytes = static_cast<u64>(high) << 32 | low;
  u32 r = 0;
  for (u32 i = 0; i < 4; ++i) r |= static_cast<u32>(bytes >> (select >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return r;
}
inline u32 count_bits(u32 v) { return static_cast<u32>(__builtin_popcount(v)); }

// ---- cp.async: bytes arrive at the wait, not before -------------------------------------------------------------------------------------
/// Copies 16 bytes (16 / sizeof(T) elements) to shared memory; the first `valid` elements come from `from[index...]`, the rest become zero.
template <class S, class T> void cp_async16(shared<S> to, emu::At at, global<const T> from, i64 index, int valid = 16 / sizeof(T)) {
  u32 byte = to.byteOf(at.i, 16 / sizeof(S), at.site);
  emu::noteWrite(byte, 16, 16, at.site, /*inFlight=*/true);
  emu::noteAccess(emu::Access::SharedStore, byte, 16, at.site);
  if (valid > 0) {
    from.check(index, valid, sizeof(T), false, at.site);
    if (reinterpret_cast<u64>(from.pointer + index) % 16) emu::fault(emu::Fault::Misaligned, at.site, "cp.async of 16 bytes from ", from.name, " at element ", index);
  }
  emu::Fiber &f = emu::self();
  __builtin_memset(f.machine->sharedMemory + byte, 0xff, 16);
  if (f.copies == emu::kMaxCopies) emu::fault(emu::Fault::TooManyCopies, at.site, "more than ", emu::kMaxCopies, " cp.async in flight");
  f.pending[f.copies++] = {byte, 16, static_cast<u32>(valid * sizeof(T)), f.group, reinterpret_cast<const u8 *>(from.pointer + index)};
}
inline void cp_async_commit() { ++emu::self().group; }
/// Waits until at most N committed groups of this thread are in flight. Other threads see the data after a barrier.
template <int N> void cp_async_wait() {
  emu::Fiber &f = emu::self();
  emu::Machine &m = *f.machine;
  u32 kept = 0;
  for (u32 i = 0; i < f.copies; ++i) {
    emu::Copy &c = f.pending[i];
    if (c.group + N >= f.group) {
      f.pending[kept++] = c;
      continue;
    }
    u8 *to = m.sharedMemory + c.at;
    __builtin_memset(to, 0, c.bytes);
    for (u32 b = 0; b < c.valid; ++b) to[b] = c.from[b];
    for (u32 cell = c.at / emu::kGranule; cell < (c.at + c.bytes) / emu::kGranule; ++cell) m.shadow[cell].write = emu::tagOf(m.epoch, m.warps[f.warp].epoch, f.tid);
  }
  f.copies = kept;
}

// ---- matrix fragments -------------------------------------------------------------------------------------------------------------------
namespace emu {
struct LoadMatrix {
  u32 byte;
  u32 registers[4];
  u32 matrices;
  bool transposed;
};
inline void combineLoads(Machine &m, Warp &, LoadMatrix *const *lanes) {
  for (u32 i = 0; i < lanes[0]->matrices; ++i)
    for (u32 l = 0; l < kWarp; ++l) {
      u32 row = l / 4, column = l % 4 * 2;
      u16 pair[2];
      for (u32 e = 0; e < 2; ++e) {
        u32 r = lanes[0]->transposed ? column + e : row, c = lanes[0]->transposed ? row : column + e;
        __builtin_memcpy(&pair[e], m.sharedMemory + lanes[8 * i + r]->byte + 2 * c, 2);
      }
      lanes[l]->registers[i] = pair[0] | static_cast<u32>(pair[1]) << 16;
    }
}
template <int N, class T> void loadMatrix(u32 (&registers)[N], shared<T> from, At at, bool transposed) {
  static_assert((sizeof(T) == 2 || sizeof(T) == 4) && (N == 1 || N == 2 || N == 4));
  LoadMatrix mine{0, {}, N, transposed};
  if (self().lane < 8 * N) {
    mine.byte = from.byteOf(at.i, 16 / sizeof(T), at.site);
    noteRead(mine.byte, 16, 16, at.site);
    noteAccess(Access::SharedLoad, mine.byte, 16, at.site);
  }
  collective<LoadMatrix>(4, at.site, mine, combineLoads);
  for (int i = 0; i < N; ++i) registers[i] = mine.registers[i];
}
template <class T> struct Mma {
  float c[4];
  u32 a[4], b[2];
};
template <class T> void combineMma(Machine &, Warp &, Mma<T> *const *lanes) {
  float a[16][16], b[16][8], c[16][8];
  for (u32 l = 0; l < kWarp; ++l) {
    u32 g = l / 4, t = l % 4 * 2;
    for (u32 i = 0; i < 4; ++i)
      for (u32 e = 0; e < 2; ++e) a[g + i % 2 * 8][t + e + i / 2 * 8] = to_float(T{static_cast<u16>(lanes[l]->a[i] >> 16 * e)});
    for (u32 i = 0; i < 2; ++i)
      for (u32 e = 0; e < 2; ++e) b[t + e + 8 * i][g] = to_float(T{static_cast<u16>(lanes[l]->b[i] >> 16 * e)});
    for (u32 i = 0; i < 4; ++i) c[g + i / 2 * 8][t + i % 2] = lanes[l]->c[i];
  }
  for (u32 m = 0; m < 16; ++m)
    for (u32 k = 0; k < 16; ++k)
      for (u32 n = 0; n < 8; ++n) c[m][n] += a[m][k] * b[k][n];
  for (u32 l = 0; l < kWarp; ++l)
    for (u32 i = 0; i < 4; ++i) lanes[l]->c[i] = c[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2];
}
struct MmaBytes {
  int c[4];
  u32 a[4], b[2];
};
template <class A> void combineMmaBytes(Machine &, Warp &, MmaBytes *const *lanes) {
  int a[16][32], b[32][8];
  for (u32 l = 0; l < kWarp; ++l)
    for (u32 e = 0; e < 4; ++e) {
      const u32 g = l / 4, k = l % 4 * 4 + e;
      for (u32 i = 0; i < 4; ++i) a[g + i % 2 * 8][k + i / 2 * 16] = static_cast<A>(lanes[l]->a[i] >> 8 * e);
      for (u32 i = 0; i < 2; ++i) b[k + i * 16][g] = static_cast<signed char>(lanes[l]->b[i] >> 8 * e);
    }
  for (u32 l = 0; l < kWarp; ++l)
    for (u32 i = 0; i < 4; ++i) {
      u32 sum = static_cast<u32>(lanes[l]->c[i]); // wraps, as without .satfinite
      for (u32 k = 0; k < 32; ++k) sum += static_cast<u32>(a[l / 4 + i / 2 * 8][k] * b[k][l % 4 * 2 + i % 2]);
      lanes[l]->c[i] = static_cast<int>(sum);
    }
}
struct MmaTf32 {
  float c[4];
  u32 a[4], b[2];
};
/// Products of two 11-bit significands are exact in f32; the sum is f32's, rounded to nearest for every k in order. A tensor
/// core aligns several products and c to the largest of them and cuts what is below its last place (Fasi et al. 2021).
inline void combineMmaTf32(Machine &, Warp &, MmaTf32 *const *lanes) {
  auto operand = [](u32 bits) { return bitsOf<float>(bits & 0xffffe000u); }; // the hardware does not look at the other bits
  float a[16][8], b[8][8], c[16][8];
  for (u32 l = 0; l < kWarp; ++l) {
    u32 g = l / 4, t = l % 4;
    for (u32 i = 0; i < 4; ++i) a[g + i % 2 * 8][t + i / 2 * 4] = operand(lanes[l]->a[i]);
    for (u32 i = 0; i < 2; ++i) b[t + 4 * i][g] = operand(lanes[l]->b[i]);
    for (u32 i = 0; i < 4; ++i) c[g + i / 2 * 8][2 * t + i % 2] = lanes[l]->c[i];
  }
  for (u32 m = 0; m < 16; ++m)
    for (u32 k = 0; k < 8; ++k)
      for (u32 n = 0; n < 8; ++n) c[m][n] += a[m][k] * b[k][n];
  for (u32 l = 0; l < kWarp; ++l)
    for (u32 i = 0; i < 4; ++i) lanes[l]->c[i] = c[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2];
}
} // namespace emu

template <int N, class T> void ldmatrix(u32 (&registers)[N], shared<T> from, emu::At at) { emu::loadMatrix(registers, from, at, false); }
template <int N, class T> void ldmatrix_transposed(u32 (&registers)[N], shared<T> from, emu::At at) {
  static_assert(sizeof(T) == 2); // of 4 bytes, halves of elements would be transposed
  emu::loadMatrix(registers, from, at, true);
}
/// c += a b for one 16x8x16 tile of a warp; T is f16 or bf16, sums are f32.
template <class T> void mma_m16n8k16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2], emu::Site site = emu::here()) {
  emu::Mma<T> mine;
  for (int i = 0; i < 4; ++i) mine.c[i] = c[i], mine.a[i] = a[i];
  mine.b[0] = b[0], mine.b[1] = b[1];
  emu::collective<emu::Mma<T>>(5, site, mine, emu::combineMma<T>);
  for (int i = 0; i < 4; ++i) c[i] = mine.c[i];
}
/// c += a b for one 16x8x8 tile of a warp; a and b are TF32 (to_tf32), sums are f32.
inline void mma_m16n8k8_tf32(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2], emu::Site site = emu::here()) {
  emu::MmaTf32 mine;
  for (int i = 0; i < 4; ++i) mine.c[i] = c[i], mine.a[i] = a[i];
  mine.b[0] = b[0], mine.b[1] = b[1];
  emu::collective<emu::MmaTf32>(7, site, mine, emu::combineMmaTf32);
  for (int i = 0; i < 4; ++i) c[i] = mine.c[i];
}

/// d = c + a b for one 16x8x32 tile of a warp in exact integers: A is how bytes of a are read (u8 or signed char), bytes of b are signed.
template <class A> void mma_m16n8k32(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2], const int (&c)[4], emu::Site site = emu::here()) {
  emu::MmaBytes mine;
  for (int i = 0; i < 4; ++i) mine.c[i] = c[i], mine.a[i] = a[i];
  mine.b[0] = b[0], mine.b[1] = b[1];
  emu::collective<emu::MmaBytes>(6, site, mine, emu::combineMmaBytes<A>);
  for (int i = 0; i < 4; ++i) d[i] = mine.c[i];
}

} // namespace tare
