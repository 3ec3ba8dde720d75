/* Declarations of the freestanding microkernels. In: pointers, sizes, strides (in elements) and hooks from generated code; out: results through the
 * hooks. Everything here is C without libc, compiled once per ISA level to bitcode (kernels/CMakeLists.txt), linked into each engine's module and
 * inlined there: functions marked TARE_INLINE vanish into their callers, hooks become direct code. All struct fields are 8 bytes wide, in order.
 * Buffers may be unaligned; scratch must be 64-byte aligned and belongs to the calling thread alone. `thread` is in [0, threads). */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_PANEL 32 /* columns of a weight panel, and row stride of a finished tile */

/* ---- GEMM with prepacked weights ---------------------------------------------------------------------------------------------------------
 * result[m,n] = sum_k a[m,k] * b[k,n]; a is f32, row-major with row stride lda. b_panels is "panel32": [ceil(n/32)][k][32], zero padded, of f32, f16
 * or bf16 bits; products and sums are f32. `fn` receives finished tiles: tile[r*32 + c] is element (row + r, col + c), r < rows <= 14,
 * c < cols <= 32, col a multiple of 32; each element comes exactly once, from the thread that computed it. A full panel calls with the constant 32. */
typedef void (*tare_epilogue)(void *env, const float *tile, int64_t row, int64_t col, int64_t rows, int64_t cols);
void tare_gemm_f32(const float *a, int64_t lda, const void *b_panels, int64_t m, int64_t n, int64_t k, int64_t thread, int64_t threads, tare_epilogue fn, void *env);
void tare_gemm_f16(const float *a, int64_t lda, const void *b_panels, int64_t m, int64_t n, int64_t k, int64_t thread, int64_t threads, tare_epilogue fn, void *env);
void tare_gemm_bf16(const float *a, int64_t lda, const void *b_panels, int64_t m, int64_t n, int64_t k, int64_t thread, int64_t threads, tare_epilogue fn, void *env);

/* ---- GEMM with a fidelity check in its epilogue (spec 6) ------------------------------------------------------------------------------------
 * As above, with one word per row: bit k is || W_k a[row] - p_k ||_2 < tau_k, k < heads <= 32; width is the depth of the product. Only rows that `run` lists
 * are evaluated; the others have the bits of the last listed row of their batch element, or `carried`. Each thread evaluates the row that carries
 * into its first one again, so threads are independent. A row's distances do not depend on which rows are evaluated with it.
 * Weights are panels [heads][ceil(rank/32)][width][32], zero padded: f32, f16, bf16; i8; i4 (16 bytes per step: column c in the low half of byte c, c + 16 in the
 * high half, value + 8). Integers have scales [heads][ceil(rank/32)][ceil(width/group)][32]. p is [heads][ceil(rank/32)][32], zero padded. */
enum { TARE_F32, TARE_F16, TARE_BF16, TARE_I8, TARE_I4 }; /* how panels store their elements */
typedef struct tare_check_rows {
  const int64_t *rows;                                      /* 0: ascending; row = batch element * tokens + token */
  int64_t count;                                            /* 1: -1: every row, with the dense weights */
  int64_t tokens;                                           /* 2: rows per batch element */
  const uint32_t *carried;                                  /* 3: per batch element, what flows into its first row */
  uint32_t *last;                                           /* 4: per batch element, the bits of its last row: written by the kernel */
  uint32_t *all;                                            /* 5: null, or per row, its bits: written by the kernel */
  const int32_t *anchors;                                   /* 6: per batch element, its anchors, ascending; kernels for GPUs find rows by them */
  int64_t anchor_count;                                     /* 7: of each; -1 as in `count` */
  const int64_t *first;                                     /* 8: per batch element, the position before which no row is evaluated: p when the row at p is, ~p when not */
  int64_t past;                                             /* 9: position of the first row */
} tare_check_rows;
typedef struct tare_check {
  const tare_check_rows *run;                               /* 0 */
  const void *dense;                                        /* 1 */
  int64_t dense_kind;                                       /* 2: f32, f16, bf16 */
  const void *sparse;                                       /* 3 */
  int64_t sparse_kind;                                      /* 4 */
  const float *scale;                                       /* 5: null for floats */
  int64_t group;                                            /* 6 */
  const float *p, *tau;                                     /* 7, 8 */
  int64_t heads, rank, width;                               /* 9, 10, 11 */
} tare_check;
typedef void (*tare_checked_epilogue)(void *env, const float *tile, int64_t row, int64_t col, int64_t rows, int64_t cols, const uint32_t *bits);
void tare_gemm_checked_f32(const float *a, int64_t lda, const void *b_panels, int64_t m, int64_t n, int64_t k, const tare_check *check, int64_t thread, int64_t threads,
                           tare_checked_epilogue fn, void *env);
void tare_gemm_checked_f16(const float *a, int64_t lda, const void *b_panels, int64_t m, int64_t n, int64_t k, const tare_check *check, int64_t thread, int64_t threads,
                           tare_checked_epilogue fn, void *env);
void tare_gemm_checked_bf16(const float *a, int64_t lda, const void *b_panels, int64_t m, int64_t n, int64_t k, const tare_check *check, int64_t thread, int64_t threads,
                            tare_checked_epilogue fn, void *env);
/* The bits of rows [row0, row0 + rows) of a. `before`: those of row0 - 1 where they are known, else null, and the listed
 * row that carries into row0 is evaluated again. `last` is written when `writes` is not 0. */
void tare_check_bits(const tare_check *check, const float *a, int64_t lda, int64_t row0, int64_t rows, uint32_t *bits,
                     const uint32_t *before, int64_t writes);
