// What kernels/cuda/simt.cuh and math.cuh take for granted, for clang without a CUDA Toolkit (clang -x cuda -nocudainc -nocudalib): attributes, built-in
// variables, conversions and roundings. In: nothing. Out: their names. Must hold: included before everything else, and only there; no library is needed.
#pragma once
#if defined(__CUDA__) && defined(__clang__) && !defined(__CUDACC__)

#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(N) __attribute__((aligned(N)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

// threadIdx.x and its like: a read of a special register each.
#define TARE_REGISTER(NAME, REGISTER)                                                                                  \
  struct NAME##_t {                                                                                                    \
    struct X { __device__ operator unsigned() const { return __nvvm_read_ptx_sreg_##REGISTER##_x(); } };               \
    struct Y { __device__ operator unsigned() const { return __nvvm_read_ptx_sreg_##REGISTER##_y(); } };               \
    struct Z { __device__ operator unsigned() const { return __nvvm_read_ptx_sreg_##REGISTER##_z(); } };               \
    X x;                                                                                                               \
    Y y;                                                                                                               \
    Z z;                                                                                                               \
  };                                                                                                                   \
  static constexpr NAME##_t NAME{};
TARE_REGISTER(threadIdx, tid)
TARE_REGISTER(blockIdx, ctaid)
TARE_REGISTER(blockDim, ntid)
TARE_REGISTER(gridDim, nctaid)
#undef TARE_REGISTER

#define TARE_INTRINSIC static __device__ __forceinline__
TARE_INTRINSIC int __popc(unsigned x) { return __builtin_popcount(x); }
TARE_INTRINSIC int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
TARE_INTRINSIC int __ffs(int x) { return __builtin_ffs(x); }
TARE_INTRINSIC int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
TARE_INTRINSIC unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
TARE_INTRINSIC float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
TARE_INTRINSIC float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
TARE_INTRINSIC long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
TARE_INTRINSIC double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
TARE_INTRINSIC float __fmaf_rn(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
TARE_INTRINSIC double __fma_rn(double a, double b, double c) { return __nvvm_fma_rn_d(a, b, c); }
TARE_INTRINSIC float __fmul_rn(float a, float b) { return __nvvm_mul_rn_f(a, b); }
TARE_INTRINSIC float __fsqrt_rn(float x) { return __nvvm_sqrt_rn_f(x); }
TARE_INTRINSIC double __dsqrt_rn(double x) { return __nvvm_sqrt_rn_d(x); }
TARE_INTRINSIC unsigned long long __cvta_generic_to_shared(const void *p) {
  return reinterpret_cast<unsigned long long>((const __attribute__((address_space(3))) void *)p);
}
#undef TARE_INTRINSIC

#endif
