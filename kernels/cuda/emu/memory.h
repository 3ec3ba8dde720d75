// Checked memory for kernels: global<T> and shared<T> as kernels/cuda/simt.cuh declares them for the GPU, here with bounds, alignment, races, poison and counts.
// An index remembers its place in the text, so that every report and every count names the line of the kernel.
#pragma once
#include "kernels/cuda/emu/shadow.h"
#include "kernels/cuda/emu/stats.h"

namespace tare {

using i64 = long long;
using u32 = unsigned;
using u64 = unsigned long long;
using u16 = unsigned short;
using u8 = unsigned char;

template <class T, int N> struct alignas(sizeof(T) * N) vec {
  T v[N];
  T &operator[](int i) { return v[i]; }
  const T &operator[](int i) const { return v[i]; }
};

namespace emu {
struct At { // an index and its place
  i64 i;
  Site site;
  template <class I> constexpr At(I i, const char *file = __builtin_FILE(), u32 line = __builtin_LINE(), u32 column = TARE_COLUMN) : i(static_cast<i64>(i)), site{file, line, column} {}
};
template <class T> struct Plain { using type = T; };
template <class T> struct Plain<const T> { using type = T; };
template <class T> using plain = typename Plain<T>::type;
template <class To, class From> To bitsOf(const From &from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
} // namespace emu

/// A buffer in device memory: `count` elements. `cells` is its shadow, or null where no race check is wanted.
template <class T> struct global {
  using Value = emu::plain<T>;
  T *pointer = nullptr;
  i64 count = 0;
  const char *name = "buffer";
  emu::Cell *cells = nullptr;

  explicit operator bool() const { return pointer != nullptr; }
  void check(i64 i, i64 n, u32 width, bool writes, emu::Site site) const {
    if (i < 0 || i + n > count) emu::fault(emu::Fault::OutOfBounds, site, writes ? "writes " : "reads ", name, "[", i, "]", n > 1 ? " and on" : "", ", which has ", count, " elements");
    u64 address = reinterpret_cast<u64>(pointer + i);
    if (address % width) emu::fault(emu::Fault::Misaligned, site, "accesses ", width, " bytes of ", name, " at element ", i, ", which is not aligned to them");
    emu::noteAccess(writes ? emu::Access::GlobalStore : emu::Access::GlobalLoad, address, static_cast<u32>(sizeof(Value) * n), site);
    emu::noteGlobal(cells, i, n, writes, name, site);
  }
  Value read(emu::At at) const {
    check(at.i, 1, sizeof(Value), false, at.site);
    return pointer[at.i];
  }
  void write(emu::At at, Value v) const {
    check(at.i, 1, sizeof(Value), true, at.site);
    pointer[at.i] = v;
  }
  template <int N> vec<Value, N> readVector(emu::At at) const {
    check(at.i, N, sizeof(vec<Value, N>), false, at.site);
    vec<Value, N> v;
    __builtin_memcpy(&v, pointer + at.i, sizeof v);
    return v;
  }
  template <int N> void writeVector(emu::At at, const vec<Value, N> &v) const {
    check(at.i, N, sizeof(vec<Value, N>), true, at.site);
    __builtin_memcpy(pointer + at.i, &v, sizeof v);
  }
};

/// `count` elements of the block's shared memory, from byte `at` on.
template <class T> struct shared {
  static_assert(sizeof(T) >= emu::kGranule, "the shadow has one cell per two bytes");
  u32 at = 0;
  u32 count = 0;

  u32 byteOf(i64 i, i64 n, emu::Site site) const {
    if (i < 0 || i + n > count) emu::fault(emu::Fault::OutOfBounds, site, "index ", i, n > 1 ? " and on" : "", " of a shared array of ", count, " elements");
    return at + static_cast<u32>(i * sizeof(T));
  }
  T read(emu::At index) const {
    u32 byte = byteOf(index.i, 1, index.site);
    emu::noteRead(byte, sizeof(T), sizeof(T), index.site);
    emu::noteAccess(emu::Access::SharedLoad, byte, sizeof(T), index.site);
    T v;
    __builtin_memcpy(&v, emu::self().machine->sharedMemory + byte, sizeof v);
    return v;
  }
  void write(emu::At index, T v) const {
    u32 byte = byteOf(index.i, 1, index.site);
    emu::noteWrite(byte, sizeof(T), sizeof(T), index.site);
    emu::noteAccess(emu::Access::SharedStore, byte, sizeof(T), index.site);
    __builtin_memcpy(emu::self().machine->sharedMemory + byte, &v, sizeof v);
  }
  template <int N> vec<T, N> readVector(emu::At index) const {
    u32 byte = byteOf(index.i, N, index.site);
    emu::noteRead(byte, sizeof(T) * N, sizeof(T) * N, index.site);
    emu::noteAccess(emu::Access::SharedLoad, byte, sizeof(T) * N, index.site);
    vec<T, N> v;
    __builtin_memcpy(&v, emu::self().machine->sharedMemory + byte, sizeof v);
    return v;
  }
  template <int N> void writeVector(emu::At index, const vec<T, N> &v) const {
    u32 byte = byteOf(index.i, N, index.site);
    emu::noteWrite(byte, sizeof(T) * N, sizeof(T) * N, index.site);
    emu::noteAccess(emu::Access::SharedStore, byte, sizeof(T) * N, index.site);
    __builtin_memcpy(emu::self().machine->sharedMemory + byte, &v, sizeof v);
  }
};

/// The array of `count` elements at byte `at` of the dynamic shared memory.
template <class T> shared<T> shared_at(u32 at, u32 count) { return {at, count}; }

} // namespace tare
