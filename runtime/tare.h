/* C API of libtare_rt: loads engine files and runs them. In: an engine made by `tare compile` and caller's tensors. Out: results, profiles, estimates.
 *
 * ENGINES CONTAIN MACHINE CODE that runs in your process: load only engines that you trust (docs/engine-format.md).
 *
 * Errors:    every function that can fail takes a `tare_error *` (may be NULL), fills it and returns its code, or NULL where it returns an object.
 *            No C++ exception crosses this API; nothing aborts the process.
 * Threads:   a tare_engine_t may be used by any number of threads at once. A tare_context_t is one request's state: one thread at a time, but
 *            tare_context_cancel may be called from any thread. Different contexts of one engine run at the same time.
 * Ownership: an engine lives until it is closed and its last context is destroyed. Strings and sections belong to the engine, shapes and context-owned
 *            outputs to the context (valid until its next run or reset). Input and output buffers that the caller passes stay the caller's.
 * Memory:    after the first run at given shapes a context allocates nothing (inputs without an alignment of one element, 16 bytes for "cuda-emu", are the
 *            exception: they are copied into a staging buffer, allocated once). On a GPU inputs and outputs are host memory all the same: a run copies them.
 */
#ifndef TARE_H
#define TARE_H
#include <stddef.h>
#include <stdint.h>

#if defined(TARE_BUILDING_RUNTIME)
#define TARE_API __attribute__((visibility("default")))
#else
#define TARE_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Up to 7 these are the exit codes of the tools. */
typedef enum tare_status {
  TARE_OK = 0,
  TARE_INTERNAL = 1,     /* a bug of Tare */
  TARE_USAGE = 2,        /* a wrong call: null pointer, unknown name, call out of order */
  TARE_REFUSED = 3,      /* the engine file or an input is not acceptable */
  TARE_VERIFICATION = 4, /* the signature is missing or wrong */
  TARE_ENVIRONMENT = 5,  /* this machine lacks what the engine needs */
  TARE_IO = 6,           /* a file cannot be opened or read */
  TARE_LIMIT = 7,        /* out of memory or threads, or a limit is exceeded */
  TARE_CANCELLED = 8     /* tare_context_cancel was called */
} tare_status;

typedef struct tare_error {
  tare_status code;
  char message[768]; /* one line: what, where, why, what to do */
  char step[128];    /* source node name, or empty */
  char tensor[128];  /* input or output name, or empty */
  int64_t offset;    /* byte offset in the engine file, or -1 */
} tare_error;

/* Element types; the numbers are ONNX's. A bool is one byte, 0 or 1. */
typedef enum tare_dtype {
  TARE_F32 = 1, TARE_U8 = 2, TARE_I8 = 3, TARE_U16 = 4, TARE_I16 = 5, TARE_I32 = 6, TARE_I64 = 7, TARE_BOOL = 9,
  TARE_F16 = 10, TARE_F64 = 11, TARE_U32 = 12, TARE_U64 = 13, TARE_BF16 = 16
} tare_dtype;

/* A dense row-major tensor. `bytes` is the size of the memory at `data`: at least what shape and dtype need. */
typedef struct tare_tensor {
  tare_dtype dtype;
  int32_t rank;         /* 0 to 8 */
  const int64_t *shape; /* `rank` sizes; may be NULL when rank is 0 */
  void *data;
  uint64_t bytes;
} tare_tensor;

typedef struct tare_engine tare_engine_t;
typedef struct tare_context tare_context_t;

/* Checks an Ed25519 signature: 0 when `signature` (64 bytes) by `public_key` (32 bytes, from the file: compare it with the key you trust) fits the message. */
typedef int (*tare_verify_signature)(void *user, const unsigned char *message, size_t message_bytes, const unsigned char *signature, const unsigned char *public_key);
/* Runs body(argument, i) for i in [0, threads) on different threads AT THE SAME TIME (the parts wait for each other) and returns when all are done. */
typedef void (*tare_parallel)(void *user, int threads, void (*body)(void *argument, int thread), void *argument);

/* Zero-initialise, then set `struct_bytes = sizeof(tare_options)`. NULL means all defaults. */
typedef struct tare_options {
  size_t struct_bytes;
  /* Which of the engine's codes: "cpu" (the best level that the CPU has), a CPU level as the highest to use ("x86-64-v3", ...), "cuda" (the GPU's own image,
   * else PTX), "cuda:sm_90" (this image), "cuda-emu". NULL: the CPU's when there is code for it, else the GPU's. The variable TARE_MAX_LEVEL does the same. */
  const char *max_level;
  int paranoid;          /* non-zero: check the SHA-256 of the weights too */
  tare_verify_signature verify_signature; /* not NULL: the engine must be signed and this must return 0 */
  void *verify_user;
  int cuda_device; /* which GPU, counted from 0 as CUDA_VISIBLE_DEVICES leaves them; code for CPUs ignores it */
} tare_options;

