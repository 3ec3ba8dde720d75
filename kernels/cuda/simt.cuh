// The vocabulary of every kernel in this folder: threads, barriers, shuffles, checked memory, cp.async, ldmatrix, mma. The same kernel text compiles for the GPU
// (nvcc, NVRTC, clang: the wrappers are inline PTX, buffers are bare pointers) and as C++ for the host, where kernels/cuda/emu checks every access. Kernels use
// nothing else: no built-in variables, no <cuda_*.h>. Needs sm_80 or later.
#pragma once

#if defined(__CUDACC__) || defined(__CUDA__)
#define TARE_DEVICE __device__ __forceinline__
// At least four blocks of 128 threads per multiprocessor: 128 registers per thread; roomy kernels get three blocks and
// 168 registers, wide ones two and 255.
#define TARE_KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
#define TARE_ROOMY_KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS, 384 / THREADS)
#define TARE_WIDE_KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS, 256 / THREADS)

namespace tare {

using i64 = long long;
using u32 = unsigned;
using u64 = unsigned long long;
using u16 = unsigned short;
using u8 = unsigned char;

template <class T, int N> struct alignas(sizeof(T) * N) vec {
  T v[N];
  TARE_DEVICE T &operator[](int i) { return v[i]; }
  TARE_DEVICE const T &operator[](int i) const { return v[i]; }
};
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
template <class T> struct Plain { using type = T; };
template <class T> struct Plain<const T> { using type = T; };

/// A buffer in device memory.
template <class T> struct global {
  using Value = typename Plain<T>::type;
  T *pointer;
  TARE_DEVICE explicit operator bool() const { return pointer != nullptr; }
  TARE_DEVICE Value read(i64 i) const { return pointer[i]; }
  TARE_DEVICE void write(i64 i, Value v) const { pointer[i] = v; }
  template <int N> TARE_DEVICE vec<Value, N> readVector(i64 i) const { return *reinterpret_cast<const vec<Value, N> *>(pointer + i); }
  template <int N> TARE_DEVICE void writeVector(i64 i, const vec<Value, N> &v) const { *reinterpret_cast<vec<Value, N> *>(pointer + i) = v; }
};
/// An array in shared memory.
template <class T> struct shared {
  T *pointer;
  TARE_DEVICE T read(i64 i) const { return pointer[i]; }
  TARE_DEVICE void write(i64 i, T v) const { pointer[i] = v; }
  template <int N> TARE_DEVICE vec<T, N> readVector(i64 i) const { return *reinterpret_cast<const vec<T, N> *>(pointer + i); }
  template <int N> TARE_DEVICE void writeVector(i64 i, const vec<T, N> &v) const { *reinterpret_cast<vec<T, N> *>(pointer + i) = v; }
};
extern __shared__ __align__(128) unsigned char tare_shared_memory[];
template <class T> TARE_DEVICE shared<T> shared_at(u32 at, u32) { return {reinterpret_cast<T *>(tare_shared_memory + at)}; }

TARE_DEVICE u32 thread_index() { return threadIdx.x; }
TARE_DEVICE u32 lane_index() { return threadIdx.x & 31; }
TARE_DEVICE u32 block_index_x() { return blockIdx.x; }
TARE_DEVICE u32 block_index_y() { return blockIdx.y; }
TARE_DEVICE u32 block_index_z() { return blockIdx.z; }
TARE_DEVICE u32 grid_size_x() { return gridDim.x; }

TARE_DEVICE void sync_threads() { asm volatile("bar.sync 0;" ::: "memory"); }
TARE_DEVICE void sync_warp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
TARE_DEVICE u32 ballot(bool vote) {
  u32 r;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(r) : "r"(static_cast<u32>(vote)));
  return r;
}
/// A barrier that tells every thread whether `vote` held in all of them.
TARE_DEVICE bool sync_threads_all(bool vote) {
  u32 r;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.and.pred q, 0, p; selp.u32 %0, 1, 0, q; }" : "=r"(r) : "r"(static_cast<u32>(vote)) : "memory");
  return r != 0;
}
TARE_DEVICE u32 count_bits(u32 v) { return __popc(v); }
/// Four of the eight bytes of (high, low), one per hexadecimal digit of `select`: 0 to 3 are those of `low`, 4 to 7 those of `high`.
TARE_DEVICE u32 byte_permute(u32 low, u32 high, u32 select) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(select));
  return r;
}
// Lanes outside of the warp keep their own value, as the hardware has it.
TARE_DEVICE u32 shuffle_xor(u32 v, u32 mask) {
  u32 r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(mask));
  return r;
}
TARE_DEVICE u32 shuffle_up(u32 v, u32 delta) {
  u32 r;
  asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(r) : "r"(v), "r"(delta));
  return r;
}
TARE_DEVICE u32 shuffle_from(u32 v, u32 lane) {
  u32 r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
  return r;
}
TARE_DEVICE float shuffle_xor(float v, u32 mask) { return __uint_as_float(shuffle_xor(__float_as_uint(v), mask)); }
TARE_DEVICE float shuffle_up(float v, u32 delta) { return __uint_as_float(shuffle_up(__float_as_uint(v), delta)); }
TARE_DEVICE float shuffle_from(float v, u32 lane) { return __uint_as_float(shuffle_from(__float_as_uint(v), lane)); }
TARE_DEVICE int shuffle_xor(int v, u32 mask) { return static_cast<int>(shuffle_xor(static_cast<u32>(v), mask)); }
TARE_DEVICE int shuffle_up(int v, u32 delta) { return static_cast<int>(shuffle_up(static_cast<u32>(v), delta)); }
TARE_DEVICE int shuffle_from(int v, u32 lane) { return static_cast<int>(shuffle_from(static_cast<u32>(v), lane)); }