/* Rows that a GEMM of depth k takes at once, and so its checks. */
#define TARE_CHECK_CHUNK(k) ((k) > 1024 ? 140 : (k) <= 128 ? 1024 : (131072 / (k)) < 140 ? 140 : 131072 / (k))

/* ---- matmul of two activations, any strides, any batch -------------------------------------------------------------------------------------
 * For each batch index: a[m,k] at a + sum(index*a_batch) + i*a_row + j*a_col, b[k,n] likewise; a stride 0 broadcasts. Unused batch dims have size 1.
 * `fn` as above plus the flat batch index (row-major over batch[0..3]). scratch: TARE_MATMUL_SCRATCH bytes per thread, whatever the sizes. */
typedef struct tare_matmul {
  const float *a, *b;                                       /* 0, 1 */
  int64_t batch[4], a_batch[4], b_batch[4];                 /* 2..5, 6..9, 10..13 */
  int64_t m, n, k;                                          /* 14, 15, 16 */
  int64_t a_row, a_col, b_row, b_col;                       /* 17, 18, 19, 20 */
} tare_matmul;
typedef void (*tare_batch_epilogue)(void *env, const float *tile, int64_t batch, int64_t row, int64_t col, int64_t rows, int64_t cols);
#define TARE_MATMUL_SCRATCH (4 * (512 * 32 + 112 * 512))
void tare_matmul_f32(const tare_matmul *args, int64_t thread, int64_t threads, void *scratch, tare_batch_epilogue fn, void *env);

/* ---- attention -----------------------------------------------------------------------------------------------------------------------------
 * out[b,h,s,:] = softmax_t(scale * q[b,h,s,:] . k[b,g,t,:] + bias(b,h,s,t)) v[b,g,t,:], g = h / (heads / kv_heads). Strides in elements for batch, head,
 * position; the last dimension is contiguous. `bias` (may be null) writes row[0..count) for keys t0..t0+count. A row whose softmax is NaN (all keys -inf,
 * any NaN) gives NaN, or 0 with nan_guard. Online softmax over key tiles: scratch does not grow with the sequence (formula: TARE_ATTENTION_SCRATCH, bytes per thread).
 * Keys with bias <= -1e30 in every row of a block, all of which have seen a key with more, are skipped: their weight is exactly 0 for finite q, k, v. */
typedef struct tare_attention {
  const float *q, *k, *v;                                   /* 0, 1, 2 */
  float *out;                                               /* 3 */
  int64_t batch, heads, kv_heads, queries, keys;            /* 4, 5, 6, 7, 8 */
  int64_t dim, value_dim;                                   /* 9, 10: last dimension of q and k, of v and out */
  int64_t q_stride[3], k_stride[3], v_stride[3], out_stride[3]; /* 11..13, 14..16, 17..19, 20..22 */
  double scale;                                             /* 23 */
  int64_t nan_guard;                                        /* 24: 0 or 1 */
} tare_attention;
typedef void (*tare_bias_row)(void *env, float *row, int64_t b, int64_t h, int64_t q, int64_t t0, int64_t count);
#define TARE_KEY_TILE 512
#define TARE_QUERY_TILE 224
#define TARE_ROUND32(x) (((x) + 31) / 32 * 32)
#define TARE_ATTENTION_SCRATCH(dim, value_dim) (4 * (TARE_KEY_TILE * ((dim) + TARE_ROUND32(value_dim) + 32) + TARE_QUERY_TILE * (TARE_ROUND32(value_dim) + 2)))
void tare_attention_f32(const tare_attention *args, tare_bias_row bias, void *env, int64_t thread, int64_t threads, void *scratch);

/* ---- scalar math: no branches, no calls, no tables; loops over them vectorise. f32 within 2 ulp, f64 within 4 ulp (erf 6) unless said -------- */
float tare_expf(float x);
float tare_exp2f(float x);
float tare_expm1f(float x);
float tare_logf(float x);
float tare_log1pf(float x);
float tare_log2f(float x);
float tare_powf(float x, float y);
float tare_erff(float x);
float tare_tanhf(float x);
float tare_sigmoidf(float x);
float tare_softplusf(float x);
float tare_siluf(float x);        /* x * sigmoid(x) */
float tare_gelu_erff(float x);    /* 0.5 x (1 + erf(x / sqrt 2)), absolute error 2.5e-7 max(1, |x|) */
float tare_gelu_tanhf(float x);   /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
float tare_sinf(float x);         /* reduced in double: right for |x| < 2^30 */
float tare_cosf(float x);
float tare_tanf(float x);
float tare_asinf(float x);
float tare_acosf(float x);
float tare_atanf(float x);
float tare_sinhf(float x);
float tare_coshf(float x);
float tare_asinhf(float x);
float tare_acoshf(float x);
float tare_atanhf(float x);
float tare_fmodf(float x, float y);
double tare_exp(double x);
double tare_expm1(double x);
double tare_log(double x);
double tare_log1p(double x);
double tare_pow(double x, double y);
double tare_erf(double x);
double tare_tanh(double x);
double tare_sigmoid(double x);
double tare_softplus(double x);
double tare_sin(double x);        /* right for |x| < 2^30 */
double tare_cos(double x);
double tare_tan(double x);
double tare_asin(double x);
double tare_acos(double x);
double tare_atan(double x);
double tare_sinh(double x);
double tare_cosh(double x);
double tare_asinh(double x);
double tare_acosh(double x);
double tare_atanh(double x);
double tare_fmod(double x, double y);

#ifdef __cplusplus
}
#endif