typedef struct tare_context_options {
  size_t struct_bytes;
  int threads;            /* 1 to 256; 0: the physical cores that the process may use */
  int profile;            /* non-zero: time every step (tare_context_profile) */
  tare_parallel parallel; /* caller's thread pool; NULL: the context starts threads - 1 threads of its own */
  void *parallel_user;
} tare_context_options;

/* ---- engines ---------------------------------------------------------------------------------------------------------------------- */
/* Maps the file and verifies all of it. Weights are never copied. */
TARE_API tare_engine_t *tare_engine_open(const char *path, const tare_options *options, tare_error *error);
/* `data` must stay alive and unchanged until the engine and its contexts are gone; it is copied when not aligned to 64 bytes. */
TARE_API tare_engine_t *tare_engine_open_memory(const void *data, size_t bytes, const tare_options *options, tare_error *error);
TARE_API void tare_engine_close(tare_engine_t *engine);
/* SHA-256 of the weights (the other sections were checked when the engine was opened). */
TARE_API tare_status tare_engine_verify(const tare_engine_t *engine, tare_error *error);
/* The code that was taken: "x86-64-v3", "x86-64-v4", "avx512-bf16", "amx", "cuda:sm_90" (any image of the engine), "cuda-emu"; "" when the engine has none for
 * this machine (then it can be inspected and verified, and tare_context_create says why it cannot run: TARE_ENVIRONMENT). */
TARE_API const char *tare_engine_level(const tare_engine_t *engine);
/* Names: "plan", "certificate", "configuration", "report", "provenance". False (0) when the engine has no such section. */
TARE_API int tare_engine_section(const tare_engine_t *engine, const char *name, const void **data, size_t *bytes);

/* An input or output as the engine declares it. `dims[i]` is a number or a formula over symbols, e.g. "batch", "past + sequence". */
typedef struct tare_tensor_info {
  const char *name;
  tare_dtype dtype;
  int32_t rank;
  const char *dims[8];
  int optional;             /* inputs: may be left out */
  const char *default_kind; /* "ones", "zeros", "empty", "positions" (0, 1, 2.. along the last axis), "weight" (its own value); "" when not optional */
} tare_tensor_info;
TARE_API size_t tare_engine_input_count(const tare_engine_t *engine);
TARE_API size_t tare_engine_output_count(const tare_engine_t *engine);
TARE_API tare_status tare_engine_input_info(const tare_engine_t *engine, size_t index, tare_tensor_info *info, tare_error *error);
TARE_API tare_status tare_engine_output_info(const tare_engine_t *engine, size_t index, tare_tensor_info *info, tare_error *error);

typedef struct tare_estimate {
  int64_t full_flops, full_memory_bytes; /* of the source graph, before removals; a multiply-add is 2 */
  int64_t flops, memory_bytes;           /* of this plan */
  double zero_rate;                      /* pruned layers / candidates */
} tare_estimate;
/* For input shapes that need not be all inputs: `dtype`, `data` and `bytes` are ignored. A symbol that no given shape decides is 1. */
TARE_API tare_status tare_engine_estimate(const tare_engine_t *engine, const char *const *names, const tare_tensor *shapes, size_t count,
                                          tare_estimate *estimate, tare_error *error);

/* ---- contexts --------------------------------------------------------------------------------------------------------------------- */
TARE_API tare_context_t *tare_context_create(tare_engine_t *engine, const tare_context_options *options, tare_error *error);
/* Not while it runs. */
TARE_API void tare_context_destroy(tare_context_t *context);

/* Shape and pointer are kept, data is read by the next runs: keep it alive. `tensor` NULL takes the input back. Wrong dtype, rank or constant
 * sizes are refused at once, sizes that must agree with other inputs by the run. */
TARE_API tare_status tare_context_set_input(tare_context_t *context, const char *name, const tare_tensor *tensor, tare_error *error);
/* The caller's buffer of `tensor->bytes` bytes for an output; shape is ignored, dtype must be the output's. NULL: the context owns it again. */
TARE_API tare_status tare_context_set_output(tare_context_t *context, const char *name, const tare_tensor *tensor, tare_error *error);
/* Only these outputs (and those with a caller's buffer or a linked state) are computed by the next runs: steps that none of them needs are skipped.
 * Count 0: all of them, as in the beginning. The others cannot be read then. */
