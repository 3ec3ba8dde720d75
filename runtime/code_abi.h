/* The contract between an engine's machine code and the runtime that calls it. All fields are 64 bits wide; generated code addresses them by
 * index. One entry function per ISA level lies at offset 0 of its code section. Every participating thread calls it once per run, with its own
 * thread_id in [0, thread_count); between steps the threads meet at `barrier`. Thread 0 calls `stamp` before each
 * step that runs when it is not null. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_code_args {
  void *const *buffers;                              /* 0: address of each plan buffer, by index in Plan.buffers: inputs and outputs are aligned to one
                                                        element (they may be the caller's), all others to 64 bytes */
  const int64_t *dims;                               /* 1: value of each plan dim, by index in Plan.dims */
  int64_t thread_count;                              /* 2 */
  void *pool;                                        /* 3: first argument of barrier */
  int64_t (*barrier)(void *pool, int64_t thread_id); /* 4: returns non-zero when the run is cancelled or failed; all threads get the same answer */
  void *stamp_state;                                 /* 5: first argument of stamp */
  void (*stamp)(void *stamp_state, int64_t step);    /* 6: null unless a profile is taken; step == number of steps at the end */
  int64_t *fault;                                    /* 7: one word per thread, zeroed by the runtime; code stores 1 + step index when an index is out of range,
                                                        and the negative of that when the CUDA emulator found a bug in a kernel (its report is on stderr) */
  const uint8_t *skip;                               /* 8: one byte per step, the same for all threads; non-zero: no requested output needs the step */
} tare_code_args;

/* Returns 0, or 1 when a barrier said stop. */
typedef int64_t (*tare_code_entry)(const tare_code_args *args, int64_t thread_id);

#ifdef __cplusplus
}
#endif
