// Counts what a test binary asks of malloc and mmap (thread stacks included). In: include it in exactly one source file of a test that links the objects under test
// statically. Out: `allocations`, the number of calls so far. Must hold: TARE_COUNTING is 0 under AddressSanitizer, which has its own malloc: skip then.
#pragma once
#include <atomic>
#include <cstddef>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TARE_COUNTING 0
#endif
#endif
#ifndef TARE_COUNTING
#define TARE_COUNTING 1
#endif

inline std::atomic<long> allocations{0};
#if TARE_COUNTING
// The test's own malloc family: glibc's, counted. The runtime's objects are linked into this binary, so all their calls end here.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { return ++allocations, __libc_malloc(n); }
void *calloc(size_t a, size_t b) { return ++allocations, __libc_calloc(a, b); }
void *realloc(void *p, size_t n) { return ++allocations, __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { return ++allocations, __libc_memalign(a, n); }
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  ++allocations;
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}
#endif