TARE_API tare_status tare_context_request_outputs(tare_context_t *context, const char *const *names, size_t count, tare_error *error);
TARE_API tare_status tare_context_run(tare_context_t *context, tare_error *error);
/* After a run: dtype, shape and data of an output (the caller's buffer when one was set). */
TARE_API tare_status tare_context_get_output(tare_context_t *context, const char *name, tare_tensor *tensor, tare_error *error);
/* From any thread: the run in progress ends at its next step with TARE_CANCELLED; without one, the next run does. */
TARE_API void tare_context_cancel(tare_context_t *context);

/* The context owns this input and output (a KV cache): each run appends to memory with room for `capacity` entries along the state's axis, in place,
 * and the next run sees the result as its input. Do not set the two tensors. A run that would exceed the capacity is refused (TARE_LIMIT) before it
 * starts. Capacity 0 unlinks. Linking starts the state empty. */
TARE_API tare_status tare_context_link_state(tare_context_t *context, const char *input, const char *output, int64_t capacity, tare_error *error);
/* A new request: linked states and carried check bits are empty, a pending cancel is forgotten. */
TARE_API tare_status tare_context_reset(tare_context_t *context);

/* Estimate for the shapes of the last run. */
TARE_API tare_status tare_context_estimate(tare_context_t *context, tare_estimate *estimate, tare_error *error);
/* Fidelity checks in the last run (docs/checks.md): token rows for one check module, all batch elements together. Zeros, and -1 as score, when there are none. */
typedef struct tare_check_stats {
  int64_t checks;             /* modules that run near anchors only */
  int64_t evaluations_dense;  /* what every token would cost */
  int64_t evaluations_sparse; /* what was evaluated: equal to dense when the input `anchors` was left out */
  int64_t anchor_hits;        /* anchors of which at least one window position was evaluated */
  int64_t flops_saved;        /* against the dense form, all modules */
  double milliseconds_saved;  /* estimated: flops_saved at the rate of this run */
  double fidelity_score;      /* 0 to 100, measured at compile; -1: not measured */
} tare_check_stats;
TARE_API tare_status tare_context_check_stats(tare_context_t *context, tare_check_stats *stats, tare_error *error);
/* The bits that check number `check` (in the order of the plan's steps) carries into the next run of this request, for one batch element: bit k is head k. */
TARE_API tare_status tare_context_check_bits(tare_context_t *context, size_t check, size_t element, uint32_t *bits, tare_error *error);
/* Memory that the fidelity checks account for; scratch memory is the same with and without them (docs/checks.md). */
typedef struct tare_check_memory {
  int64_t weight_bytes; /* W in every form, p, tau, E of all checks, as they lie in the engine */
  int64_t run_bytes;    /* at most, in one run: the caller's anchors, the list of evaluated rows, carried bits */
} tare_check_memory;
/* At the shapes of the last run, and for given ones (as tare_engine_estimate; `anchors` among them). */
TARE_API tare_status tare_context_check_memory(tare_context_t *context, tare_check_memory *memory, tare_error *error);
TARE_API tare_status tare_engine_check_memory(const tare_engine_t *engine, const char *const *names, const tare_tensor *shapes, size_t count,
                                              tare_check_memory *memory, tare_error *error);
/* For measurements: the next runs keep the bits of every token of every check, 4 bytes each. Only code for CPUs can (TARE_ENVIRONMENT). `on` 0 ends it. */
TARE_API tare_status tare_context_trace_checks(tare_context_t *context, int on, tare_error *error);
typedef struct tare_check_trace {
  int64_t heads, rows;       /* rows: batch * tokens of the last run */
  const uint32_t *bits;      /* one word per row: bit k is head k, carried bits included; valid until the next run */
  const int64_t *evaluated;  /* ascending rows at which the check ran; NULL: at all of them (no anchors given) */
  int64_t evaluated_count;   /* -1 when NULL */
} tare_check_trace;
TARE_API tare_status tare_context_check_trace(tare_context_t *context, size_t check, tare_check_trace *trace, tare_error *error);
/* One step of the plan, at the shapes of the last run; `nanoseconds` is of the last run, -1 without profile. */
typedef struct tare_step_info {
  const char *name, *kernel, *kind, *layer;
  int64_t flops, memory_bytes, nanoseconds;
} tare_step_info;
TARE_API size_t tare_context_step_count(const tare_context_t *context);
TARE_API tare_status tare_context_step_info(tare_context_t *context, size_t index, tare_step_info *info, tare_error *error);
/* Chrome trace (JSON) of the last run; metrics of the context in Prometheus text format. Both write at most `capacity` bytes with a final 0 and return
 * the bytes needed (without the 0), like snprintf. */
TARE_API size_t tare_context_profile(tare_context_t *context, char *buffer, size_t capacity);
TARE_API size_t tare_context_metrics(tare_context_t *context, char *buffer, size_t capacity);

/* "0.1.0" */
TARE_API const char *tare_version(void);

#ifdef __cplusplus
}
#endif
#endif
