/* LD_PRELOAD shim: makes one system call on an output file fail, and notes all of them (faults F02, F24). In: TARE_FAULT=CALL:N:ERRNO (the N-th CALL fails, from 1; CALL is
 * open, write, fsync, close, rename or fsyncdir), TARE_FAULT_LOG=FILE. Out: one line per call in the log. Must hold: only files named *.tmp, their renaming and the
 * synchronisation of folders count, so that nothing but an output is touched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int counted;

static const char *ending(const char *path) {
  size_t n = path ? strlen(path) : 0;
  return n > 4 && strcmp(path + n - 4, ".tmp") == 0 ? path : NULL;
}

/* Notes the call; true when it is the one that fails (errno is set then). */
static int fails(const char *call) {
  const char *fault = getenv("TARE_FAULT"), *log = getenv("TARE_FAULT_LOG");
  if (log) {
    int file = (int)(((long (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    if (file >= 0) {
      dprintf(file, "%s\n", call);
      ((int (*)(int))dlsym(RTLD_NEXT, "close"))(file);
    }
  }
  char name[16];
  int number, code;
  if (!fault || sscanf(fault, "%15[^:]:%d:%d", name, &number, &code) != 3 || strcmp(name, call) != 0 || __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST) != number) return 0;
  errno = code;
  return 1;
}

static int isTemporary(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return ending(path) != NULL;
}
static int isFolder(int file) {
  struct stat info;
  return fstat(file, &info) == 0 && S_ISDIR(info.st_mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  if ((flags & O_CREAT) && ending(path) && fails("open")) return -1;
  return ((int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat"))(folder, path, flags, mode);
}
ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
  if (isTemporary(file) && fails("write")) return -1;
  return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(file, data, bytes, offset);
}
ssize_t pwrite64(int file, const void *data, size_t bytes, off_t offset) { return pwrite(file, data, bytes, offset); }
ssize_t write(int file, const void *data, size_t bytes) {
  if (isTemporary(file) && fails("write")) return -1;
  return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(file, data, bytes);
}
int fsync(int file) {
  if (isTemporary(file) ? fails("fsync") : isFolder(file) && fails("fsyncdir")) return -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}
int close(int file) {
  int writable = (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY, failed = writable && isTemporary(file) && fails("close"), saved = errno;
  int result = ((int (*)(int))dlsym(RTLD_NEXT, "close"))(file); /* as the kernel does: the descriptor is gone in any case */
  if (!failed) return result;
  errno = saved;
  return -1;
}
int renameat(int from, const char *old, int to, const char *new) {
  if (ending(old) && fails("rename")) return -1;
  return ((int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat"))(from, old, to, new);
}
int rename(const char *old, const char *new) {
  if (ending(old) && fails("rename")) return -1;
  return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(old, new);
}