TARE_DEVICE float to_float(f16 h) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h.bits));
  return r;
}
TARE_DEVICE float to_float(bf16 h) { return __uint_as_float(static_cast<u32>(h.bits) << 16); }
TARE_DEVICE float to_float(float x) { return x; }
template <class T> TARE_DEVICE T from_float(float x);
template <> TARE_DEVICE float from_float<float>(float x) { return x; }
template <> TARE_DEVICE f16 from_float<f16>(float x) {
  f16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
template <> TARE_DEVICE bf16 from_float<bf16>(float x) {
  bf16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
/// x in TF32 (f32's range, 11 significant bits), to nearest, ties away from zero: a register as mma takes it.
TARE_DEVICE u32 to_tf32(float x) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}

/// Copies 16 bytes (16 / sizeof(T) elements) to shared memory; the first `valid` elements come from `from[index...]`, the rest become zero.
template <class S, class T> TARE_DEVICE void cp_async16(shared<S> to, i64 at, global<const T> from, i64 index, int valid = 16 / sizeof(T)) {
  u32 target = static_cast<u32>(__cvta_generic_to_shared(to.pointer + at));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from.pointer + (valid > 0 ? index : 0)), "r"(static_cast<int>(valid * sizeof(T))) : "memory");
}
TARE_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most N committed groups of this thread are in flight. Other threads see the data after a barrier.
template <int N> TARE_DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// ldmatrix: lane 8 i + r gives the address of row r (16 bytes) of matrix i. Lane 4 g + t gets four bytes of each: elements
// 2 t, 2 t + 1 of row g where elements have 2 bytes (that of the transposed matrix, if so asked), element t where they have 4.
template <class T> TARE_DEVICE void ldmatrix(u32 (&d)[4], shared<T> from, i64 at) {
  u32 a = static_cast<u32>(__cvta_generic_to_shared(from.pointer + at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(a) : "memory");
}
template <class T> TARE_DEVICE void ldmatrix(u32 (&d)[2], shared<T> from, i64 at) {
  u32 a = static_cast<u32>(__cvta_generic_to_shared(from.pointer + at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(d[0]), "=r"(d[1]) : "r"(a) : "memory");
}
template <class T> TARE_DEVICE void ldmatrix_transposed(u32 (&d)[4], shared<T> from, i64 at) {
  u32 a = static_cast<u32>(__cvta_generic_to_shared(from.pointer + at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(a) : "memory");
}
template <class T> TARE_DEVICE void ldmatrix_transposed(u32 (&d)[2], shared<T> from, i64 at) {
  u32 a = static_cast<u32>(__cvta_generic_to_shared(from.pointer + at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(d[0]), "=r"(d[1]) : "r"(a) : "memory");
}
/// c += a b for one 16x8x16 tile of a warp; T is f16 or bf16, sums are f32.
template <class T> TARE_DEVICE void mma_m16n8k16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]);
template <> TARE_DEVICE void mma_m16n8k16<f16>(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <> TARE_DEVICE void mma_m16n8k16<bf16>(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/// d = c + a b for one 16x8x32 tile of a warp in exact integers: A is how bytes of a are read (u8 or signed char), bytes of b are signed.
template <class A> TARE_DEVICE void mma_m16n8k32(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2], const int (&c)[4]);
template <> TARE_DEVICE void mma_m16n8k32<u8>(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2], const int (&c)[4]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
template <> TARE_DEVICE void mma_m16n8k32<signed char>(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2], const int (&c)[4]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
/// c += a b for one 16x8x8 tile of a warp; a and b are TF32 (to_tf32), sums are f32. Lane 4 g + t has rows g and g + 8 of
/// column t of a, the same of column t + 4; rows t and t + 4 of column g of b; c as m16n8k16 has it.
TARE_DEVICE void mma_m16n8k8_tf32(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

} // namespace tare

#else
#include "kernels/cuda/emu/launch.h"
#define TARE_DEVICE inline
#define TARE_KERNEL(THREADS) static inline void
#define TARE_ROOMY_KERNEL(THREADS) static inline void
#define TARE_WIDE_KERNEL(THREADS) static inline void
#endif

namespace tare {
/// Two 2-byte elements as one register, the first in the low half.
template <class T> TARE_DEVICE u32 pack(T low, T high) { return low.bits | static_cast<u32>(high.bits) << 16; }
} // namespace tare
